// SPDX-License-Identifier: GPL-2.0

//! Messages that are matched against a list of tags: each is assigned a receive, and a message of
//! one packet is stored and completed at once.
//!
//! `receive/source.rs` is what the list knows of a message that begins, `receive/tagged.rs` what
//! the receive side remembers of it, `receive/report.rs` its completions.

mod report;
mod source;
mod tagged;

pub(crate) use self::source::{
    source,
    Source,
    Whole, //
};
pub(crate) use self::tagged::Tagged;

use self::tagged::Kind;
use super::{
    rendezvous,
    Inner,
    Tm, //
};
use crate::access;
use crate::limits;
use crate::prelude::*;
use crate::qp::receive::Current;
use crate::qp::request::RecvHead;
use crate::srq::Taken;
use roce::mtu::MAX_MESSAGE;
use roce::responder::ReceiveError;
use roce::tm::{
    Message,
    Rvh,
    Tmh,
    RNDV_LEN,
    TMH_LEN, //
};

/// Finds the receive for a message that begins: a tag's, or the queue's next. `awake`: the
/// direction has said so to the list. Softirq, or process context.
pub(crate) fn take(
    qp: &WireQp,
    srq: &WireSrq,
    tm: &Tm,
    current: &mut Current,
    awake: &mut bool,
    source: &Source<'_>,
) -> Result<(), ReceiveError> {
    if srq.is_dead() || tm.cq.is_dead() {
        return Err(ReceiveError::Broken);
    }
    current.pd = srq.pd;
    current.tagged = None;
    if !*awake {
        *awake = true;
        tm.inner.lock().wake();
    }
    let mut inner = match tm.run_for_message() {
        Ok(Some(inner)) => inner,
        Ok(None) => return Err(ReceiveError::Empty),
        Err(_) => {
            srq.fail();
            current.head = RecvHead::default();
            return Err(ReceiveError::Fault);
        }
    };
    let arrival = Arrival {
        qp,
        srq,
        tm,
        source,
    };
    // The lock is held until the receive is set: it orders this message against later ones.
    current.tagged = Some(arrival.meet(&mut inner, current)?);
    Ok(())
}

/// A message that meets the list of a queue, with the lock of the list held.
struct Arrival<'a> {
    qp: &'a WireQp,
    srq: &'a WireSrq,
    tm: &'a Tm,
    source: &'a Source<'a>,
}

