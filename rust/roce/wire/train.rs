// SPDX-License-Identifier: GPL-2.0

//! Trains: packets of a message that follow each other, of which only the first has its headers
//! written down.
//!
//! The first of them may be the First packet of the message, and all others are Middle packets. So
//! all have a payload of the path MTU and no pad bytes, and differ by their sequence numbers, by
//! what the First packet has behind its base transport header (and XRC header), and by whether they
//! ask for an acknowledgement. In a train only the last may ask. The headers of a train are those
//! of the first packet, but the AckReq bit in them is that of the last.
//!
//! No train is ever on a wire. The network stack of a host may have one in its memory instead of
//! the packets that it stands for, as it has TCP packets that are longer than a segment.

use super::checked::{
    Checked,
    Content,
    Kind,
    Refused, //
};
use super::{
    bth,
    xrceth,
    Bth,
    HeaderBuf,
    Packet,
    ICRC_LEN, //
};
use crate::opcode::{
    Headers,
    Opcode,
    Operation, //
};
use crate::ud::pkey_matches;

/// Where the AckReq bit is, and the sequence number behind it.
const ACK: usize = 8;
const ACK_REQ: u8 = 0x80;

/// The operation code of the packets behind one with `opcode`, if they can be in a train with it.
/// `xrdma_train_middle()` in `services/net/train.c` is the same, for those that are in one.
#[inline]
const fn middle(opcode: Opcode) -> Option<Opcode> {
    use Operation::*;
    let operation = match opcode.operation {
        SendFirst | SendMiddle => SendMiddle,
        WriteFirst | WriteMiddle => WriteMiddle,
        ReadResponseFirst | ReadResponseMiddle => ReadResponseMiddle,
        _ => return None,
    };
    Some(Opcode::new(opcode.transport, operation))
}

/// The headers of a train that grows packet by packet.
///
/// # Examples
///
/// ```
/// use roce::psn::Psn;
/// use roce::wire::{Bth, HeaderBuf, TrainHeader};
///
/// let packet = |opcode, psn| {
///     let mut header = HeaderBuf::new();
///     let psn = Psn::new(psn);
///     Bth { opcode, psn, ..Bth::default() }.emit(&mut header);
///     header
/// };
///
/// // SEND First, and two SEND Middle behind it.
/// let mut train = TrainHeader::begin(&packet(0x00, 7)).expect("others may follow it");
/// assert!(train.push(&packet(0x01, 8)));
/// // That is not the next one.
/// assert!(!train.push(&packet(0x01, 10)));
/// assert!(train.push(&packet(0x01, 9)));
/// // SEND Last is in no train.
/// assert!(!train.push(&packet(0x02, 10)));
/// assert!(TrainHeader::begin(&packet(0x02, 10)).is_none());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TrainHeader {
    header: HeaderBuf,
    /// The operation code of those that follow, and how long their headers are.
    middle: u8,
    middle_len: usize,
    /// The base transport header of the packet that was added last.
    last: Bth,
}

impl TrainHeader {
    /// The train of one packet with these headers. `None`: it is in no train, or nothing may follow
    /// it in one.
    #[inline]
    pub fn begin(header: &HeaderBuf) -> Option<Self> {
        let last = Bth::parse(header.as_slice().first_chunk()?);
        let middle = middle(Opcode::from_byte(last.opcode)?)?;
        (!last.ack_req && last.pad == 0).then_some(TrainHeader {
            header: *header,
            middle: middle.to_byte(),
            middle_len: middle.header_len(),
            last,
        })
    }

