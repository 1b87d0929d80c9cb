// SPDX-License-Identifier: GPL-2.0

//! Messages that are matched against a list of tags.

use super::{
    rendezvous,
    Inner,
    Tm, //
};
use crate::access::{
    self,
    ScatterError, //
};
use crate::cq::Overrun;
use crate::limits;
use crate::local::Payload;
use crate::prelude::*;
use crate::qp::receive::Current;
use crate::qp::request::{
    RecvHead,
    Sge, //
};
use crate::srq::Taken;
use crate::wr;
use roce::mtu::MAX_MESSAGE;
use roce::opcode::Family;
use roce::responder::ReceiveError;
use roce::tm::{
    Message,
    Rvh,
    Tmh,
    RNDV_LEN,
    TMH_LEN, //
};
use roce::wire::Packet;

/// A message, where it begins.
pub(crate) struct Source<'a> {
    /// Its first [`RNDV_LEN`] bytes, or all if it has fewer.
    pub(crate) head: &'a [u8],
    /// All of it, if it is one packet long.
    pub(crate) whole: Whole<'a>,
    /// Immediate data.
    pub(crate) imm: Option<u32>,
    /// The sender asks for a solicited event.
    pub(crate) solicited: bool,
    /// Who brings it may wait for memory.
    pub(crate) sleeps: bool,
}

/// The bytes of a message of one packet.
pub(crate) enum Whole<'a> {
    /// It is longer.
    No,
    /// In the packet.
    Packet(&'a [u8]),
    /// In the buffers of a sender of this host.
    Local(Payload<'a>),
}

impl Whole<'_> {
    fn len(&self) -> Option<u32> {
        match self {
            Whole::No => None,
            Whole::Packet(bytes) => Some(bytes.len() as u32),
            Whole::Local(payload) => Some(payload.len()),
        }
    }

    /// It is in on-demand memory.
    fn sleeps(&self) -> bool {
        match self {
            Whole::No | Whole::Packet(_) => false,
            Whole::Local(payload) => payload.sleeps(),
        }
    }

    /// Stores all but the first `skip` bytes, up to byte `end`, in a list.
    fn scatter(&self, pd: u64, list: &[Sge], skip: u32, end: u32) -> Result<(), ScatterError> {
        match self {
            Whole::No => Ok(()),
            Whole::Packet(bytes) => {
                let bytes = bytes.get(skip as usize..end as usize).unwrap_or(&[]);
                access::scatter(pd, list, 0, bytes)
            }
            Whole::Local(payload) => payload.scatter(pd, list, skip, end),
        }
    }
}

/// What a message is to its receive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The receive is a tag's; the data follow.
    Matched,
    /// The receive is a tag's, and too small for what the rendezvous would fetch: it gets the message
    /// itself.
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
    kind: Kind,
    tmh: Tmh,
    /// Bytes at the start of the message that are not stored.
    skip: u32,
    /// The byte of the message at which storing stops.
    end: u32,
    /// The data were stored at once.
    placed: Option<Result<(), ScatterError>>,
    /// The completion was posted, or lost.
    completed: Option<Result<(), Overrun>>,
}

impl Tagged {
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
        pd: u64,
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

/// Finds the receive for a message that begins: a tag's, or the queue's next. `awake`: the direction
/// has said so to the list. Softirq, or process context.
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
    let (found, tmh, rvh) = match Message::parse(source.head) {
        Message::Raw => {
            return unmatched(&mut inner, tm, qp, srq, current, source, None);
        }
        Message::Eager(tmh) => (inner.matcher.find(tmh.tag), tmh, None),
        Message::Rendezvous(tmh, rvh) => (inner.matcher.find(tmh.tag), tmh, Some(rvh)),
    };
    let Some(index) = found else {
        return unmatched(&mut inner, tm, qp, srq, current, source, Some(tmh));
    };
    let room = inner.load(index, current);
    let kind = match &rvh {
        None => Kind::Matched,
        Some(rvh) if is_fetchable(rvh, room, source) => {
            let queue = qp.device_sends.as_ref().ok_or(ReceiveError::Fault)?;
            if !rendezvous::has_room(queue) {
                return Err(ReceiveError::Empty);
            }
            Kind::Fetched
        }
        Some(_) => Kind::Incomplete,
    };
    inner.consume(index);
    let mut tagged = Tagged {
        kind,
        tmh,
        skip: 0,
        end: u32::MAX,
        placed: None,
        completed: None,
    };
    match kind {
        Kind::Matched => tagged.skip = TMH_LEN as u32,
        // Its headers at least, or it is a message that is too long.
        Kind::Incomplete => tagged.end = room.max(RNDV_LEN as u32),
        _ => {}
    }
    if kind == Kind::Fetched {
        tagged.placed = Some(Ok(()));
        tagged.completed = Some(tm.announce(qp, &tagged, current.head.wr_id, source, 0));
        if let (Some(queue), Some(rvh)) = (&qp.device_sends, &rvh) {
            // Not before its announcement: the send direction may run on another CPU, and complete it.
            // There was room, and nobody else fills the queue.
            let _ = rendezvous::start(queue, current.head.wr_id, current.list(), &tmh, rvh);
        }
        current.tagged = Some(tagged);
        current.fetch = true;
        return Ok(());
    }
    place(&mut tagged, srq, current, source);
    match (source.whole.len(), tagged.placed) {
        (Some(len), Some(Ok(()))) => {
            let (from, to) = tagged.window(len);
            let stored = to.saturating_sub(from);
            let posted = tm.complete(qp, &tagged, current.head.wr_id, source, stored);
            tagged.completed = Some(posted);
        }
        (_, None) if kind == Kind::Matched => {
            // If that is lost, so is the completion at its end.
            let _ = tm.announce(qp, &tagged, current.head.wr_id, source, 0);
        }
        _ => {}
    }
    current.tagged = Some(tagged);
    Ok(())
}