impl Arrival<'_> {
    /// Makes the receive of the message the current one.
    fn meet(&self, inner: &mut Inner, current: &mut Current) -> Result<Tagged, ReceiveError> {
        match Message::parse(self.source.head) {
            Message::Raw => self.unmatched(inner, current, Kind::Raw),
            Message::Eager(tmh) => match inner.matcher.find(tmh.tag) {
                Some(index) => Ok(self.eager(inner, index, &tmh, current)),
                None => self.unmatched(inner, current, Kind::Unexpected),
            },
            Message::Rendezvous(tmh, rvh) => match inner.matcher.find(tmh.tag) {
                Some(index) => self.rendezvous(inner, index, &tmh, &rvh, current),
                None => self.unmatched(inner, current, Kind::Unexpected),
            },
        }
    }

    /// The tag in entry `index` takes an eager message, whose data follow its header.
    fn eager(&self, inner: &mut Inner, index: u32, tmh: &Tmh, current: &mut Current) -> Tagged {
        inner.load(index, current);
        inner.consume(index);
        let mut tagged = Tagged::new(Kind::Matched, tmh);
        tagged.skip = TMH_LEN as u32;
        self.place(&mut tagged, current);
        if tagged.placed.is_none() {
            // If that is lost, so is the completion at its end.
            let (tm, wr_id) = (self.tm, current.head.wr_id);
            let _ = tm.announce(self.qp, &tagged, wr_id, self.source);
        }
        self.complete(&mut tagged, current);
        tagged
    }

    /// The tag in entry `index` takes the request of a rendezvous, whose data the device fetches.
    /// If it cannot fetch them, the tag gets the request itself. Fails with `Empty` while too many
    /// fetches are under way.
    fn rendezvous(
        &self,
        inner: &mut Inner,
        index: u32,
        tmh: &Tmh,
        rvh: &Rvh,
        current: &mut Current,
    ) -> Result<Tagged, ReceiveError> {
        let room = inner.load(index, current);
        if !self.is_fetchable(rvh, room) {
            inner.consume(index);
            return Ok(self.incomplete(tmh, room, current));
        }
        let queue = self.qp.device_sends.as_ref().ok_or(ReceiveError::Fault)?;
        if !rendezvous::has_room(queue) {
            return Err(ReceiveError::Empty);
        }
        inner.consume(index);
        let wr_id = current.head.wr_id;
        let mut tagged = Tagged::new(Kind::Fetched, tmh);
        tagged.placed = Some(Ok(()));
        tagged.completed = Some(self.tm.announce(self.qp, &tagged, wr_id, self.source));
        // Not before its announcement: the send direction may run on another CPU, and complete it.
        // There was room, and nobody else fills the queue.
        let _ = rendezvous::start(queue, wr_id, current.list(), tmh, rvh);
        current.fetch = true;
        Ok(tagged)
    }

    /// Whether the device can fetch the data: the request is as long as it may be, and the buffers
    /// of the tag, of `room` bytes, hold the data.
    fn is_fetchable(&self, rvh: &Rvh, room: u32) -> bool {
        self.source
            .whole
            .len()
            .is_some_and(|len| len <= limits::MAX_RNDV_HDR)
            && rvh.len <= room
            && rvh.len <= MAX_MESSAGE
    }

    /// Stores the request of a rendezvous in the buffers of the tag, of `room` bytes, for software
    /// to fetch the data.
    fn incomplete(&self, tmh: &Tmh, room: u32, current: &Current) -> Tagged {
        let mut tagged = Tagged::new(Kind::Incomplete, tmh);
        // Its headers at least, or it is a message that is too long.
        tagged.end = room.max(RNDV_LEN as u32);
        self.place(&mut tagged, current);
        self.complete(&mut tagged, current);
        tagged
    }

    /// No tag takes the message: it goes to a receive of the queue.
    fn unmatched(
        &self,
        inner: &mut Inner,
        current: &mut Current,
        kind: Kind,
    ) -> Result<Tagged, ReceiveError> {
        self.srq
            .take(&mut current.head, &mut current.sges)
            .map_err(|e| match e {
                Taken::Empty => ReceiveError::Empty,
                Taken::Corrupt => ReceiveError::Fault,
                Taken::Broken | Taken::Gone => ReceiveError::Broken,
            })?;
        // Software reads the headers in the receive.
        let mut tagged = Tagged::new(kind, &Tmh::default());
        if kind == Kind::Unexpected {
            inner.matcher.count_unexpected();
        }
        self.place(&mut tagged, current);
        if let (Some(len), Some(Ok(()))) = (self.source.whole.len(), tagged.placed) {
            let (tm, wr_id) = (self.tm, current.head.wr_id);
            let posted = tm.complete_unmatched(inner, self.qp, &tagged, wr_id, self.source, len);
            tagged.completed = Some(posted);
        }
        Ok(tagged)
    }

    /// Stores a message of one packet. Not if some of the memory is on-demand memory, which cannot
    /// be used under the lock of the list: such a message is handled like a longer one.
    fn place(&self, tagged: &mut Tagged, current: &Current) {
        let whole = &self.source.whole;
        let Some(len) = whole.len() else {
            return;
        };
        let list = current.list();
        if whole.sleeps() || self.srq.wire_pd.sleeps() && access::sleeps(list) {
            return;
        }
        let (from, to) = tagged.window(len);
        tagged.placed = Some(whole.scatter(current.pd, list, from, to));
    }

    /// Completes a message that took a tag, if it was stored at once.
    fn complete(&self, tagged: &mut Tagged, current: &Current) {
        let (Some(len), Some(Ok(()))) = (self.source.whole.len(), tagged.placed) else {
            return;
        };
        let (from, to) = tagged.window(len);
        let stored = to.saturating_sub(from);
        let (tm, wr_id) = (self.tm, current.head.wr_id);
        tagged.completed = Some(tm.complete(self.qp, tagged, wr_id, self.source, stored));
    }
}

impl Inner {
    /// Makes the tag in entry `index` the current receive; how many bytes it holds.
    fn load(&self, index: u32, current: &mut Current) -> u32 {
        let Some(body) = self.bodies.get(index as usize) else {
            return 0;
        };
        let mut count = 0u32;
        for (to, from) in current.sges.iter_mut().zip(body.list()) {
            *to = (*from).into();
            count = count.saturating_add(1);
        }
        current.head = RecvHead {
            wr_id: body.recv_wr_id,
            num_sge: count,
        };
        access::total(current.list())
    }

    /// A message has taken the tag.
    fn consume(&mut self, index: u32) {
        if let Some(handle) = self.matcher.take(index) {
            self.freed.push(handle);
        }
    }
}
