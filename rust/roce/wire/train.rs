// SPDX-License-Identifier: GPL-2.0

//! Trains: packets that follow each other, of which only the first has its headers written down.
//!
//! They are of one message, or the last ones of a message and the first ones of the next, which is
//! of the same kind. Such a train has a *seam* between the two. The first packet may be a First,
//! Middle or Last packet, and so may the last one; those behind the first and, if there is a seam,
//! behind a First packet are Middle packets. So all but the last of the train have a payload of the
//! path MTU, and none has pad bytes. They differ by their sequence numbers, by what a First or a
//! Last packet has behind its base transport header (and XRC header), by whether they ask for an
//! acknowledgement, and by whether they ask for an event. Only the last of a train may ask for an
//! acknowledgement. That one may ask for an event, and the Last packet in front of a seam may, too.
//!
//! The headers of a train are those of the first packet, with these exceptions. The AckReq bit and
//! the SE bit are those of the last packet. A reserved bit says whether that is the Last packet of
//! its message ([`ENDS`]). The headers of a READ response that begins with a Middle packet have
//! room for the ACK header of the Last packet of that message; it is zero if that is not in the
//! train. Behind all of this comes the seam: four bytes, which are zero if there is none, and room
//! for the headers of the second First packet that Middle packets lack. The first byte is the index
//! of that packet in the train, the second has the SE bit of the one before it.
//!
//! No train is ever on a wire. The network stack of a host may have one in its memory instead of
//! the packets that it stands for, as it has TCP packets that are longer than a segment.

mod content;

use super::{
    bth,
    xrceth,
    Bth,
    HeaderBuf, //
};
use crate::opcode::{
    Headers,
    Opcode,
    Operation,
    Position, //
};

/// Where the SE bit is.
const FLAGS: usize = 1;
const SOLICITED: u8 = 0x80;

/// Where the AckReq bit is, reserved bits behind it, and the sequence number behind these.
const ACK: usize = 8;
const ACK_REQ: u8 = 0x80;

/// The reserved bit that says, in the headers of a train, that its last packet is the Last packet
/// of the message. `XRDMA_BTH_ENDS` in `services/net/train.c` is the same.
const ENDS: u8 = 0x40;

/// Bytes of the seam in front of the headers of the second First packet. `XRDMA_SEAM` in
/// `services/net/train.c` and what follows there are the same.
const SEAM: usize = 4;
/// In the second byte: the packet before the seam asks for an event.
const SEAM_SOLICITED: u8 = 0x80;

/// The operation codes of the packets of a message, and where in it one of them is.
#[derive(Clone, Copy, Debug)]
struct Kinds {
    first: Opcode,
    middle: Opcode,
    last: Opcode,
    position: Position,
}

impl Kinds {
    /// Those of a message that has a packet with `opcode`, if that can be in a train.
    /// `xrdma_train_position()` in `services/net/train.c` is the same.
    #[inline]
    const fn of(opcode: Opcode) -> Option<Self> {
        use Operation::*;
        let (first, middle, last) = match opcode.operation {
            SendFirst | SendMiddle | SendLast => (SendFirst, SendMiddle, SendLast),
            WriteFirst | WriteMiddle | WriteLast => (WriteFirst, WriteMiddle, WriteLast),
            ReadResponseFirst | ReadResponseMiddle | ReadResponseLast => {
                (ReadResponseFirst, ReadResponseMiddle, ReadResponseLast)
            }
            _ => return None,
        };
        let transport = opcode.transport;
        Some(Kinds {
            first: Opcode::new(transport, first),
            middle: Opcode::new(transport, middle),
            last: Opcode::new(transport, last),
            position: opcode.position(),
        })
    }

    /// The operation code of a packet at `position`.
    #[inline]
    const fn at(&self, position: Position) -> Opcode {
        match position {
            Position::First | Position::Only => self.first,
            Position::Middle => self.middle,
            Position::Last => self.last,
        }
    }

    /// The position of a packet with this operation code, if it has one of these.
    #[inline]
    fn position_of(&self, opcode: u8) -> Option<Position> {
        let all = [Position::First, Position::Middle, Position::Last];
        all.into_iter().find(|at| self.at(*at).to_byte() == opcode)
    }

    /// Bytes of the headers that all packets have.
    #[inline]
    const fn middle_len(&self) -> usize {
        self.middle.header_len()
    }

    /// Bytes of the headers of a train in front of its seam.
    #[inline]
    const fn seam_at(&self) -> usize {
        match self.position {
            // A Last packet has an ACK header, or none.
            Position::Middle => self.last.header_len(),
            position => self.at(position).header_len(),
        }
    }

    /// Bytes of the headers of a train.
    #[inline]
    const fn len(&self) -> usize {
        let more = self.first.header_len().wrapping_sub(self.middle_len());
        self.seam_at().wrapping_add(SEAM).wrapping_add(more)
    }

