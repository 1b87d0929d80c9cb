// SPDX-License-Identifier: GPL-2.0

//! Destroying queue pairs.

use super::QpData;
use crate::verbs::provider::Xroce;
use rdma::qp::{
    DestroyCause,
    Qp, //
};

/// `ibv_destroy_qp`, or the end of a process. A view of an XRC target takes the target along only
/// if the rules of the domain say so.
pub(crate) fn destroy(qp: &Qp<Xroce>, cause: DestroyCause) {
    let QpData { wire, view, .. } = qp.data();
    match view {
        Some(view) => view.close(cause),
        None => wire.retire(),
    }
}
