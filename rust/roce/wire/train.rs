// SPDX-License-Identifier: GPL-2.0

//! Trains: packets of a message that follow each other, of which only the first has its headers
//! written down.
//!
//! The first of them may be the First packet of the message, the last may be its Last packet, and
//! all others are Middle packets. So all but the Last have a payload of the path MTU, and none has
//! pad bytes. They differ by their sequence numbers, by what the First or the Last packet has
//! behind its base transport header (and XRC header), by whether they ask for an acknowledgement,
//! and by whether they ask for an event. In a train only the last may ask for either.
//!
//! The headers of a train are those of the first packet, with these exceptions. The AckReq bit and
//! the SE bit are those of the last packet. A reserved bit says whether that is the Last packet of
//! the message ([`ENDS`]). And the headers of a READ response that begins with a Middle packet have
//! room for the ACK header of the Last packet behind them; it is zero if there is none.
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
    aeth,
    bth,
    xrceth,
    Aeth,
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

/// Where the SE bit is.
const FLAGS: usize = 1;
const SOLICITED: u8 = 0x80;

/// Where the AckReq bit is, reserved bits behind it, and the sequence number behind these.
const ACK: usize = 8;
const ACK_REQ: u8 = 0x80;

/// The reserved bit that says, in the headers of a train, that its last packet is the Last packet
/// of the message. `XRDMA_BTH_ENDS` in `services/net/train.c` is the same.
const ENDS: u8 = 0x40;

/// The operation codes of the packets behind one with `opcode`, if they can be in a train with it:
/// those that others may follow, and the one that ends the message. `xrdma_train_middle()` in
/// `services/net/train.c` is the same, for those that are in one.
#[inline]
const fn behind(opcode: Opcode) -> Option<(Opcode, Opcode)> {
    use Operation::*;
    let (middle, last) = match opcode.operation {
        SendFirst | SendMiddle => (SendMiddle, SendLast),
        WriteFirst | WriteMiddle => (WriteMiddle, WriteLast),
        ReadResponseFirst | ReadResponseMiddle => (ReadResponseMiddle, ReadResponseLast),
        _ => return None,
    };
    let transport = opcode.transport;
    Some((Opcode::new(transport, middle), Opcode::new(transport, last)))
}

/// Bytes of the headers of a train that begins with `opcode`.
#[inline]
const fn header_len(opcode: Opcode) -> usize {
    let own = opcode.header_len();
    match opcode.operation {
        Operation::ReadResponseMiddle => own.wrapping_add(aeth::LEN),
        _ => own,
    }
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
/// // SEND Last ends it, and begins none.
/// assert!(train.push(&packet(0x02, 10)));
/// assert!(!train.is_open());
/// assert!(TrainHeader::begin(&packet(0x02, 10)).is_none());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TrainHeader {
    header: HeaderBuf,
    /// The operation codes of those that follow, and how long the headers of all but the Last are.
    middle: u8,
    middle_len: usize,
    end: Opcode,
    /// The base transport header of the packet that was added last.
    last: Bth,
    /// That is the Last packet of the message.
    has_ended: bool,
}

impl TrainHeader {
    /// The train of one packet with these headers. `None`: it is in no train, or nothing may follow
    /// it in one.
    #[inline]
    pub fn begin(header: &HeaderBuf) -> Option<Self> {
        let last = Bth::parse(header.as_slice().first_chunk()?);
        let opcode = Opcode::from_byte(last.opcode)?;
        let (middle, end) = behind(opcode)?;
        let mut header = *header;
        if header_len(opcode) != header.len() {
            header.put(&[0; aeth::LEN]);
        }
        (!last.ack_req && !last.solicited && last.pad == 0).then_some(TrainHeader {
            header,
            middle: middle.to_byte(),
            middle_len: middle.header_len(),
            end,
            last,
            has_ended: false,
        })
    }

    /// Whether a packet with these headers, if it can be added, ends the train as the Last packet
    /// of the message, which may be shorter than the others.
    #[inline]
    pub fn is_end(&self, header: &HeaderBuf) -> bool {
        header.as_slice().first() == Some(&self.end.to_byte())
    }