    /// What is in the seam behind its four bytes.
    #[inline]
    fn behind_seam<'a>(&self, header: &'a [u8]) -> &'a [u8] {
        let at = self.seam_at().wrapping_add(SEAM);
        header.get(at..).unwrap_or(&[])
    }
}

/// The four bytes of a seam.
#[derive(Clone, Copy)]
struct Seam {
    /// Index of the First packet behind it, not 0.
    index: u32,
    /// The Last packet before it asks for an event.
    solicited: bool,
}

impl Seam {
    /// That of a train, if it has one.
    #[inline]
    fn of(header: &[u8], kinds: &Kinds) -> Option<Self> {
        let &[index, flags, ..] = header.get(kinds.seam_at()..)?.first_chunk::<SEAM>()?;
        (index != 0).then_some(Seam {
            index: index.into(),
            solicited: flags & SEAM_SOLICITED != 0,
        })
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
/// // SEND Last ends the message, and SEND First begins the next one.
/// assert!(train.push(&packet(0x02, 10)));
/// assert!(!train.push(&packet(0x01, 11)));
/// assert!(train.push(&packet(0x00, 11)));
/// assert!(train.push(&packet(0x02, 12)));
/// // A third message is one too many.
/// assert!(!train.is_open());
/// assert!(!train.push(&packet(0x00, 13)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TrainHeader {
    header: HeaderBuf,
    kinds: Kinds,
    /// Bytes of the headers of the first packet.
    first_len: usize,
    /// The base transport header of the packet that was added last.
    last: Bth,
    /// Where in its message that is.
    position: Position,
    /// Packets, 255 at most.
    count: u8,
    /// Two messages are in the train.
    has_seam: bool,
}

impl TrainHeader {
    /// The train of one packet with these headers. `None`: it is in no train, or nothing may follow
    /// it in one.
    #[inline]
    pub fn begin(header: &HeaderBuf) -> Option<Self> {
        let last = Bth::parse(header.as_slice().first_chunk()?);
        let kinds = Kinds::of(Opcode::from_byte(last.opcode)?)?;
        let first_len = header.len();
        let mut header = *header;
        // The ACK header of a Last packet may be missing, and the seam with what is behind it.
        while header.len() < kinds.len() {
            let before = header.len();
            header.put(&[0; SEAM]);
            if header.len() == before {
                return None;
            }
        }
        let is_last = kinds.position == Position::Last;
        let may_begin = !last.ack_req && (is_last || !last.solicited) && last.pad == 0;
        may_begin.then_some(TrainHeader {
            header,
            kinds,
            first_len,
            last,
            position: kinds.position,
            count: 1,
            has_seam: false,
        })
    }

    /// Whether a packet with these headers, if it can be added, is the Last packet of its message,
    /// which may be shorter than the others. Nothing may follow one that is.
    #[inline]
    pub fn is_end(&self, header: &HeaderBuf) -> bool {
        header.as_slice().first() == Some(&self.kinds.last.to_byte())
    }

