// SPDX-License-Identifier: GPL-2.0

//! A message that has a receive, for as long as the receive is being filled.

use crate::access::{
    self,
    ScatterError, //
};
use crate::cq::Overrun;
use crate::prelude::*;
use crate::qp::request::Sge;
use roce::tm::Tmh;

/// What a message is to its receive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The receive is a tag's; the data follow.
    Matched,
    /// The receive is a tag's, and too small for what the rendezvous would fetch: it gets the
    /// message itself.
    Incomplete,
    /// The receive is a tag's; the device fetches the data.
    Fetched,
    /// No tag took it; the receive is one of the queue's.
    Unexpected,
    /// It has no tag.
    Raw,
}

/// What a receive direction remembers of the message that it is filling a receive with.
pub(crate) struct Tagged {
    pub(super) kind: Kind,
    pub(super) tmh: Tmh,
    /// Bytes at the start of the message that are not stored.
    pub(super) skip: u32,
    /// The byte of the message at which storing stops.
    pub(super) end: u32,
    /// The data were stored at once.
    pub(super) placed: Option<Result<(), ScatterError>>,
    /// The completion was posted, or lost.
    pub(super) completed: Option<Result<(), Overrun>>,
}

impl Tagged {
    /// For a message that is stored whole, with nothing stored so far.
    pub(super) fn new(kind: Kind, tmh: &Tmh) -> Self {
        Tagged {
            kind,
            tmh: *tmh,
            skip: 0,
            end: u32::MAX,
            placed: None,
            completed: None,
        }
    }

    /// How storing the data went, if that is over.
    pub(crate) fn placed(&self) -> Option<Result<(), ScatterError>> {
        self.placed
    }

    /// The part of a message of `total` bytes that is stored.
    pub(crate) fn window(&self, total: u32) -> (u32, u32) {
        (self.skip.min(total), self.end.min(total))
    }

    /// Stores bytes of the message that begin at `offset`.
    pub(crate) fn scatter(
        &self,
        pd: PdId,
        list: &[Sge],
        offset: u32,
        data: &[u8],
    ) -> Result<(), ScatterError> {
        if let Some(placed) = self.placed {
            return placed;
        }
        let from = self.skip.saturating_sub(offset) as usize;
        let to = (self.end.saturating_sub(offset) as usize).min(data.len());
        match data.get(from..to) {
            Some(data) => {
                let offset = offset.wrapping_add(from as u32).wrapping_sub(self.skip);
                access::scatter(pd, list, offset, data)
            }
            None => Ok(()),
        }
    }
}
