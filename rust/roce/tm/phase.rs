// SPDX-License-Identifier: GPL-2.0

//! How far software is behind: the number of unexpected messages that the device has delivered, and
//! the number that software has reported as handled.

/// Software reports more unexpected messages than there have been.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrongCount;

/// The two counts, modulo 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Phase {
    unexpected: u32,
    reported: u32,
}

impl Phase {
    /// One more message was not expected.
    pub fn count(&mut self) {
        self.unexpected = self.unexpected.wrapping_add(1);
    }

    /// One less: it never reached software.
    pub fn uncount(&mut self) {
        self.unexpected = self.unexpected.wrapping_sub(1);
    }

    /// Software has handled `count` of them. It may say less than before, which
    /// delays nobody but itself.
    ///
    /// # Errors
    ///
    /// [`WrongCount`], without effect, when there have not been so many.
    pub fn report(&mut self, count: u32) -> Result<(), WrongCount> {
        if !self.has_been(count) {
            return Err(WrongCount);
        }
        self.reported = count;
        Ok(())
    }

    /// Whether there have been `count` of them.
    pub fn has_been(&self, count: u32) -> bool {
        // Half of the number space lies ahead, half behind.
        self.unexpected.wrapping_sub(count) as i32 >= 0
    }

    /// Software has handled all.
    pub fn is_in_step(&self) -> bool {
        self.unexpected == self.reported
    }

    /// Unexpected messages so far.
    pub fn unexpected(&self) -> u32 {
        self.unexpected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_count() {
        let mut p = Phase::default();
        assert!(p.is_in_step());
        p.count();
        p.count();
        assert!(!p.is_in_step());
        assert_eq!(p.report(1), Ok(()));
        assert!(!p.is_in_step());
        assert_eq!(p.report(2), Ok(()));
        assert!(p.is_in_step());
    }

    #[test]
    fn refuses_what_has_not_been() {
        let mut p = Phase::default();
        assert_eq!(p.report(1), Err(WrongCount));
        p.count();
        assert_eq!(p.report(2), Err(WrongCount));
        assert_eq!(p.report(1 + (1 << 31) - 1), Err(WrongCount));
        assert!(!p.is_in_step());
        assert_eq!(p.report(1), Ok(()));
        assert!(p.is_in_step());
    }

    #[test]
    fn wraps() {
        let mut p = Phase {
            unexpected: u32::MAX,
            reported: u32::MAX,
        };
        p.count();
        assert_eq!(p.report(1), Err(WrongCount));
        assert_eq!(p.report(u32::MAX), Ok(()));
        assert!(!p.is_in_step());
        assert_eq!(p.report(0), Ok(()));
        assert!(p.is_in_step());
    }

    #[test]
    fn a_message_that_never_came() {
        let mut p = Phase::default();
        p.count();
        p.uncount();
        assert!(p.is_in_step());
    }
}
