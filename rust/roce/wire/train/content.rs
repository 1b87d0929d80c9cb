// SPDX-License-Identifier: GPL-2.0

//! What is in a train that has come whole.

use super::{
    Kinds,
    Seam,
    ACK,
    ENDS, //
};
use crate::opcode::{
    Headers,
    Opcode,
    Position, //
};
use crate::ud::pkey_matches;
use crate::wire::checked::{
    Checked,
    Content,
    Kind,
    Refused, //
};
use crate::wire::{
    aeth,
    reth,
    Aeth,
    Bth,
    Packet,
    Reth,
    ICRC_LEN, //
};

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
        let kinds = Kinds::of(opcode).ok_or(Refused::Malformed)?;
        // Another message follows the Last packet, and no other one at once.
        let begins_with_last = Seam::of(header, &kinds).is_some_and(|seam| seam.index == 1);
        if bth.version != 0
            || bth.pad != 0
            || header.len() != kinds.len()
            || begins_with_last != (kinds.position == Position::Last)
        {
            return Err(Refused::Malformed);
        }
        if !pkey_matches(bth.pkey, pkey) {
            return Err(Refused::Pkey);
        }
        Ok(Self::new(Kind::Message(opcode), bth.dest_qpn))
    }

    /// The operation codes of a train with these headers, and its seam.
    #[inline]
    fn train(&self, header: &[u8]) -> Option<(Kinds, Option<Seam>)> {
        let Kind::Message(opcode) = self.kind() else {
            return None;
        };
        let kinds = Kinds::of(opcode)?;
        Some((kinds, Seam::of(header, &kinds)))
    }

    /// Whether the last packet of a train with these headers is the Last packet of its message.
    #[inline]
    fn train_ends(header: &[u8]) -> bool {
        header.get(ACK).is_some_and(|byte| byte & ENDS != 0)
    }

    /// How many packets of a train of `count` are Middle packets of one message, from the one with
    /// this index on; the one with index 0 counts as one. `header` are the headers that were
    /// checked.
    #[inline]
    pub fn train_middles(&self, header: &[u8], index: u32, count: u32) -> u32 {
        let end = match self.train(header) {
            Some((_, Some(seam))) if index < seam.index => seam.index.saturating_sub(1),
            Some((_, Some(seam))) if index == seam.index => index,
            _ => count.saturating_sub(u32::from(Self::train_ends(header))),
        };
        end.min(count).saturating_sub(index)
    }

    /// Bytes of UDP payload that `count` packets of a train would have, with `mtu` bytes of payload
    /// each, but for the last, which has `last`. `header`: as below.
    #[inline]
    pub fn train_bytes(&self, header: &[u8], count: usize, mtu: usize, last: usize) -> usize {
        let Some((kinds, seam)) = self.train(header) else {
            return 0;
        };
        let middle_len = kinds.middle_len();
        let more = |opcode: Opcode| opcode.header_len().saturating_sub(middle_len);
        let of_last = match Self::train_ends(header) {
            true => more(kinds.last),
            false => 0,
        };
        let of_seam = match seam {
            // The Last packet of the first message may be the first one.
            Some(seam) if seam.index > 1 => more(kinds.last).wrapping_add(more(kinds.first)),
            Some(_) => more(kinds.first),
            None => 0,
        };
        count
            .saturating_mul(middle_len.wrapping_add(mtu).wrapping_add(ICRC_LEN))
            .saturating_add(more(kinds.at(kinds.position)))
            .saturating_add(of_seam)
            .saturating_add(of_last)
            .saturating_sub(mtu.saturating_sub(last))
    }

    /// What packet `index` of a train of `count` packets holds, `payload` being its payload.
    /// `header` are the headers that were checked. (From others this makes a packet that may lack
    /// headers; requester and responder refuse it.)
    ///
    /// Several Middle packets ([`Self::train_middles`]) can be read as one, with the payload of all
    /// one behind the other: then `last` is the index of the last of them, which says whether an
    /// acknowledgement is asked for; else it is `index`, too.
    #[inline]
    pub fn train_content<'a>(
        &self,
        header: &'a [u8],
        (index, last): (u32, u32),
        count: u32,
        payload: &'a [u8],
    ) -> Content<'a> {
        let Some((kinds, seam)) = self.train(header) else {
            return Content::Cnp;
        };
        let is_last = last.wrapping_add(1) == count;
        let ends = is_last && Self::train_ends(header);
        let before_seam = seam.filter(|seam| last.wrapping_add(1) == seam.index);
        let behind_seam = seam.is_some_and(|seam| index == seam.index);
        let position = if index == 0 {
            kinds.position
        } else if behind_seam {
            Position::First
        } else if before_seam.is_some() || (ends && index == last) {
            Position::Last
        } else {
            Position::Middle
        };
        let opcode = kinds.at(position);
        let mut packet = Packet::read(kinds.at(kinds.position), header);
        if index != 0 {
            packet.opcode = opcode;
            packet.bth.opcode = opcode.to_byte();
            packet.bth.psn = packet.bth.psn.add(index);
            // Those of the message that it is of.
            let of_second = seam.is_some_and(|seam| index >= seam.index);
            let more = match of_second {
                true => kinds.behind_seam(header),
                false => header.get(kinds.middle_len()..).unwrap_or(&[]),
            };
            let has = opcode.headers();
            packet.reth = match has.has(Headers::RETH) {
                true => more.first_chunk::<{ reth::LEN }>().map(Reth::parse),
                false => None,
            };
            packet.aeth = match has.has(Headers::AETH) {
                true => more.first_chunk::<{ aeth::LEN }>().map(Aeth::parse),
                false => None,
            };
        }
        packet.bth.ack_req &= is_last;
        match before_seam {
            Some(seam) => packet.bth.solicited = seam.solicited,
            None => packet.bth.solicited &= ends,
        }
        packet.payload = payload;
        Content::Message(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{
        header,
        packets,
        plain,
        FIRST,
        TRAINS, //
    };
    use super::super::{
        TrainHeader,
        FLAGS,
        SEAM, //
    };
    use super::*;
    use crate::number::Qpn;
    use crate::psn::Psn;
    use crate::wire::{
        bth,
        HeaderBuf, //
    };

    /// What comes out are the packets that were put in.
    #[test]
    fn there_and_back() {
        for opcode in FIRST.into_iter().flat_map(|op| [op, op + 0xa0]) {
            for (kinds, case) in TRAINS
                .iter()
                .flat_map(|kinds| (0..4).map(move |n| (kinds, n)))
            {
                let all = packets(opcode, kinds, (case & 1 != 0, case & 2 != 0));
                let what = || format!("{opcode:#x}, {kinds:?}, {case}");
                let mut train = TrainHeader::begin(&all[0]).unwrap();
                assert_eq!(train.of_first(), all[0].as_slice());
                assert!(all[1..].iter().all(|one| train.push(one)), "{}", what());
                assert_eq!(train.first_len(), train.as_slice().len());
                let lens = || all.iter().map(HeaderBuf::len);
                assert!(train.middle_len() <= lens().min().unwrap());
                assert!(train.longest_len() >= lens().max().unwrap());
                let header = train.as_slice();
                let checked = Checked::check_train(header, 0xffff).unwrap();
                assert_eq!(checked.dest_qpn(), Qpn::new(17));
                let count = kinds.len();
                let last = if kinds[count - 1] == 2 { 4 } else { 8 };
                let len = |i: usize| if i + 1 == count { last } else { 8 };
                let bytes: usize = (0..count).map(|i| all[i].len() + len(i) + ICRC_LEN).sum();
                let got = checked.train_bytes(header, count, 8, last);
                assert_eq!(got, bytes, "{}", what());
                for i in 0..count {
                    let payload = &[i as u8; 8][..len(i)];
                    let mut bytes = all[i].as_slice().to_vec();
                    bytes.extend(payload);
                    let expected = Packet::parse(&bytes).unwrap();
                    let (index, count) = (i as u32, count as u32);
                    let content = checked.train_content(header, (index, index), count, payload);
                    let Content::Message(got) = content else {
                        panic!("a message became a CNP");
                    };
                    assert_eq!(format!("{got:?}"), format!("{expected:?}"), "{}", what());
                    let middles = kinds[i..].iter().take_while(|kind| **kind == 1).count();
                    if i != 0 {
                        let got = checked.train_middles(header, index, count);
                        assert_eq!(got as usize, middles, "{}, {i}", what());
                    }
                }
            }
        }
    }

    #[test]
    fn several_are_read_as_one() {
        for (kinds, from, to, asks) in [
            (&[0, 1, 1, 1, 1][..], 1, 3, false),
            (&[0, 1, 1, 1, 1], 1, 4, true),
            (&[0, 1, 1, 1, 2], 1, 3, false),
            (&[0, 1, 1, 2, 0, 1, 1], 1, 2, false),
            (&[0, 1, 1, 2, 0, 1, 1], 5, 6, true),
            (&[2, 0, 1, 1], 2, 3, true),
        ] {
            let all = packets(0x06, kinds, (true, true));
            let mut train = TrainHeader::begin(&all[0]).unwrap();
            assert!(all[1..].iter().all(|one| train.push(one)));
            let checked = Checked::check_train(train.as_slice(), 0xffff).unwrap();
            let (payload, count) = ([0; 32], kinds.len() as u32);
            let content = checked.train_content(train.as_slice(), (from, to), count, &payload);
            let Content::Message(got) = content else {
                panic!("a message became a CNP");
            };
            assert_eq!(got.bth.opcode, 0x07);
            assert_eq!(got.bth.psn, Psn::new(0xff_fffe).add(from));
            assert_eq!(got.bth.ack_req, asks, "{kinds:?}");
            assert!(got.reth.is_none());
            assert_eq!(got.payload.len(), 32);
        }
    }

    #[test]
    fn what_is_refused() {
        let train = |opcode, change: fn(&mut Bth)| {
            let train = TrainHeader::begin(&header(opcode, 1, change));
            train.map(|train| train.header).unwrap()
        };
        let good = train(0x06, |_| ());
        assert!(Checked::check_train(good.as_slice(), 0xffff).is_ok());
        for len in 0..good.len() {
            let refused = Checked::check_train(&good.as_slice()[..len], 0xffff);
            assert_eq!(refused, Err(Refused::Malformed), "{len}");
        }
        let mut longer = good;
        longer.put(&[0; 4]);
        // Others follow the First packet, and another message follows the Last one.
        let mut seam = good;
        seam.set(28, &[1]);
        let mut padded = good;
        padded.set_bits(FLAGS, 1 << 4);
        let mut version = good;
        version.set_bits(FLAGS, 1);
        let malformed = [
            longer,
            seam,
            padded,
            version,
            train(0x08, |_| ()),
            plain(0x0a, 1),
            plain(0x11, 1),
            plain(0x15, 1),
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

    /// Any seam, anywhere: nothing is read that is not there.
    #[test]
    fn any_seam() {
        for opcode in FIRST.into_iter().flat_map(|op| [op, op + 1, op + 2]) {
            for index in 0..=255 {
                let mut header = TrainHeader::begin(&plain(opcode, 1)).unwrap().header;
                let at = header.len() - SEAM - if opcode > 2 { 16 } else { 0 };
                header.set(at.max(bth::LEN), &[index, 0xff, 0xff, 0xff]);
                let header = header.as_slice();
                let Ok(checked) = Checked::check_train(header, 0xffff) else {
                    continue;
                };
                for (i, count) in [(0, 2), (1, 2), (63, 64), (u32::MAX, 0), (0, u32::MAX)] {
                    let _ = checked.train_content(header, (i, i), count, &[]);
                    assert!(checked.train_middles(header, i, count) <= count);
                    checked.train_bytes(header, count as usize, 4096, 4096);
                }
            }
        }
    }
}
