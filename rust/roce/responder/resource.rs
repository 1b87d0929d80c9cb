// SPDX-License-Identifier: GPL-2.0

//! The state that is kept for READs and atomics, so that their responses can be sent in order and
//! sent again.

use core::ops::DerefMut;

use super::Responder;
use crate::key::Key;
use crate::mtu::Mtu;
use crate::number::Srqn;
use crate::opcode::Operation;
use crate::psn::Psn;
use crate::wire::Reth;

/// One READ or atomic of the recent past; the caller lends a slice of them.
#[derive(Clone, Copy, Debug)]
pub struct Resource {
    /// The request.
    pub(super) operation: Operation,
    /// First sequence number, and how many.
    pub(super) psn: Psn,
    pub(super) packets: u32,
    /// The range that was read.
    pub(super) va: u64,
    pub(super) rkey: Key,
    pub(super) len: u32,
    pub(super) srqn: Option<Srqn>,
    /// Message sequence number of the response.
    pub(super) msn: u32,
    /// Result of an atomic.
    pub(super) original: u64,
    /// Packets `next..end` of the response are yet to be sent, the run began
    /// with `start`, and it ends at byte `end_byte` of the message.
    pub(super) start: u32,
    pub(super) next: u32,
    pub(super) end: u32,
    pub(super) end_byte: u32,
    /// The last packet of the response was sent once: if the requester wants
    /// the place for a new request, it has the answer.
    pub(super) is_answered: bool,
    /// The requester has repeated the request, or a part of it.
    pub(super) is_repeated: bool,
}

impl Default for Resource {
    fn default() -> Self {
        Self {
            operation: Operation::ReadRequest,
            psn: Psn::new(0),
            packets: 0,
            va: 0,
            rkey: Key::default(),
            len: 0,
            srqn: None,
            msn: 0,
            original: 0,
            start: 0,
            next: 0,
            end: 0,
            end_byte: 0,
            is_answered: false,
            is_repeated: false,
        }
    }
}

impl Resource {
    /// Whether packets are yet to be sent.
    #[inline]
    pub(super) const fn is_pending(&self) -> bool {
        self.next < self.end
    }

    /// Asks for the whole response.
    pub(super) fn run_all(&mut self) {
        self.start = 0;
        self.next = 0;
        self.end = self.packets;
        self.end_byte = self.len;
    }

    /// Asks for the part of a READ that a repeated request names; `None` when
    /// that is no part of it.
    pub(super) fn run_part(&mut self, psn: Psn, reth: &Reth, mtu: Mtu) -> Option<()> {
        let first = psn.since(self.psn);
        let offset = mtu.offset(first);
        let rest = self.len.checked_sub(offset)?;
        if reth.va != self.va.wrapping_add(u64::from(offset))
            || reth.rkey != self.rkey
            || reth.len > rest
        {
            return None;
        }
        let end = first.checked_add(mtu.packets(reth.len))?;
        if end > self.packets {
            return None;
        }
        let end_byte = offset.saturating_add(reth.len);
        self.is_repeated = true;
        if !self.is_pending() {
            self.start = first;
            self.next = first;
            self.end = end;
            self.end_byte = end_byte;
            return Some(());
        }
        // Two repeated requests for parts of the same READ: answer both at one
        // go.
        if end > self.end {
            self.end = end;
            self.end_byte = end_byte;
        }
        if first < self.next {
            self.start = first;
            self.next = first;
        }
        Some(())
    }
}

/// No room: the requester has more READs and atomics outstanding than agreed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TooMany;

impl<R: DerefMut<Target = [Resource]>> Responder<R> {
    /// Places for READs and atomics.
    #[inline]
    fn resource_places(&self) -> u32 {
        self.resources.len().min(usize::from(u8::MAX)) as u32
    }

    /// Takes `resources` instead of its own if they are more; what is kept moves there. Returns
    /// those that it no longer needs, which is `resources` itself if they are not more.
    pub fn grow(&mut self, mut resources: R) -> R {
        if resources.len() <= self.resources.len() {
            return resources;
        }
        for (rel, to) in (0..self.resource_count).zip(resources.iter_mut()) {
            if let Some(from) = self.resources.get(self.resource_index(rel) as usize) {
                *to = *from;
            }
        }
        self.oldest_resource = 0;
        // It is looked for again.
        self.current_resource = None;
        core::mem::replace(&mut self.resources, resources)
    }

    /// READs and atomics that are kept. It may change while some are.
    #[inline]
    fn resource_limit(&self) -> u32 {
        self.resource_places()
            .min(u32::from(self.config.max_dest_rd_atomic))
    }

    /// Index of the resource `rel` places behind the oldest.
    #[inline]
    fn resource_index(&self, rel: u32) -> u32 {
        let places = self.resource_places();
        let index = self.oldest_resource.wrapping_add(rel);
        if index >= places {
            index.wrapping_sub(places)
        } else {
            index
        }
    }