/// Whether the device can fetch the data: the request is as long as it may be, and the buffers of the
/// tag hold the data.
fn is_fetchable(rvh: &Rvh, room: u32, source: &Source<'_>) -> bool {
    source
        .whole
        .len()
        .is_some_and(|len| len <= limits::MAX_RNDV_HDR)
        && rvh.len <= room
        && rvh.len <= MAX_MESSAGE
}

/// Stores a message of one packet. Not if some of the memory is on-demand memory, which cannot be
/// used under the lock of the list: such a message is handled like a longer one.
fn place(tagged: &mut Tagged, srq: &WireSrq, current: &Current, source: &Source<'_>) {
    let Some(len) = source.whole.len() else {
        return;
    };
    let list = current.list();
    if source.whole.sleeps() || srq.wire_pd.sleeps() && access::sleeps(list) {
        return;
    }
    let (from, to) = tagged.window(len);
    tagged.placed = Some(source.whole.scatter(current.pd, list, from, to));
}

/// No tag takes the message: it goes to a receive of the queue. `tmh` is `None` for one without a tag.
fn unmatched(
    inner: &mut Inner,
    tm: &Tm,
    qp: &WireQp,
    srq: &WireSrq,
    current: &mut Current,
    source: &Source<'_>,
    tmh: Option<Tmh>,
) -> Result<(), ReceiveError> {
    srq.take(&mut current.head, &mut current.sges)
        .map_err(|e| match e {
            Taken::Empty => ReceiveError::Empty,
            Taken::Corrupt => ReceiveError::Fault,
            Taken::Broken | Taken::Gone => ReceiveError::Broken,
        })?;
    let mut tagged = Tagged {
        kind: if tmh.is_some() {
            Kind::Unexpected
        } else {
            Kind::Raw
        },
        // What is in it, software reads there.
        tmh: Tmh::default(),
        skip: 0,
        end: u32::MAX,
        placed: None,
        completed: None,
    };
    if tagged.kind == Kind::Unexpected {
        inner.matcher.count_unexpected();
    }
    place(&mut tagged, srq, current, source);
    if let (Some(len), Some(Ok(()))) = (source.whole.len(), tagged.placed) {
        let posted = tm.complete_in(inner, qp, &tagged, current.head.wr_id, source, len);
        tagged.completed = Some(posted);
    }
    current.tagged = Some(tagged);
    Ok(())
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

impl Tm {
    /// Tells that a message took a tag, whose data are still to come.
    fn announce(
        &self,
        qp: &WireQp,
        tagged: &Tagged,
        wr_id: u64,
        source: &Source<'_>,
        len: u32,
    ) -> Result<(), Overrun> {
        let mut completion = tagged.completion(qp, wr_id, len);
        completion.wc_flags = wr::WC_TM_MATCH;
        completion.solicited = source.solicited;
        tagged.tell(&mut completion);
        self.cq.post_from(&completion, None)
    }

    /// Completes a message that was placed at once and took a tag.
    fn complete(
        &self,
        qp: &WireQp,
        tagged: &Tagged,
        wr_id: u64,
        source: &Source<'_>,
        len: u32,
    ) -> Result<(), Overrun> {
        let mut completion = tagged.completion(qp, wr_id, len);
        completion.wc_flags = wr::WC_TM_MATCH;
        if tagged.kind == Kind::Matched {
            completion.wc_flags |= wr::WC_TM_DATA_VALID;
        }
        tagged.tell(&mut completion);
        self.post_with(completion, source.imm, source.solicited)
    }

    /// Completes a message that was placed at once in a receive of the queue.
    fn complete_in(
        &self,
        inner: &Inner,
        qp: &WireQp,
        tagged: &Tagged,
        wr_id: u64,
        source: &Source<'_>,
        len: u32,
    ) -> Result<(), Overrun> {
        let mut completion = tagged.completion(qp, wr_id, len);
        if tagged.kind == Kind::Unexpected && inner.matcher.has_waiting() {
            completion.wc_flags = wr::WC_TM_SYNC_REQ;
        }
        self.post_with(completion, source.imm, source.solicited)
    }

    fn post_with(
        &self,
        mut completion: Completion,
        imm: Option<u32>,
        solicited: bool,
    ) -> Result<(), Overrun> {
        if let Some(imm) = imm {
            completion.wc_flags |= wr::WC_WITH_IMM;
            completion.imm = imm;
        }
        completion.solicited = solicited;
        self.cq.post_from(&completion, None)
    }

    /// The message will not come to its end, and nobody hears of it: its QP was reset.
    pub(crate) fn forget(&self, tagged: &Tagged) {
        if tagged.kind == Kind::Unexpected && tagged.completed.is_none() {
            self.inner.lock().matcher.uncount_unexpected();
        }
    }

    /// The message is whole, or broke off: `done` is what the responder says about it, with the work
    /// request's and QP's numbers. Fails when nobody can learn of it.
    pub(crate) fn finish(&self, tagged: &Tagged, done: &Completion) -> Result<(), Overrun> {
        if let Some(posted) = tagged.completed {
            return posted;
        }
        let mut completion = *done;
        completion.opcode = tagged.opcode();
        if done.status != WcStatus::Success {
            if tagged.kind == Kind::Unexpected {
                self.inner.lock().matcher.uncount_unexpected();
            }
            return self.cq.post_from(&completion, None);
        }
        let (from, to) = tagged.window(done.byte_len);
        completion.byte_len = to.saturating_sub(from);
        match tagged.kind {
            Kind::Matched => completion.wc_flags |= wr::WC_TM_DATA_VALID,
            Kind::Incomplete => {
                completion.status = WcStatus::TmRndvIncomplete;
                completion.wc_flags |= wr::WC_TM_MATCH;
                tagged.tell(&mut completion);
            }
            Kind::Unexpected if self.inner.lock().matcher.has_waiting() => {
                completion.wc_flags |= wr::WC_TM_SYNC_REQ
            }
            Kind::Unexpected | Kind::Raw | Kind::Fetched => {}
        }
        self.cq.post_from(&completion, None)
    }
}

impl Tagged {
    fn opcode(&self) -> u32 {
        match self.kind {
            Kind::Raw => wr::WC_TM_NO_TAG,
            _ => wr::WC_TM_RECV,
        }
    }

    fn completion(&self, qp: &WireQp, wr_id: u64, byte_len: u32) -> Completion {
        Completion {
            wr_id,
            status: match self.kind {
                Kind::Incomplete => WcStatus::TmRndvIncomplete,
                _ => WcStatus::Success,
            },
            opcode: self.opcode(),
            byte_len,
            qp_num: qp.wire_qpn(),
            ..Completion::default()
        }
    }

    /// Puts what the message says into its completion.
    fn tell(&self, completion: &mut Completion) {
        completion.tm_tag = self.tmh.tag;
        completion.src_qp = self.tmh.app_ctx;
    }
}

/// What a packet shows of a message that may begin with it. `None` for all but SENDs.
pub(crate) fn source<'a>(packet: &Packet<'a>) -> Option<Source<'a>> {
    let position = packet.opcode.position();
    if packet.opcode.family() != Family::Send || !position.begins() {
        return None;
    }
    let payload = packet.payload;
    // A key to invalidate may yet fail the message.
    let whole = if position.ends() && packet.ieth.is_none() {
        Whole::Packet(payload)
    } else {
        Whole::No
    };
    Some(Source {
        head: payload.get(..RNDV_LEN).unwrap_or(payload),
        whole,
        imm: packet.immdt.map(|h| h.raw),
        solicited: packet.bth.solicited,
        sleeps: false,
    })
}