    /// Adds the packet with these headers, if it is the next one. Says whether it is.
    #[inline]
    pub fn push(&mut self, header: &HeaderBuf) -> bool {
        let bytes = header.as_slice();
        let Some(first) = bytes.first_chunk() else {
            return false;
        };
        let (next, middle_len) = (Bth::parse(first), self.kinds.middle_len());
        let Some(position) = self.kinds.position_of(next.opcode) else {
            return false;
        };
        let opcode = self.kinds.at(position);
        let (begins, ends) = (position == Position::First, position == Position::Last);
        let expected = Bth {
            opcode: opcode.to_byte(),
            psn: self.last.psn.next(),
            ack_req: next.ack_req,
            solicited: ends && next.solicited,
            ..self.last
        };
        let own = self.header.as_slice().get(bth::LEN..middle_len);
        let more = bytes.get(middle_len..).unwrap_or(&[]);
        if !self.is_open()
            || begins != (self.position == Position::Last)
            || next != expected
            || bytes.len() != opcode.header_len()
            || bytes.get(bth::LEN..middle_len) != own
            || (ends && !self.put_aeth(more))
        {
            return false;
        }
        if begins {
            self.put_seam(more);
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
        (self.last, self.position) = (next, position);
        self.count = self.count.saturating_add(1);
        true
    }

    /// Puts the ACK header of the Last packet in its place, if it has one. If the First packet of
    /// the message is in the train, that has one as well, which is to be the same. Says whether it
    /// is.
    fn put_aeth(&mut self, aeth: &[u8]) -> bool {
        let header = self.header.as_slice();
        if aeth.is_empty() {
            return true;
        }
        if self.has_seam {
            return self.kinds.behind_seam(header) == aeth;
        }
        let (at, end) = (self.kinds.middle_len(), self.kinds.seam_at());
        if self.kinds.position == Position::First {
            return header.get(at..end) == Some(aeth);
        }
        self.header.set(at, aeth);
        true
    }

    /// A First packet follows, which has the headers `more` behind those that all packets have.
    fn put_seam(&mut self, more: &[u8]) {
        let at = self.kinds.seam_at();
        let flags = match self.last.solicited {
            true => SEAM_SOLICITED,
            false => 0,
        };
        self.header.set(at, &[self.count, flags]);
        self.header.set(at.wrapping_add(SEAM), more);
        // What these bits say of the last packet.
        self.header.clear_bits(ACK, ENDS);
        self.header.clear_bits(FLAGS, SOLICITED);
        self.has_seam = true;
    }

    /// Whether another packet may follow: the last one does not ask for an acknowledgement, and
    /// does not end the second message.
    #[inline]
    pub fn is_open(&self) -> bool {
        let ends = self.has_seam && self.position == Position::Last;
        !ends && !self.last.ack_req
    }

    /// Adds `count` Middle packets that follow, if any may; the last of them asks for an
    /// acknowledgement if `ack_req`. With a `count` of 0, the last packet that is there asks.
    #[inline]
    pub fn extend(&mut self, count: u32, ack_req: bool) {
        if !self.is_open() || self.position == Position::Last {
            return;
        }
        if ack_req {
            self.header.set_bits(ACK, ACK_REQ);
        }
        self.last.psn = self.last.psn.add(count);
        self.last.ack_req = ack_req;
        if count != 0 {
            self.last.opcode = self.kinds.middle.to_byte();
            self.position = Position::Middle;
        }
        // At most 255.
        let count = u32::from(self.count)
            .saturating_add(count)
            .min(u8::MAX.into());
        self.count = count as u8;
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
        header.get(..self.first_len).unwrap_or(header)
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
        self.kinds.middle_len()
    }

    /// Bytes of the longest headers that a packet of the train can have.
    #[inline]
    pub fn longest_len(&self) -> usize {
        self.kinds.first.header_len()
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

    pub(super) const FIRST: [u8; 3] = [0x00, 0x06, 0x0d];

    /// A packet of one of two messages.
    fn header_of(second: bool, opcode: u8, psn: u32, change: impl FnOnce(&mut Bth)) -> HeaderBuf {
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
                va: 0x1234_5678 + u64::from(second),
                rkey: crate::key::Key::new(9),
                len: 99_999 + u32::from(second),
            }
            .emit(&mut out);
        }
        if has.has(Headers::AETH) {
            Aeth {
                syndrome: Syndrome::Ack(3),
                msn: 7 + u32::from(second),
            }
            .emit(&mut out);
        }
        out
    }

    pub(super) fn header(opcode: u8, psn: u32, change: impl FnOnce(&mut Bth)) -> HeaderBuf {
        header_of(false, opcode, psn, change)
    }

    pub(super) fn plain(opcode: u8, psn: u32) -> HeaderBuf {
        header(opcode, psn, |_| {})
    }

    #[test]
    fn what_begins_one() {
        for byte in 0..=255u8 {
            let begins = [0, 1, 2, 6, 7, 8, 0xd, 0xe, 0xf].contains(&(byte & 0x1f))
                && Opcode::from_byte(byte).is_some();
            assert_eq!(TrainHeader::begin(&plain(byte, 1)).is_some(), begins);
        }
        // What asks is the last of one. What asks for an event is that, or the Last of its message.
        // What is padded is in none.
        for opcode in 0..3 {
            let begins = |change: fn(&mut Bth)| {
                let header = header(opcode, 1, change);
                TrainHeader::begin(&header).is_some()
            };
            assert!(!begins(|bth| bth.ack_req = true));
            assert_eq!(begins(|bth| bth.solicited = true), opcode == 2);
            assert!(!begins(|bth| bth.pad = 1));
        }
        assert!(TrainHeader::begin(&HeaderBuf::new()).is_none());
    }

