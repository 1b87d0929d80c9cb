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
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outstanding {
    ends: [Psn; Self::CAPACITY],
    head: u8,
    /// Sent at least once.
    len: u8,
    /// Of those, counted from the oldest: sent (again) in this round.
    sent: u8,
}

impl Outstanding {
    /// A power of two; a larger `max_rd_atomic` is not used to the full.
    pub(crate) const CAPACITY: usize = super::MAX_RD_ATOMIC as usize;
    const MASK: u8 = 31;

    pub(crate) const fn new() -> Self {
        Self {
            ends: [Psn::new(0); Self::CAPACITY],
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

    /// Where the next one to send ends, if it was sent before.
    #[inline]
    pub(crate) fn next_end(&self) -> Option<Psn> {
        if self.sent >= self.len {
            return None;
        }
        let at = self.head.wrapping_add(self.sent) & Self::MASK;
        self.ends.get(usize::from(at)).copied()
    }

    /// The next one is sent: the one of [`Self::next_end`] if there is one,
    /// else a new one that ends before `end`; only after [`Self::has_room`].
    #[inline]
    pub(crate) fn push(&mut self, end: Psn) {
        if self.sent >= self.len {
            let at = self.head.wrapping_add(self.len) & Self::MASK;
            if let Some(e) = self.ends.get_mut(usize::from(at)) {
                *e = end;
            }
            self.len = self.len.saturating_add(1).min(Self::CAPACITY as u8);
        }
        self.sent = self.sent.saturating_add(1).min(self.len);
    }

    /// Everything before `una` was answered.
    #[inline]
    pub(crate) fn release(&mut self, una: Psn) {
        while self.len != 0 {
            match self.ends.get(usize::from(self.head & Self::MASK)) {
                Some(end) if !end.is_after(una) => {
                    self.head = self.head.wrapping_add(1) & Self::MASK;
                    self.len = self.len.wrapping_sub(1);
                    self.sent = self.sent.saturating_sub(1);
                }
                _ => break,
            }
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
        if self.len == 0 {
            return None;
        }
        self.ends.get(usize::from(self.head & Self::MASK)).copied()
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
            let base = Psn::new(0xff_ff00).add(round * 64);
            for i in 1..=32 {
                assert!(o.has_room(200));
                o.push(base.add(i));
            }
            assert!(!o.has_room(200));
            o.release(base.add(5));
            assert_eq!(o.len, 27);
            assert!(o.has_room(28));
            assert!(!o.has_room(27));
            o.release(base.add(5));
            assert_eq!(o.len, 27);
            o.release(base.add(40));
            assert_eq!(o.len, 0);
        }
        o.push(Psn::new(1));
        o.clear();
        assert!(o.has_room(1));
        assert_eq!(o.next_end(), None);
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
