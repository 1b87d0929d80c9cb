// SPDX-License-Identifier: GPL-2.0

//! What a matching list is shown of a message that begins.

use crate::access::{
    self,
    ScatterError, //
};
use crate::local::Payload;
use crate::prelude::*;
use crate::qp::request::Sge;
use roce::opcode::Family;
use roce::tm::RNDV_LEN;
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
    /// The run that brings it may wait for memory.
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
    /// Bytes; `None` for a longer message.
    pub(super) fn len(&self) -> Option<u32> {
        match self {
            Whole::No => None,
            Whole::Packet(bytes) => Some(bytes.len() as u32),
            Whole::Local(payload) => Some(payload.len()),
        }
    }

    /// Whether it is in on-demand memory.
    pub(super) fn sleeps(&self) -> bool {
        match self {
            Whole::No | Whole::Packet(_) => false,
            Whole::Local(payload) => payload.sleeps(),
        }
    }

    /// Stores all but the first `skip` bytes, up to byte `end`, in a list.
    pub(super) fn scatter(
        &self,
        pd: PdId,
        list: &[Sge],
        skip: u32,
        end: u32,
    ) -> Result<(), ScatterError> {
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
