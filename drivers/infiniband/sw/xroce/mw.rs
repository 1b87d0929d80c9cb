// SPDX-License-Identifier: GPL-2.0

//! Memory windows. The device has none (`max_mw` is 0); a work request that binds one fails.

use crate::prelude::*;
use crate::qp::request::BindPart;

/// The work request BIND_MW.
pub(crate) fn bind(_qp: &WireQp, _part: &BindPart) -> Result<(), WcStatus> {
    Err(WcStatus::LocQpOpErr)
}