    /// Whether another READ or atomic may come.
    pub(super) fn check_resource(&self) -> Result<(), TooMany> {
        let limit = self.resource_limit();
        if self.resource_count < limit {
            return Ok(());
        }
        let mut leaving = (0..=self.resource_count.saturating_sub(limit))
            .map(|rel| self.resources.get(self.resource_index(rel) as usize));
        let may_leave = |r: Option<&Resource>| r.is_some_and(|r| r.is_answered || !r.is_pending());
        if limit != 0 && leaving.all(may_leave) {
            Ok(())
        } else {
            Err(TooMany)
        }
    }

    /// Keeps `resource` in the place of the oldest, if there is no other; only
    /// after [`Self::check_resource`].
    pub(super) fn push_resource(&mut self, resource: Resource) {
        while self.resource_count != 0 && self.resource_count >= self.resource_limit() {
            self.drop_oldest_resource();
        }
        let index = self.resource_index(self.resource_count);
        if let Some(r) = self.resources.get_mut(index as usize) {
            *r = resource;
            self.resource_count = self.resource_count.wrapping_add(1);
            if resource.is_pending() {
                self.pending = self.pending.wrapping_add(1);
            }
        }
    }

    fn drop_oldest_resource(&mut self) {
        if let Some(r) = self.resources.get(self.oldest_resource as usize) {
            if r.is_pending() {
                self.pending = self.pending.wrapping_sub(1);
            }
        }
        if self.current_resource == Some(self.oldest_resource) {
            self.current_resource = None;
        }
        self.oldest_resource = self.resource_index(1);
        self.resource_count = self.resource_count.saturating_sub(1);
    }

    /// `count` sequence numbers, half the space at most, are about to be counted
    /// as executed: drops the resources that end half the space or more before
    /// the number expected then.
    ///
    /// A requester has no more than half the space outstanding (IBTA 9.7), so
    /// it will not ask for one of those again, and a request that far back is
    /// not taken for a repeated one. As no message is longer than half the
    /// space, what stays begins less than a whole space before the expected
    /// number: no two resources hold the same number, and
    /// [`Self::is_later`] orders them.
    #[inline]
    pub(super) fn expire_resources(&mut self, count: u32) {
        while self.resource_count != 0 {
            let Some(r) = self.resources.get(self.oldest_resource as usize) else {
                return;
            };
            let behind = self.behind(r.psn.add(r.packets)).saturating_add(count);
            if behind < Psn::HALF {
                return;
            }
            self.drop_oldest_resource();
        }
    }

    /// Changes the resource that holds `psn`; `None` when there is none.
    pub(super) fn with_resource<T>(
        &mut self,
        psn: Psn,
        f: impl FnOnce(&mut Resource) -> Option<T>,
    ) -> Option<T> {
        // The newest first: that is what is asked for again.
        let index = (0..self.resource_count)
            .rev()
            .map(|rel| self.resource_index(rel))
            .find(|i| {
                self.resources
                    .get(*i as usize)
                    .is_some_and(|r| psn.is_within(r.psn, r.packets))
            })?;
        let resource = self.resources.get_mut(index as usize)?;
        let was_pending = resource.is_pending();
        let result = f(resource);
        match (was_pending, resource.is_pending()) {
            (false, true) => self.pending = self.pending.wrapping_add(1),
            (true, false) => self.pending = self.pending.wrapping_sub(1),
            _ => {}
        }
        // An older one may have become pending.
        self.current_resource = None;
        result
    }

    /// Behind the last number of which an ACK may speak to a requester that has
    /// gone back to `psn`: the first READ or atomic after it, as far as it is
    /// known; what is not known any more was answered.
    pub(super) fn answered_end(&self, psn: Psn) -> Psn {
        (0..self.resource_count)
            .filter_map(|rel| self.resources.get(self.resource_index(rel) as usize))
            .map(|r| r.psn)
            .find(|first| self.is_later(*first, psn))
            .unwrap_or(self.epsn)
    }

    /// Index of the oldest resource with packets to send.
    pub(super) fn oldest_pending(&mut self) -> Option<u32> {
        if self.pending == 0 {
            return None;
        }
        if self.current_resource.is_none() {
            self.current_resource = (0..self.resource_count)
                .map(|rel| self.resource_index(rel))
                .find(|i| {
                    self.resources
                        .get(*i as usize)
                        .is_some_and(Resource::is_pending)
                });
        }
        self.current_resource
    }

    /// The resource that came after the one at `index`, if there is one.
    #[inline]
    pub(super) fn resource_behind(&self, index: u32) -> Option<&Resource> {
        let places = self.resource_places();
        let rel = match index.checked_sub(self.oldest_resource) {
            Some(rel) => rel,
            None => index
                .wrapping_add(places)
                .wrapping_sub(self.oldest_resource),
        };
        let rel = rel.wrapping_add(1);
        if rel >= self.resource_count {
            return None;
        }
        self.resources.get(self.resource_index(rel) as usize)
    }

    /// Forgets all resources.
    pub(super) fn clear_resources(&mut self) {
        self.oldest_resource = 0;
        self.resource_count = 0;
        self.current_resource = None;
        self.pending = 0;
    }
}
