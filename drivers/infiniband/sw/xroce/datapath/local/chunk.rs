// SPDX-License-Identifier: GPL-2.0

//! Copying a message chunk by chunk, to or from the place that the peer's responder has named.

use super::copy::{
    copy,
    CopyFault,
    End,
    Until, //
};
use super::data::Data;
use super::transfer::Transfer;
use crate::access::{
    self,
    ScatterError, //
};
use crate::mr;
use crate::prelude::*;
use crate::qp::receive::{
    remote_pd,
    Current,
    RecvSide, //
};
use crate::tm::receive::Tagged;
use roce::responder::{
    LocalOutcome,
    LocalPlan,
    RemoteSlice, //
};

/// The most bytes that are copied without looking around.
const CHUNK: u32 = 256 << 10;

/// How far a message has been copied.
pub(super) enum Copied {
    /// Some of it.
    Part,
    /// All of it.
    All,
}

/// Whose memory cannot be accessed.
pub(super) enum ChunkFault {
    /// The sender's.
    Sender,
    /// The peer's; its responder is told this.
    Peer(LocalOutcome),
}

/// Copies the next chunk of a message.
pub(super) fn copy_chunk(
    data: &Data<'_>,
    peer: &WireQp,
    recv: &RecvSide,
    transfer: &mut Transfer,
    plan: LocalPlan,
    until: Until,
) -> Result<Copied, ChunkFault> {
    match plan {
        LocalPlan::Receive => to_receive(data, &recv.io.current, transfer, until),
        LocalPlan::Write(slice) => {
            let to = remote(peer, &slice)?;
            transfer
                .copy_some(slice.len, |at, len| data.copy_to(&to, at, len, until))
                .map_err(to_peer(LocalOutcome::RemoteFault))
        }
        LocalPlan::AtomicWrite(slice) => {
            let to = remote(peer, &slice)?;
            transfer
                .copy_some(slice.len, |_, len| data.write_at_once(&to).map(|()| len))
                .map_err(to_peer(LocalOutcome::RemoteFault))
        }
        LocalPlan::Read(slice) => {
            let (from, to) = (remote(peer, &slice)?, data.list());
            transfer
                .copy_some(slice.len, |at, len| {
                    copy(&from, &to, at, len, mr::REMOTE_READ, until)
                })
                .map_err(|fault| match fault {
                    CopyFault::Source => ChunkFault::Peer(LocalOutcome::RemoteFault),
                    CopyFault::Destination => ChunkFault::Sender,
                })
        }
        LocalPlan::Atomic { .. } | LocalPlan::Nothing => Ok(Copied::All),
    }
}

/// Copies to the current receive of the peer: the part of the message that is stored there, unless
/// its matching list has stored it at once.
fn to_receive(
    data: &Data<'_>,
    current: &Current,
    transfer: &mut Transfer,
    until: Until,
) -> Result<Copied, ChunkFault> {
    if current.is_orphan() {
        return Err(ChunkFault::Peer(LocalOutcome::ReceiveFault));
    }
    let total = transfer.message.wr.data_len();
    if let Some(placed) = current.tagged.as_ref().and_then(Tagged::placed) {
        transfer.done = total;
        return placed.map(|()| Copied::All).map_err(|e| match e {
            ScatterError::TooLong => ChunkFault::Peer(LocalOutcome::TooLong),
            ScatterError::Protection => ChunkFault::Peer(LocalOutcome::ReceiveFault),
        });
    }
    let (skip, end) = match &current.tagged {
        Some(tagged) => tagged.window(total),
        None => (0, total),
    };
    transfer.done = transfer.done.max(skip);
    let list = current.list();
    if end.saturating_sub(skip) > access::total(list) {
        return Err(ChunkFault::Peer(LocalOutcome::TooLong));
    }
    let to = End::List {
        pd: current.pd,
        sges: list,
        skip,
    };
    current
        .with_buffers(|| transfer.copy_some(end, |at, len| data.copy_to(&to, at, len, until)))
        .unwrap_or(Err(CopyFault::Destination))
        .map_err(|fault| match fault {
            // The destruction of the SRQ waits for no memory, not for that of the sender either.
            _ if current.is_orphan() => ChunkFault::Peer(LocalOutcome::ReceiveFault),
            fault => to_peer(LocalOutcome::ReceiveFault)(fault),
        })
}

/// The memory of the peer that a key names.
fn remote(peer: &WireQp, slice: &RemoteSlice) -> Result<End<'static>, ChunkFault> {
    Ok(End::Remote {
        pd: remote_pd(peer, slice.srqn).map_err(|_| ChunkFault::Peer(LocalOutcome::RemoteFault))?,
        qpn: peer.qpn,
        rkey: slice.rkey,
        va: slice.va,
    })
}

/// Whose fault it is when a copy from the sender to the peer fails; `outcome`: what the responder
/// is told if it is the peer's.
fn to_peer(outcome: LocalOutcome) -> impl FnOnce(CopyFault) -> ChunkFault {
    move |fault| match fault {
        CopyFault::Source => ChunkFault::Sender,
        CopyFault::Destination => ChunkFault::Peer(outcome),
    }
}

impl Transfer {
    /// Copies the next chunk of the bytes in front of `end`. `copy` copies bytes at an offset, of a
    /// number at most, and returns how many.
    #[inline]
    fn copy_some(
        &mut self,
        end: u32,
        copy: impl FnOnce(u32, u32) -> Result<u32, CopyFault>,
    ) -> Result<Copied, CopyFault> {
        let at = self.done;
        let len = end.saturating_sub(at).min(CHUNK);
        if len > 0 {
            self.done = at.wrapping_add(copy(at, len)?);
        }
        if self.done >= end {
            Ok(Copied::All)
        } else {
            Ok(Copied::Part)
        }
    }
}