    /// Adds the packet with these headers, if it is the next one. Says whether it is.
    #[inline]
    pub fn push(&mut self, header: &HeaderBuf) -> bool {
        let bytes = header.as_slice();
        let Some(first) = bytes.first_chunk() else {
            return false;
        };
        let next = Bth::parse(first);
        let expected = Bth {
            opcode: self.middle,
            psn: self.last.psn.next(),
            ack_req: next.ack_req,
            ..self.last
        };
        let own = self.header.as_slice().get(bth::LEN..self.middle_len);
        if self.last.ack_req
            || next != expected
            || bytes.len() != self.middle_len
            || bytes.get(bth::LEN..) != own
        {
            return false;
        }
        if next.ack_req {
            self.header.set_bits(ACK, ACK_REQ);
        }
        self.last = next;
        true
    }

    /// Whether another packet may follow: the last one does not ask for an acknowledgement.
    #[inline]
    pub fn is_open(&self) -> bool {
        !self.last.ack_req
    }

    /// Adds `count` packets that follow, if any may; the last of them asks for an acknowledgement
    /// if `ack_req`. With a `count` of 0, the last packet that is there asks.
    #[inline]
    pub fn extend(&mut self, count: u32, ack_req: bool) {
        if !self.is_open() {
            return;
        }
        if ack_req {
            self.header.set_bits(ACK, ACK_REQ);
        }
        self.last.psn = self.last.psn.add(count);
        self.last.ack_req = ack_req;
    }

    /// The headers of the train.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        self.header.as_slice()
    }

    /// Bytes of headers that the first packet has.
    #[inline]
    pub fn first_len(&self) -> usize {
        self.header.len()
    }

    /// Bytes of headers that the others have: the first ones of the first packet.
    #[inline]
    pub fn middle_len(&self) -> usize {
        self.middle_len
    }
}

impl Checked {
    /// As [`check_unmoved`](Self::check_unmoved), for a train: `header` are the headers of the
    /// first packet, and no more. Any bytes are welcome.
    ///
    /// # Errors
    ///
    /// [`Refused`], but for a wrong ICRC; [`Refused::Malformed`] as well if such packets are in no
    /// train.
    #[inline]
    pub fn check_train(header: &[u8], pkey: u16) -> Result<Self, Refused> {
        let bth = Bth::parse(header.first_chunk().ok_or(Refused::Malformed)?);
        let opcode = Opcode::from_byte(bth.opcode).ok_or(Refused::Malformed)?;
        if bth.version != 0
            || bth.pad != 0
            || middle(opcode).is_none()
            || header.len() != opcode.header_len()
        {
            return Err(Refused::Malformed);
        }
        if !pkey_matches(bth.pkey, pkey) {
            return Err(Refused::Pkey);
        }
        Ok(Self::new(Kind::Message(opcode), bth.dest_qpn))
    }

    /// Bytes of UDP payload that `count` packets of a train would have, with `mtu` bytes of payload
    /// each. `header`: as below.
    #[inline]
    pub fn train_bytes(&self, header: &[u8], count: usize, mtu: usize) -> usize {
        let middle = match self.kind() {
            Kind::Message(opcode) => middle(opcode).map_or(0, Opcode::header_len),
            Kind::Cnp => 0,
        };
        let other = middle.wrapping_add(mtu).wrapping_add(ICRC_LEN);
        let more = header.len().saturating_sub(middle);
        count.saturating_mul(other).saturating_add(more)
    }

    /// What packet `index` of a train of `count` packets holds, `payload` being its payload.
    /// `header` are the headers that were checked. (From others this makes a packet that may lack
    /// headers; requester and responder refuse it.)
    ///
    /// Several packets can be read as one, with the payload of all one behind the other: then
    /// `last` is the index of the last of them, which says whether an acknowledgement is asked for;
    /// else it is `index`, too.
    #[inline]
    pub fn train_content<'a>(
        &self,
        header: &'a [u8],
        (index, last): (u32, u32),
        count: u32,
        payload: &'a [u8],
    ) -> Content<'a> {
        let Kind::Message(opcode) = self.kind() else {
            return Content::Cnp;
        };
        let mut packet = Packet::read(opcode, header);
        if index != 0 {
            packet.opcode = middle(opcode).unwrap_or(opcode);
            packet.bth.opcode = packet.opcode.to_byte();
            packet.bth.psn = packet.bth.psn.add(index);
            (packet.reth, packet.aeth) = (None, None);
        }
        packet.bth.ack_req &= last.wrapping_add(1) == count;
        packet.payload = payload;
        Content::Message(packet)
    }
}

