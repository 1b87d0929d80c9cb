// SPDX-License-Identifier: GPL-2.0

//! The beginning of a message to a tag-matching queue: its head, and the payload of a message of
//! one packet.

use super::copy::{
    End,
    Until, //
};
use super::data::Data;
use crate::access::{
    self,
    ScatterError, //
};
use crate::prelude::*;
use crate::qp::request::Sge;
use crate::qp::send::SendIo;
use crate::tm::receive::{
    Source,
    Whole, //
};
use roce::requester::{
    LocalMessage,
    SendOp, //
};
use roce::tm::RNDV_LEN;

/// The bytes that a message begins with.
#[derive(Clone, Copy)]
pub(super) struct Head {
    bytes: [u8; RNDV_LEN],
    len: usize,
}

impl Head {
    /// Reads the head of a message; `None` for requests other than SENDs. A message that the
    /// sender's keys do not allow must not take a tag, so they are checked here. This may wait for
    /// memory, so the peer's side is not held.
    pub(super) fn read(
        io: &SendIo,
        qp: &WireQp,
        message: &LocalMessage,
    ) -> Option<Result<Self, Fault>> {
        let is_send = matches!(
            message.wr.op,
            SendOp::Send | SendOp::SendImm | SendOp::SendInv
        );
        is_send.then(|| Self::of(&Data::new(io, qp, message.slot), message.wr.length))
    }

    /// The head of a message of `length` bytes.
    fn of(data: &Data<'_>, length: u32) -> Result<Self, Fault> {
        data.check()?;
        let mut head = Head {
            bytes: [0; RNDV_LEN],
            len: (length as usize).min(RNDV_LEN),
        };
        if let Some(bytes @ [_, ..]) = head.bytes.get_mut(..head.len) {
            data.read(0, bytes)?;
        }
        Ok(head)
    }

    /// What the matching list of the peer is shown of the message.
    pub(super) fn source<'a>(
        &'a self,
        io: &'a SendIo,
        qp: &WireQp,
        message: &LocalMessage,
    ) -> Source<'a> {
        let wr = &message.wr;
        // A key to invalidate may yet fail the message.
        let whole = if message.packets <= 1 && wr.op != SendOp::SendInv {
            let data = Data::new(io, qp, message.slot);
            Whole::Local(Payload {
                data,
                len: wr.length,
                sleeps: qp.sleeps() && data.sleeps(),
            })
        } else {
            Whole::No
        };
        Source {
            head: self.bytes.get(..self.len).unwrap_or(&[]),
            whole,
            imm: (wr.op == SendOp::SendImm).then_some(wr.imm),
            solicited: wr.solicited,
            sleeps: qp.sleeps(),
        }
    }
}

/// A message of one packet, in the buffers of its sender.
pub(crate) struct Payload<'a> {
    data: Data<'a>,
    len: u32,
    sleeps: bool,
}

impl Payload<'_> {
    /// Bytes.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Some of the buffers are on-demand memory.
    pub(crate) fn sleeps(&self) -> bool {
        self.sleeps
    }

    /// Stores all but the first `skip` bytes, up to byte `end`, in a list. Any context.
    pub(crate) fn scatter(
        &self,
        pd: PdId,
        list: &[Sge],
        skip: u32,
        end: u32,
    ) -> Result<(), ScatterError> {
        let len = end.saturating_sub(skip);
        if len > access::total(list) {
            return Err(ScatterError::TooLong);
        }
        if len == 0 {
            return Ok(());
        }
        let to = End::List {
            pd,
            sges: list,
            skip,
        };
        self.data
            .copy_to(&to, skip, len, Until(None))
            .map(drop)
            .map_err(|_| ScatterError::Protection)
    }
}
