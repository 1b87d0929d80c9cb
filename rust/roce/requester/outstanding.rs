// SPDX-License-Identifier: GPL-2.0

//! READs and atomics that are in progress.

use crate::psn::Psn;

/// READs (as they are on the wire) and atomics that wait for their response,
/// oldest first, each as the sequence number behind its last one.
///
/// The list outlives going back, so that each is sent again as it was: a
/// responder repeats what lies within one request, and rxe repeats no byte
/// before those that it was last asked to repeat (`duplicate_request` in
/// `rxe_resp.c` moves the start of what it keeps). So a repeated READ always
/// reaches to the end of the first one; cut in pieces, it could not be resumed
/// in an earlier piece.
///
/// Each connection has room for this list, so it has 16 bits for each: how far its end is behind
/// that of the one before. Those in the list are in flight, so it is hardly more than a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outstanding {
    steps: [u16; Self::CAPACITY],
    /// Ends of the oldest and of the newest, if there are any.
    first: Psn,
    last: Psn,
    head: u8,
    /// Sent at least once.
    len: u8,
    /// Of those, counted from the oldest: sent (again) in this round.
    sent: u8,
}

impl Outstanding {
    /// A power of two; a larger `max_rd_atomic` is not used to the full.
    pub(crate) const CAPACITY: usize = super::MAX_RD_ATOMIC as usize;
    const MASK: u8 = super::MAX_RD_ATOMIC.wrapping_sub(1);

    pub(crate) const fn new() -> Self {
        Self {
            steps: [0; Self::CAPACITY],
            first: Psn::new(0),
            last: Psn::new(0),
            head: 0,
            len: 0,
            sent: 0,
        }
    }

    /// Whether one more may be sent, with a limit from the QP's attributes.
    #[inline]
    pub(crate) fn has_room(&self, max_rd_atomic: u8) -> bool {
        self.sent < max_rd_atomic.min(Self::CAPACITY as u8)
    }

    /// Whether one that ends before `end` can be the next: if it is a new one, and too far behind
    /// the others, it has to wait until these are answered.
    #[inline]
    pub(crate) fn reaches(&self, end: Psn) -> bool {
        self.len == 0 || self.sent < self.len || end.since(self.last) <= u32::from(u16::MAX)
    }

    /// How far the end of one is behind that of the one before; `at`: counted from the oldest.
    #[inline]
    fn step(&self, at: u8) -> u32 {
        let at = self.head.wrapping_add(at) & Self::MASK;
        self.steps
            .get(usize::from(at))
            .copied()
            .map_or(0, u32::from)
    }

    /// Where the next one to send ends, if it was sent before.
    #[inline]
    pub(crate) fn next_end(&self) -> Option<Psn> {
        if self.sent >= self.len {
            return None;
        }
        // Only when one is sent again.
        let steps = (1..=self.sent).fold(0u32, |sum, at| sum.wrapping_add(self.step(at)));
        Some(self.first.add(steps))
    }

    /// The next one is sent: the one of [`Self::next_end`] if there is one,
    /// else a new one that ends before `end`; only after [`Self::has_room`] and
    /// [`Self::reaches`].
    #[inline]
    pub(crate) fn push(&mut self, end: Psn) {
        if self.sent >= self.len {
            let at = self.head.wrapping_add(self.len) & Self::MASK;
            if let Some(step) = self.steps.get_mut(usize::from(at)) {
                *step = u16::try_from(end.since(self.last)).unwrap_or(u16::MAX);
            }
            if self.len == 0 {
                self.first = end;
            }
            self.last = end;
            self.len = self.len.saturating_add(1).min(Self::CAPACITY as u8);
        }
        self.sent = self.sent.saturating_add(1).min(self.len);
    }

    /// Everything before `una` was answered.
    #[inline]
    pub(crate) fn release(&mut self, una: Psn) {
        while self.len != 0 && !self.first.is_after(una) {
            self.head = self.head.wrapping_add(1) & Self::MASK;
            self.len = self.len.wrapping_sub(1);
            self.sent = self.sent.saturating_sub(1);
            // If there is none, this says nothing.
            self.first = self.first.add(self.step(0));
        }
    }

    /// All of them will be sent again.
    #[inline]
    pub(crate) fn rewind(&mut self) {
        self.sent = 0;
    }

    /// How many were sent (again) in this round.
    #[inline]
    pub(crate) fn sent(&self) -> u8 {
        self.sent
    }

