// SPDX-License-Identifier: GPL-2.0

//! The end of queue pairs.

use super::QpData;
use crate::prelude::*;
use crate::provider::Xroce;
use crate::qp::QpKind;
use crate::tables;
use rdma::qp::{
    DestroyCause,
    Qp, //
};
use rdma::restrack::TrackedQp;

impl WireQp {
    /// Takes the QP out of the table and ends all it does; packets that found it before may still hold
    /// it, and do nothing with it. Process context.
    fn retire(&self) {
        if self.kind == QpKind::Gsi {
            tables::remove_gsi(self);
        }
        if let Some(tables) = tables::get() {
            drop(tables.qps.remove(self.qpn));
        }
        for ring in [&self.rings.sq, &self.rings.rq].into_iter().flatten() {
            let _ = ring.fetch_or(abi::RING_KERNEL_FLAGS, abi::RING_DEAD);
        }
        {
            let _attr = self.attr.lock();
            self.retired.store(1, Relaxed);
        }
        self.stop();
    }
}

/// An XRC target, as its domain sees it.
#[derive(Clone)]
pub(crate) struct Tgt {
    pub(crate) wire: Ref<WireQp>,
    /// Its entry in `rdma res`, which is gone when the target has ended. Calls that hold a copy of this
    /// may go on with what is left of it.
    pub(crate) shown: Arc<TrackedQp<Xroce>>,
}

impl xrc::Target for Tgt {
    fn end(&self) {
        // First, since its number is free afterwards, and of two with one number only one is shown.
        self.shown.hide();
        self.wire.retire();
    }
}

/// `ibv_destroy_qp`, or the end of a process. A view of an XRC target takes the target along only if
/// the rules of the domain say so.
pub(crate) fn destroy(qp: &Qp<Xroce>, cause: DestroyCause) {
    let QpData { wire, view, .. } = qp.data();
    match view {
        Some(view) => view.close(match cause {
            DestroyCause::Explicit => xrc::Close::Explicit,
            DestroyCause::FileClosing => xrc::Close::FileClosing,
        }),
        None => wire.retire(),
    }
}