    /// Adds the packet with these headers, if it is the next one. Says whether it is.
    #[inline]
    pub fn push(&mut self, header: &HeaderBuf) -> bool {
        let bytes = header.as_slice();
        let Some(first) = bytes.first_chunk() else {
            return false;
        };
        let (next, ends) = (Bth::parse(first), self.is_end(header));
        let (opcode, len) = match ends {
            true => (self.end.to_byte(), self.end.header_len()),
            false => (self.middle, self.middle_len),
        };
        let expected = Bth {
            opcode,
            psn: self.last.psn.next(),
            ack_req: next.ack_req,
            solicited: ends && next.solicited,
            ..self.last
        };
        let own = self.header.as_slice().get(bth::LEN..self.middle_len);
        if !self.is_open()
            || next != expected
            || bytes.len() != len
            || bytes.get(bth::LEN..self.middle_len) != own
            || (ends && !self.put_aeth(bytes.get(self.middle_len..).unwrap_or(&[])))
        {
            return false;
        }
        if next.ack_req {
            self.header.set_bits(ACK, ACK_REQ);
        }
        if next.solicited {
            self.header.set_bits(FLAGS, SOLICITED);
        }
        if ends {
            self.header.set_bits(ACK, ENDS);
        }
        (self.last, self.has_ended) = (next, ends);
        true
    }

    /// Puts the ACK header of the Last packet in its place, if it has one. If the First packet has
    /// one as well, that is to be the same. Says whether it is.
    fn put_aeth(&mut self, aeth: &[u8]) -> bool {
        let header = self.header.as_slice();
        if header.first() != Some(&self.middle) {
            return aeth.is_empty() || header.get(self.middle_len..) == Some(aeth);
        }
        self.header.set(self.middle_len, aeth);
        true
    }

    /// Whether another packet may follow: the last one does not ask for an acknowledgement, and
    /// does not end the message.
    #[inline]
    pub fn is_open(&self) -> bool {
        !self.last.ack_req && !self.has_ended
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

    /// The headers of the first packet, while it is the only one.
    #[inline]
    pub fn of_first(&self) -> &[u8] {
        let header = self.header.as_slice();
        match header.first() == Some(&self.middle) {
            true => header.get(..self.middle_len).unwrap_or(header),
            false => header,
        }
    }

    /// Bytes of headers of the train.
    #[inline]
    pub fn first_len(&self) -> usize {
        self.header.len()
    }

    /// Bytes of headers that all packets have in common, but for the numbers in them: the first
    /// ones.
    #[inline]
    pub fn middle_len(&self) -> usize {
        self.middle_len
    }
}

impl Checked {
    /// As [`check_unmoved`](Self::check_unmoved), for a train: `header` are its headers, and no
    /// more. Any bytes are welcome.
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
            || behind(opcode).is_none()
            || header.len() != header_len(opcode)
        {
            return Err(Refused::Malformed);
        }
        if !pkey_matches(bth.pkey, pkey) {
            return Err(Refused::Pkey);
        }
        Ok(Self::new(Kind::Message(opcode), bth.dest_qpn))
    }

    /// Whether the last packet of a train with these headers is the Last packet of its message.
    #[inline]
    pub fn train_ends(header: &[u8]) -> bool {
        header.get(ACK).is_some_and(|byte| byte & ENDS != 0)
    }

    /// Bytes of UDP payload that `count` packets of a train would have, with `mtu` bytes of payload
    /// each, but for the last, which has `last`. `header`: as below.
    #[inline]
    pub fn train_bytes(&self, header: &[u8], count: usize, mtu: usize, last: usize) -> usize {
        let Kind::Message(opcode) = self.kind() else {
            return 0;
        };
        let Some((middle, end)) = behind(opcode) else {
            return 0;
        };
        let (first_len, middle_len) = (opcode.header_len(), middle.header_len());
        let last_len = match Self::train_ends(header) {
            true => end.header_len(),
            false => middle_len,
        };
        let more = |len: usize| len.saturating_sub(middle_len);
        count
            .saturating_mul(middle_len.wrapping_add(mtu).wrapping_add(ICRC_LEN))
            .saturating_add(more(first_len))
            .saturating_add(more(last_len))
            .saturating_sub(mtu.saturating_sub(last))
    }