    /// So many were sent (again) in this round, after all: no more than there are.
    #[inline]
    pub(crate) fn resume(&mut self, sent: u8) {
        self.sent = sent.min(self.len);
    }

    /// Where the oldest one ends.
    #[inline]
    pub(crate) fn first_end(&self) -> Option<Psn> {
        (self.len != 0).then_some(self.first)
    }

    /// There are none.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.sent = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifo_with_a_limit() {
        let mut o = Outstanding::new();
        assert!(!o.has_room(0));
        for round in 0..10u32 {
            let base = Psn::new(0xff_ff00).add(round * 128);
            for i in 1..=64 {
                assert!(o.has_room(200));
                o.push(base.add(i));
            }
            assert!(!o.has_room(200));
            o.release(base.add(5));
            assert_eq!(o.len, 59);
            assert!(o.has_room(60));
            assert!(!o.has_room(59));
            o.release(base.add(5));
            assert_eq!(o.len, 59);
            o.release(base.add(80));
            assert_eq!(o.len, 0);
        }
        o.push(Psn::new(1));
        o.clear();
        assert!(o.has_room(1));
        assert_eq!(o.next_end(), None);
    }

    /// The list itself, with nothing left out.
    #[test]
    fn is_what_a_list_of_ends_is() {
        let (mut o, mut ends, mut sent) = (Outstanding::new(), Vec::<Psn>::new(), 0);
        let (mut seed, mut next) = (1u32, Psn::new(0xff_0000));
        for _ in 0..100_000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let dice = seed >> 16;
            match dice % 8 {
                0..=4 if o.has_room(64) => {
                    let end = ends.get(sent).copied().unwrap_or(next.add(dice % 3000));
                    assert!(o.reaches(end));
                    if sent == ends.len() {
                        ends.push(end);
                        next = end.add(dice % 5);
                    }
                    o.push(end);
                    sent += 1;
                }
                5 | 6 if !ends.is_empty() => {
                    // Up to the end of one, or in the midst of it.
                    let count = (dice as usize >> 3) % ends.len().min(4);
                    let una = ends[count].add(0xff_ffff * ((dice >> 5) % 2));
                    o.release(una);
                    let done = ends.iter().filter(|end| !end.is_after(una)).count();
                    ends.drain(..done);
                    sent = sent.saturating_sub(done);
                }
                7 if dice % 64 == 7 => {
                    o.rewind();
                    sent = 0;
                }
                _ => {}
            }
            assert_eq!(usize::from(o.len), ends.len());
            assert_eq!(usize::from(o.sent()), sent);
            assert_eq!(o.first_end(), ends.first().copied());
            assert_eq!(o.next_end(), ends.get(sent).copied());
        }
    }

    #[test]
    fn one_that_is_too_far_away_waits() {
        let mut o = Outstanding::new();
        let (first, far) = (Psn::new(0xff_fff0), u32::from(u16::MAX));
        // What is before the oldest does not matter.
        assert!(o.reaches(first.add(Psn::HALF)));
        o.push(first);
        assert!(o.reaches(first.add(far)));
        assert!(!o.reaches(first.add(far + 1)));
        o.push(first.add(far));
        assert!(!o.reaches(first.add(2 * far + 1)));
        // When it is sent again, it is as far away as it was.
        o.rewind();
        assert!(o.reaches(first.add(2 * far + 1)));
        o.push(first);
        assert_eq!(o.next_end(), Some(first.add(far)));
        o.release(first);
        assert_eq!(o.first_end(), Some(first.add(far)));
        o.release(first.add(far));
        assert_eq!(o.first_end(), None);
        assert!(o.reaches(first.add(3 * far)));
    }

    #[test]
    fn what_is_sent_again_ends_where_it_did() {
        let mut o = Outstanding::new();
        for end in [5, 6, 9] {
            assert_eq!(o.next_end(), None);
            o.push(Psn::new(end));
        }
        assert!(!o.has_room(3));
        o.rewind();
        assert_eq!(o.next_end(), Some(Psn::new(5)));
        o.push(Psn::new(5));
        // An answer of an earlier round to one that was not sent again yet.
        o.release(Psn::new(6));
        assert_eq!(o.next_end(), Some(Psn::new(9)));
        o.push(Psn::new(9));
        assert_eq!(o.next_end(), None);
        o.push(Psn::new(12));
        o.rewind();
        o.release(Psn::new(8));
        assert_eq!(o.next_end(), Some(Psn::new(9)));
        assert!(o.has_room(1));
    }
}
