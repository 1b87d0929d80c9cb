// SPDX-License-Identifier: GPL-2.0

//! Completions of messages that met a matching list.

use super::tagged::{
    Kind,
    Tagged, //
};
use super::Source;
use crate::cq::Overrun;
use crate::prelude::*;
use crate::tm::{
    Inner,
    Tm, //
};
use crate::wr;

impl Tm {
    /// Tells that a message took a tag, whose data are still to come.
    pub(super) fn announce(
        &self,
        qp: &WireQp,
        tagged: &Tagged,
        wr_id: u64,
        source: &Source<'_>,
    ) -> Result<(), Overrun> {
        let mut completion = tagged.completion(qp, wr_id, 0);
        completion.wc_flags = wr::WC_TM_MATCH;
        completion.solicited = source.solicited;
        tagged.tell(&mut completion);
        self.cq.post_from(&completion, None)
    }

    /// Completes a message that was placed at once and took a tag.
    pub(super) fn complete(
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

    /// Completes a message that was placed at once in a receive of the queue; the lock is held.
    pub(super) fn complete_unmatched(
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

    /// The message will not come to its end, and nobody hears of it, because its QP was reset.
    pub(crate) fn forget(&self, tagged: &Tagged) {
        if tagged.kind == Kind::Unexpected && tagged.completed.is_none() {
            self.inner.lock().matcher.uncount_unexpected();
        }
    }

    /// Completes a message that is whole or broke off, unless that was done before. `done` is what
    /// the responder says about it, with the numbers of work request and QP. Fails when the
    /// completion is lost.
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
