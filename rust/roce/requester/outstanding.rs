// SPDX-License-Identifier: GPL-2.0

//! READs and atomics on their way.

use crate::psn::Psn;

/// READs (as they are on the wire) and atomics that wait for their response,
/// oldest first, each as the sequence number behind its last one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outstanding {
    ends: [Psn; Self::CAPACITY],
    head: u8,
    len: u8,
}

impl Outstanding {
    /// A power of two; a larger `max_rd_atomic` is not used to the full.
    pub(crate) const CAPACITY: usize = 32;
    const MASK: u8 = 31;

    pub(crate) const fn new() -> Self {
        Self {
            ends: [Psn::new(0); Self::CAPACITY],
            head: 0,
            len: 0,
        }
    }

    /// Whether one more may be sent, with a limit from the QP's attributes.
    #[inline]
    pub(crate) fn has_room(&self, max_rd_atomic: u8) -> bool {
        self.len < max_rd_atomic.min(Self::CAPACITY as u8)
    }

    /// One more, which ends before `end`; only after [`Self::has_room`].
    #[inline]
    pub(crate) fn push(&mut self, end: Psn) {
        let at = self.head.wrapping_add(self.len) & Self::MASK;
        if let Some(e) = self.ends.get_mut(usize::from(at)) {
            *e = end;
            self.len = self.len.saturating_add(1).min(Self::CAPACITY as u8);
        }
    }

    /// Everything before `una` was answered.
    #[inline]
    pub(crate) fn release(&mut self, una: Psn) {
        while self.len != 0 {
            match self.ends.get(usize::from(self.head & Self::MASK)) {
                Some(end) if !end.is_after(una) => {
                    self.head = self.head.wrapping_add(1) & Self::MASK;
                    self.len = self.len.wrapping_sub(1);
                }
                _ => break,
            }
        }
    }

    /// All of them will be sent again.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.len = 0;
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
    }
}
