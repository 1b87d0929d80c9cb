// SPDX-License-Identifier: GPL-2.0

//! `ibv_query_qp`.

use crate::prelude::*;
use crate::verbs::provider::Xroce;
use rdma::qp::{
    Qp,
    QpQuery, //
};

/// Reports the attributes as they were set, and the state as it is.
pub(crate) fn query(qp: &Qp<Xroce>) -> Result<QpQuery> {
    let wire = &qp.data().wire;
    Ok(QpQuery {
        attr: wire.attributes(),
        signal_all: wire.sq_sig_all,
    })
}