const _: () = {
    // The middle packets of XRC have its header, which is the first of those of all.
    let opcode = Opcode::new(crate::opcode::Transport::Xrc, Operation::WriteMiddle);
    assert!(opcode.headers().has(Headers::XRCETH));
    assert!(opcode.header_len() == bth::LEN.wrapping_add(xrceth::LEN));
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::{
        Qpn,
        Srqn, //
    };
    use crate::psn::Psn;
    use crate::wire::{
        Aeth,
        Reth,
        Syndrome,
        XrcEth, //
    };

    const FIRST: [u8; 3] = [0x00, 0x06, 0x0d];

    fn header(opcode: u8, psn: u32, change: impl FnOnce(&mut Bth)) -> HeaderBuf {
        let mut bth = Bth {
            opcode,
            mig_req: true,
            pkey: 0xffff,
            dest_qpn: Qpn::new(17),
            psn: Psn::new(psn),
            ..Bth::default()
        };
        change(&mut bth);
        let mut out = HeaderBuf::new();
        bth.emit(&mut out);
        let Some(opcode) = Opcode::from_byte(opcode) else {
            return out;
        };
        let has = opcode.headers();
        if has.has(Headers::XRCETH) {
            let srqn = Srqn::new(5);
            XrcEth { srqn }.emit(&mut out);
        }
        if has.has(Headers::RETH) {
            Reth {
                va: 0x1234_5678,
                rkey: crate::key::Key::new(9),
                len: 99_999,
            }
            .emit(&mut out);
        }
        if has.has(Headers::AETH) {
            let syndrome = Syndrome::Ack(3);
            Aeth { syndrome, msn: 7 }.emit(&mut out);
        }
        out
    }

    fn plain(opcode: u8, psn: u32) -> HeaderBuf {
        header(opcode, psn, |_| {})
    }

    #[test]
    fn what_begins_one() {
        for byte in 0..=255u8 {
            let begins = [0, 1, 6, 7, 0xd, 0xe].contains(&(byte & 0x1f))
                && Opcode::from_byte(byte).is_some();
            assert_eq!(TrainHeader::begin(&plain(byte, 1)).is_some(), begins);
        }
        // What asks is the last of one, and padded packets are the last of a message.
        assert!(TrainHeader::begin(&header(0, 1, |bth| bth.ack_req = true)).is_none());
        assert!(TrainHeader::begin(&header(0, 1, |bth| bth.pad = 1)).is_none());
        assert!(TrainHeader::begin(&HeaderBuf::new()).is_none());
    }

    #[test]
    fn what_follows() {
        for opcode in FIRST.into_iter().flat_map(|op| [op, op + 0xa0]) {
            for first in [opcode, opcode + 1] {
                let begin = || TrainHeader::begin(&plain(first, 0xff_ffff)).unwrap();
                let next = opcode + 1;
                assert!(begin().push(&plain(next, 0)));
                // Other packets, and other numbers.
                for byte in (0..=255).filter(|&byte| byte != next) {
                    assert!(!begin().push(&plain(byte, 0)), "{byte:#x} after {first:#x}");
                }
                for psn in [0xff_fffe, 0xff_ffff, 1] {
                    assert!(!begin().push(&plain(next, psn)));
                }
                // Other headers.
                let changes: [fn(&mut Bth); 6] = [
                    |bth| bth.solicited = true,
                    |bth| bth.mig_req = false,
                    |bth| bth.pad = 2,
                    |bth| bth.pkey = 1,
                    |bth| bth.dest_qpn = Qpn::new(18),
                    |bth| bth.becn = true,
                ];
                for change in changes {
                    assert!(!begin().push(&header(next, 0, change)));
                }
                let mut longer = plain(next, 0);
                longer.put(&[0; 4]);
                assert!(!begin().push(&longer));
                assert!(!begin().push(&HeaderBuf::new()));
            }
        }
        // Another queue of XRC.
        let mut other = HeaderBuf::new();
        let bth = Bth::parse(plain(0xa7, 2).as_slice().first_chunk().unwrap());
        bth.emit(&mut other);
        let srqn = Srqn::new(6);
        XrcEth { srqn }.emit(&mut other);
        let mut train = TrainHeader::begin(&plain(0xa6, 1)).unwrap();
        assert!(!train.push(&other));
        assert!(train.push(&plain(0xa7, 2)));
    }

    #[test]
    fn what_asks_is_the_last() {
        let mut train = TrainHeader::begin(&plain(0x06, 1)).unwrap();
        assert!(train.push(&header(0x07, 2, |bth| bth.ack_req = true)));
        assert!(!train.push(&plain(0x07, 3)));
        assert!(!train.push(&header(0x07, 3, |bth| bth.ack_req = true)));
        assert_eq!(
            train.as_slice(),
            header(0x06, 1, |bth| bth.ack_req = true).as_slice()
        );
    }

    /// What comes out are the packets that were put in.
    #[test]
    fn there_and_back() {
        for opcode in FIRST.into_iter().flat_map(|op| [op, op + 0xa0]) {
            for (first, asks) in [opcode, opcode + 1]
                .into_iter()
                .flat_map(|op| [(op, false), (op, true)])
            {
                let one = |i: u32| {
                    let byte = if i == 0 { first } else { opcode + 1 };
                    header(byte, 0xff_fffe + i, |bth| bth.ack_req = asks && i == 4)
                };
                let mut train = TrainHeader::begin(&one(0)).unwrap();
                assert!((1..5).all(|i| train.push(&one(i))));
                assert_eq!(train.first_len(), one(0).len());
                assert_eq!(train.middle_len(), one(1).len());
                let checked = Checked::check_train(train.as_slice(), 0xffff).unwrap();
                assert_eq!(checked.dest_qpn(), Qpn::new(17));
                let len: usize = (0..5).map(|i| one(i).len() + 8 + ICRC_LEN).sum();
                assert_eq!(checked.train_bytes(train.as_slice(), 5, 8), len);
                for i in 0..5 {
                    let payload = [i as u8; 8];
                    let mut bytes = one(i).as_slice().to_vec();
                    bytes.extend(payload);
                    let expected = Packet::parse(&bytes).unwrap();
                    let Content::Message(got) =
                        checked.train_content(train.as_slice(), (i, i), 5, &payload)
                    else {
                        panic!("a message became a CNP");
                    };
                    assert_eq!(format!("{got:?}"), format!("{expected:?}"));
                }
            }
        }
    }

    #[test]
    fn what_is_refused() {
        let good = plain(0x06, 1);
        assert!(Checked::check_train(good.as_slice(), 0xffff).is_ok());
        for len in 0..good.len() {
            let refused = Checked::check_train(&good.as_slice()[..len], 0xffff);
            assert_eq!(refused, Err(Refused::Malformed), "{len}");
        }
        let mut longer = good;
        longer.put(&[0; 4]);
        let malformed = [
            longer,
            plain(0x08, 1),
            plain(0x0a, 1),
            plain(0x11, 1),
            plain(0x15, 1),
            header(0x06, 1, |bth| bth.pad = 1),
            header(0x06, 1, |bth| bth.version = 1),
        ];
        for header in malformed {
            let refused = Checked::check_train(header.as_slice(), 0xffff);
            assert_eq!(refused, Err(Refused::Malformed));
        }
        assert_eq!(
            Checked::check_train(good.as_slice(), 0xfffe),
            Err(Refused::Pkey)
        );
    }
}
