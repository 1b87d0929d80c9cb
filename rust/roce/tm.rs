// SPDX-License-Identifier: GPL-2.0

//! Tag matching on shared receive queues: ibv_post_srq_ops(3), rdma-core's `tag_matching.md` and
//! `tm_types.h`.
//!
//! - [`message`]: the header at the start of a message, and the notice that ends a rendezvous;
//! - [`list`]: the tags that were posted, in their order;
//! - [`phase`]: whether software has seen every unexpected message;
//! - [`credit`]: how many operations are executed for each message;
//! - [`Matcher`]: list and phase together, as the device uses them.
//!
//! # Why there are phases
//!
//! Software may post a tag while a message that matches it is on its way to the queue of unexpected
//! messages. A later message must not take this tag, because the earlier one would be overtaken.
//! Therefore tags that are added while software has not seen every unexpected message *wait*: they
//! match nothing until software has reported that it has seen them all. (By then software has
//! compared each of these messages with each of these tags, and has taken back the tags that it
//! used.) Tags that were in the list before the message came continue to match, because the message
//! was compared with them when it came.
//!
//! Tags that wait are always the newest ones, so "may match" is one number: the tags posted before
//! it.

pub mod credit;
pub mod hash;
pub mod list;
pub mod message;
pub mod phase;

pub use credit::Credit;
pub use hash::HashKey;
pub use list::{
    AddError,
    Entry,
    List,
    MAX_MASKS,
    MAX_TAGS, //
};
pub use message::{
    fin,
    Message,
    Rvh,
    Tmh,
    RNDV_LEN,
    TMH_LEN, //
};
pub use phase::{
    Phase,
    WrongCount, //
};

use core::ops::DerefMut;

/// The matching list of a queue and its phase.
///
/// Any context; one caller at a time. No operation costs more than some steps
/// for each mask in use.
pub struct Matcher<E, B> {
    list: List<E, B>,
    phase: Phase,
    /// Tags posted before this one may match.
    limit: u64,
    /// Tags in the list that may not match yet.
    waiting: u32,
}

impl<E, B> Matcher<E, B>
where
    E: DerefMut<Target = [Entry]>,
    B: DerefMut<Target = [u32]>,
{
    /// An empty list in the memory that is lent: an entry for each tag, and
    /// about as many buckets. `key` should be random and kept to oneself.
    pub fn new(entries: E, buckets: B, key: HashKey) -> Self {
        Self {
            list: List::new(entries, buckets, key),
            phase: Phase::default(),
            limit: 0,
            waiting: 0,
        }
    }

    /// Appends a tag: it takes messages whose tag, seen through `mask`, is `tag`.
    /// `handle` names it until it leaves the list; its lower bits
    /// ([`list::index_of`]) are the entry that it takes.
    ///
    /// # Errors
    ///
    /// [`AddError`]; the list is as it was.
    pub fn add(&mut self, handle: u32, tag: u64, mask: u64) -> Result<(), AddError> {
        self.list.add(handle, tag, mask)?;
        self.waiting = self.waiting.saturating_add(1);
        self.advance();
        Ok(())
    }

    /// Takes a tag back. `None` when there is none of that handle: a message took
    /// it, or it never was. Otherwise the index of its entry, now free.
    pub fn delete(&mut self, handle: u32) -> Option<u32> {
        let index = self.list.find_handle(handle)?;
        self.remove(index);
        Some(index)
    }

    /// Software has handled `count` unexpected messages (modulo 2^32).
    ///
    /// # Errors
    ///
    /// [`WrongCount`], without effect, when there have not been so many.
    pub fn sync(&mut self, count: u32) -> Result<(), WrongCount> {
        self.phase.report(count)?;
        self.advance();
        Ok(())
    }

    /// Whether there have been `count` unexpected messages: whether
    /// [`Matcher::sync`] would take it.
    pub fn has_been(&self, count: u32) -> bool {
        self.phase.has_been(count)
    }

    /// Whether `handle` names an entry without a tag.
    pub fn is_free(&self, handle: u32) -> bool {
        self.list.is_free(handle)
    }

    /// The oldest tag that takes a message with `tag`, if one does. It stays.
    pub fn find(&self, tag: u64) -> Option<u32> {
        self.list.find(tag, self.limit)
    }

    /// A message has taken the tag that [`Matcher::find`] gave: it leaves the
    /// list. Its handle.
    pub fn take(&mut self, index: u32) -> Option<u32> {
        let handle = self.list.handle(index)?;
        self.remove(index);
        Some(handle)
    }

    /// A message goes to software as unexpected.
    pub fn count_unexpected(&mut self) {
        self.phase.count();
    }

    /// A message that was counted as unexpected will not reach software after
    /// all: its connection broke before its end.
    pub fn uncount_unexpected(&mut self) {
        self.phase.uncount();
        self.advance();
    }

    /// Whether software has seen every unexpected message.
    pub fn is_in_step(&self) -> bool {
        self.phase.is_in_step()
    }

    /// Whether tags wait for software to see the unexpected messages.
    pub fn has_waiting(&self) -> bool {
        self.waiting != 0
    }

    /// Unexpected messages so far, modulo 2^32.
    pub fn unexpected(&self) -> u32 {
        self.phase.unexpected()
    }

    /// Tags in the list.
    pub fn len(&self) -> u32 {
        self.list.len()
    }

    /// Whether no tag is in the list.
    pub fn is_empty(&self) -> bool {
        self.list.len() == 0
    }

    fn remove(&mut self, index: u32) {
        if let Some(posted) = self.list.remove(index) {
            if posted >= self.limit {
                self.waiting = self.waiting.saturating_sub(1);
            }
        }
    }

    /// In step, all that was posted may match.
    fn advance(&mut self) {
        if self.phase.is_in_step() {
            self.limit = self.list.posted();
            self.waiting = 0;
        }
    }
}