    /// What packet `index` of a train of `count` packets holds, `payload` being its payload.
    /// `header` are the headers that were checked. (From others this makes a packet that may lack
    /// headers; requester and responder refuse it.)
    ///
    /// Several packets but the Last of a message can be read as one, with the payload of all one
    /// behind the other: then `last` is the index of the last of them, which says whether an
    /// acknowledgement is asked for; else it is `index`, too.
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
        let (is_last, behind) = (last.wrapping_add(1) == count, behind(opcode));
        let ends = is_last && Self::train_ends(header);
        if let (Some((middle, end)), true) = (behind, index != 0) {
            let is_end = ends && index == last;
            packet.opcode = if is_end { end } else { middle };
            packet.bth.opcode = packet.opcode.to_byte();
            packet.bth.psn = packet.bth.psn.add(index);
            (packet.reth, packet.aeth) = (None, None);
            if packet.opcode.headers().has(Headers::AETH) {
                let aeth = header.get(middle.header_len()..);
                packet.aeth = aeth.and_then(|b| b.first_chunk()).map(Aeth::parse);
            }
        }
        packet.bth.ack_req &= is_last;
        packet.bth.solicited &= ends;
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
        // What asks is the last of one, and so is what is padded or asks for an event.
        let last: [fn(&mut Bth); 3] = [
            |bth| bth.ack_req = true,
            |bth| bth.pad = 1,
            |bth| bth.solicited = true,
        ];
        for change in last {
            assert!(TrainHeader::begin(&header(0, 1, change)).is_none());
        }
        assert!(TrainHeader::begin(&HeaderBuf::new()).is_none());
    }

    #[test]
    fn what_follows() {
        for opcode in FIRST.into_iter().flat_map(|op| [op, op + 0xa0]) {
            for (first, next) in [(0, 1), (1, 1), (0, 2), (1, 2)] {
                let (first, next) = (opcode + first, opcode + next);
                let begin = || TrainHeader::begin(&plain(first, 0xff_ffff)).unwrap();
                let mut train = begin();
                assert_eq!(train.is_end(&plain(next, 0)), next == opcode + 2);
                assert!(train.push(&plain(next, 0)));
                assert_eq!(train.is_open(), next == opcode + 1);
                // Other packets, and other numbers.
                for byte in (0..=255).filter(|&byte| byte != opcode + 1 && byte != opcode + 2) {
                    assert!(!begin().push(&plain(byte, 0)), "{byte:#x} after {first:#x}");
                }
                for psn in [0xff_fffe, 0xff_ffff, 1] {
                    assert!(!begin().push(&plain(next, psn)));
                }
                // Other headers.
                let changes: [fn(&mut Bth); 5] = [
                    |bth| bth.mig_req = false,
                    |bth| bth.pad = 2,
                    |bth| bth.pkey = 1,
                    |bth| bth.dest_qpn = Qpn::new(18),
                    |bth| bth.becn = true,
                ];
                for change in changes {
                    assert!(!begin().push(&header(next, 0, change)));
                }
                // Only the end of a message asks for an event.
                let solicited = header(next, 0, |bth| bth.solicited = true);
                assert_eq!(begin().push(&solicited), next == opcode + 2);
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
        // Another ACK header than that of the First packet.
        let mut other = HeaderBuf::new();
        Bth::parse(plain(0x0f, 2).as_slice().first_chunk().unwrap()).emit(&mut other);
        let syndrome = Syndrome::Ack(3);
        Aeth { syndrome, msn: 8 }.emit(&mut other);
        assert!(!TrainHeader::begin(&plain(0x0d, 1)).unwrap().push(&other));
        assert!(TrainHeader::begin(&plain(0x0e, 1)).unwrap().push(&other));
    }

    #[test]
    fn what_asks_or_ends_is_the_last() {
        let mut train = TrainHeader::begin(&plain(0x06, 1)).unwrap();
        assert!(train.push(&header(0x07, 2, |bth| bth.ack_req = true)));
        assert!(!train.push(&plain(0x07, 3)));
        assert!(!train.push(&plain(0x08, 3)));
        assert_eq!(
            train.as_slice(),
            header(0x06, 1, |bth| bth.ack_req = true).as_slice()
        );
        let mut train = TrainHeader::begin(&plain(0x06, 1)).unwrap();
        assert!(train.push(&plain(0x08, 2)));
        assert!(!train.push(&plain(0x07, 3)));
        assert!(!train.push(&plain(0x08, 3)));
        assert!(Checked::train_ends(train.as_slice()));
    }

    #[test]
    fn several_are_added_at_once() {
        for ack_req in [false, true] {
            let (mut one, mut all) = {
                let train = TrainHeader::begin(&plain(0x06, 0xff_fffe)).unwrap();
                (train, train)
            };
            assert!(one.push(&plain(0x07, 0xff_ffff)));
            assert!(one.push(&header(0x07, 0, |bth| bth.ack_req = ack_req)));
            all.extend(2, ack_req);
            assert_eq!(one.as_slice(), all.as_slice());
            assert_eq!(all.is_open(), !ack_req);
            assert_eq!(all.push(&plain(0x08, 1)), !ack_req);
        }
    }

    /// The packets of a train, as bytes, with `len` bytes of payload.
    fn packets(opcode: u8, first: u8, ends: bool, asks: bool) -> Vec<HeaderBuf> {
        (0..5)
            .map(|i| {
                let byte = match i {
                    0 => first,
                    4 if ends => opcode + 2,
                    _ => opcode + 1,
                };
                header(byte, (0xff_fffe + i) & 0xff_ffff, |bth| {
                    bth.ack_req = asks && i == 4;
                    bth.solicited = asks && ends && i == 4;
                })
            })
            .collect()
    }

    /// What comes out are the packets that were put in.
    #[test]
    fn there_and_back() {
        for opcode in FIRST.into_iter().flat_map(|op| [op, op + 0xa0]) {
            for case in 0..8 {
                let (first, ends) = (opcode + (case & 1), case & 2 != 0);
                let all = packets(opcode, first, ends, case & 4 != 0);
                let mut train = TrainHeader::begin(&all[0]).unwrap();
                assert_eq!(train.of_first(), all[0].as_slice());
                assert!(all[1..].iter().all(|one| train.push(one)));
                assert_eq!(train.first_len(), train.as_slice().len());
                assert_eq!(train.middle_len(), all[1].len());
                let header = train.as_slice();
                let checked = Checked::check_train(header, 0xffff).unwrap();
                assert_eq!(checked.dest_qpn(), Qpn::new(17));
                let last = if ends { 4 } else { 8 };
                let len = |i: usize| if i == 4 { last } else { 8 };
                let bytes: usize = (0..5).map(|i| all[i].len() + len(i) + ICRC_LEN).sum();
                assert_eq!(checked.train_bytes(header, 5, 8, last), bytes);
                for i in 0..5 {
                    let payload = &[i as u8; 8][..len(i)];
                    let mut bytes = all[i].as_slice().to_vec();
                    bytes.extend(payload);
                    let expected = Packet::parse(&bytes).unwrap();
                    let i = i as u32;
                    let Content::Message(got) = checked.train_content(header, (i, i), 5, payload)
                    else {
                        panic!("a message became a CNP");
                    };
                    assert_eq!(format!("{got:?}"), format!("{expected:?}"));
                }
            }
        }
    }

    #[test]
    fn several_are_read_as_one() {
        for ends in [false, true] {
            let all = packets(0x06, 0x06, ends, true);
            let mut train = TrainHeader::begin(&all[0]).unwrap();
            assert!(all[1..].iter().all(|one| train.push(one)));
            let checked = Checked::check_train(train.as_slice(), 0xffff).unwrap();
            for (last, asks) in [(3, false), (4, !ends)]
                .into_iter()
                .take(2 - usize::from(ends))
            {
                let payload = [0; 32];
                let content = checked.train_content(train.as_slice(), (1, last), 5, &payload);
                let Content::Message(got) = content else {
                    panic!("a message became a CNP");
                };
                assert_eq!(got.bth.opcode, 0x07);
                assert_eq!(got.bth.psn, Psn::new(0xff_ffff));
                assert_eq!(got.bth.ack_req, asks);
                assert!(got.reth.is_none());
                assert_eq!(got.payload.len(), 32);
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
