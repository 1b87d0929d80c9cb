// SPDX-License-Identifier: GPL-2.0

//! How many operations a list executes for the messages that come to it.
//!
//! All operations that were posted before a message are executed before the message is matched.
//! This happens in softirq, which all processes share, so a process that stores operations without
//! pause must not keep it busy. Therefore each message brings a little credit, and the list saves
//! credit up to the amount that a full ring needs. If more operations are waiting than there is
//! credit for, the message executes as many as the credit allows, and its sender has to send it
//! again.

/// Credit that each message brings.
const EACH: u32 = 64;

/// The credit of a list.
#[derive(Clone, Copy, Debug)]
pub struct Credit {
    left: u32,
    most: u32,
}

impl Credit {
    /// A list that may save credit for `most` operations, and has it.
    pub const fn new(most: u32) -> Self {
        Self { left: most, most }
    }

    /// A message came, and `waiting` operations stand before it: so many of them may
    /// be executed now. If these are not all, the message has to come again; it
    /// brings more then, so that operations that stood before it are executed after
    /// so many times in the end.
    pub fn grant(&mut self, waiting: u32) -> u32 {
        let left = self.left.saturating_add(EACH).min(self.most);
        let granted = waiting.min(left);
        self.left = left.saturating_sub(granted);
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u32 = 8192;

    #[test]
    fn a_full_ring_at_once() {
        let mut credit = Credit::new(MOST);
        assert_eq!(credit.grant(MOST), MOST);
        // And again when as many messages came as bring the credit for that.
        for _ in 0..MOST / EACH {
            credit.grant(0);
        }
        assert_eq!(credit.grant(MOST), MOST);
    }

    /// Few operations for each message never keep one waiting.
    #[test]
    fn some_for_each_message() {
        let mut credit = Credit::new(MOST);
        for _ in 0..100_000 {
            assert_eq!(credit.grant(EACH), EACH);
        }
    }

    /// The ring is full whenever one looks.
    #[test]
    fn without_pause() {
        let mut credit = Credit::new(MOST);
        let mut executed = 0u64;
        for _ in 0..1024 {
            executed += u64::from(credit.grant(MOST));
        }
        assert_eq!(executed, u64::from(MOST) + 1023 * u64::from(EACH));
    }
}
