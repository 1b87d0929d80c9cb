// SPDX-License-Identifier: GPL-2.0

//! The acknowledge timeout and the retry counter (IBTA 9.9.2.1).

/// The shortest timeout, nanoseconds.
///
/// The attribute allows 8 us, which no software path answers in; every retry
/// it would cause resends a window. IBTA lets the real time be up to four times
/// the nominal one, and devices clamp as well.
pub const MIN_TIMEOUT_NS: u64 = 524_288;

/// Nanoseconds that the QP attribute `timeout` (5 bits) stands for: 4.096 us
/// times 2^value, at least [`MIN_TIMEOUT_NS`]. `None` means "wait for ever"
/// (value 0).
pub const fn timeout_ns(value: u8) -> Option<u64> {
    match value & 0x1f {
        0 => None,
        v => {
            let ns = 4096u64 << v;
            Some(if ns < MIN_TIMEOUT_NS {
                MIN_TIMEOUT_NS
            } else {
                ns
            })
        }
    }
}

/// How often the requester may yet try again without progress: a count that progress resets.
#[derive(Clone, Copy, Default, Debug)]
pub struct Retry {
    limit: u8,
    left: u8,
}

impl Retry {
    /// From a QP attribute of 3 bits, `retry_cnt` (more than 7 counts as 7).
    pub const fn new(limit: u8) -> Self {
        let limit = if limit > 7 { 7 } else { limit };
        Self { limit, left: limit }
    }

    /// What it was made from.
    #[inline]
    pub const fn limit(&self) -> u8 {
        self.limit
    }

    /// One more try, if there is one left.
    #[inline]
    pub fn consume(&mut self) -> bool {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    /// There was progress.
    #[inline]
    pub fn reset(&mut self) {
        self.left = self.limit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts() {
        assert_eq!(timeout_ns(0), None);
        assert_eq!(timeout_ns(1), Some(MIN_TIMEOUT_NS));
        assert_eq!(timeout_ns(7), Some(4096 * 128));
        assert_eq!(timeout_ns(14), Some(67_108_864));
        assert_eq!(timeout_ns(31), Some(4096 << 31));
        assert_eq!(timeout_ns(32 + 14), timeout_ns(14));
    }

    #[test]
    fn counts() {
        let mut r = Retry::new(9);
        assert_eq!((0..20).filter(|_| r.consume()).count(), 7);
        r.reset();
        assert!(r.consume());
        assert!(!Retry::new(0).consume());
    }
}