    #[test]
    fn what_follows() {
        for opcode in FIRST.into_iter().flat_map(|op| [op, op + 0xa0]) {
            for (first, next) in [(0, 1), (1, 1), (0, 2), (1, 2), (2, 0)] {
                let may_follow = match first {
                    2 => [opcode; 2],
                    _ => [opcode + 1, opcode + 2],
                };
                let (first, next) = (opcode + first, opcode + next);
                let begin = || TrainHeader::begin(&plain(first, 0xff_ffff)).unwrap();
                let mut train = begin();
                assert_eq!(train.is_end(&plain(next, 0)), next == opcode + 2);
                assert!(train.push(&plain(next, 0)));
                assert!(train.is_open());
                // Other packets, and other numbers.
                for byte in (0..=255).filter(|byte| !may_follow.contains(byte)) {
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
        for (first, next) in [(0xa6, 0xa7), (0xa2, 0xa0)] {
            let mut other = HeaderBuf::new();
            let bth = Bth::parse(plain(next, 2).as_slice().first_chunk().unwrap());
            bth.emit(&mut other);
            let srqn = Srqn::new(6);
            XrcEth { srqn }.emit(&mut other);
            let mut train = TrainHeader::begin(&plain(first, 1)).unwrap();
            assert!(!train.push(&other));
            assert!(train.push(&plain(next, 2)));
        }
        // Another ACK header than that of the First packet.
        let other = header_of(true, 0x0f, 2, |_| ());
        assert!(!TrainHeader::begin(&plain(0x0d, 1)).unwrap().push(&other));
        assert!(TrainHeader::begin(&plain(0x0e, 1)).unwrap().push(&other));
        let mut train = TrainHeader::begin(&plain(0x0f, 1)).unwrap();
        assert!(train.push(&header_of(true, 0x0d, 2, |_| ())));
        assert!(!train.push(&plain(0x0f, 3)));
        assert!(train.push(&header_of(true, 0x0f, 3, |_| ())));
    }

    #[test]
    fn what_asks_is_the_last() {
        let mut train = TrainHeader::begin(&plain(0x06, 1)).unwrap();
        assert!(train.push(&header(0x07, 2, |bth| bth.ack_req = true)));
        assert!(!train.is_open());
        for (opcode, psn) in [(0x07, 3), (0x08, 3), (0x06, 3)] {
            assert!(!train.push(&plain(opcode, psn)));
        }
        let first = header(0x06, 1, |bth| bth.ack_req = true);
        assert!(train.as_slice().starts_with(first.as_slice()));
        // So is a Last packet, and a First packet.
        let mut train = TrainHeader::begin(&plain(0x06, 1)).unwrap();
        assert!(train.push(&header(0x08, 2, |bth| bth.ack_req = true)));
        assert!(!train.is_open());
        assert!(!train.push(&plain(0x06, 3)));
        let mut train = TrainHeader::begin(&plain(0x08, 1)).unwrap();
        assert!(train.push(&header(0x06, 2, |bth| bth.ack_req = true)));
        assert!(!train.push(&plain(0x07, 3)));
    }

    #[test]
    fn there_are_two_messages_at_most() {
        let mut train = TrainHeader::begin(&plain(0x06, 1)).unwrap();
        for (opcode, psn) in [(0x08, 2), (0x06, 3), (0x08, 4)] {
            assert!(train.is_open());
            assert!(train.push(&plain(opcode, psn)));
        }
        assert!(!train.is_open());
        for (opcode, psn) in [(0x06, 5), (0x07, 5), (0x08, 5)] {
            assert!(!train.push(&plain(opcode, psn)));
        }
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
            if ack_req {
                assert!(!all.push(&plain(0x08, 1)));
                continue;
            }
            // They are counted: the seam says where the next message begins.
            for train in [&mut one, &mut all] {
                assert!(train.push(&plain(0x08, 1)));
                train.extend(3, false);
                assert!(train.push(&plain(0x06, 2)));
            }
            assert_eq!(one.as_slice(), all.as_slice());
        }
    }

    /// The packets of a train of a First packet with `opcode` and those behind it, by their
    /// distance from that one. `asks`: the last one asks, and for an event if it is a Last one, and
    /// the Last one of the first message asks for an event.
    pub(super) fn packets(opcode: u8, kinds: &[u8], asks: (bool, bool)) -> Vec<HeaderBuf> {
        let seam = kinds.iter().skip(1).position(|kind| *kind == 0);
        let seam = seam.map_or(usize::MAX, |at| at + 1);
        (0..kinds.len())
            .map(|i| {
                let psn = (0xff_fffe + i as u32) & 0xff_ffff;
                header_of(i >= seam, opcode + kinds[i], psn, |bth| {
                    let is_last = asks.0 && i + 1 == kinds.len();
                    let is_seam = asks.1 && i + 1 == seam;
                    bth.ack_req = is_last;
                    bth.solicited = (is_last || is_seam) && kinds[i] == 2;
                })
            })
            .collect()
    }

    /// First, Middle and Last packets of a train.
    pub(super) const TRAINS: [&[u8]; 14] = [
        &[0, 1, 1, 1, 1],
        &[0, 1, 1, 1, 2],
        &[1, 1, 1],
        &[1, 1, 2],
        &[0, 2],
        &[2, 0],
        &[2, 0, 1, 1],
        &[2, 0, 2],
        &[2, 0, 1, 2],
        &[0, 2, 0],
        &[0, 1, 2, 0, 1],
        &[1, 2, 0, 2],
        &[1, 1, 2, 0, 1, 2],
        &[0, 2, 0, 1, 1, 2],
    ];
}
