// SPDX-License-Identifier: GPL-2.0

//! Module parameters that the data path reads. They are set when the module is loaded.

use crate::prelude::*;

/// Whether peers on the same host are served by copying.
static LOCAL_COPY: Atomic<u32> = Atomic::new(1);

/// Sets the parameters; before the first device is made.
pub fn set(local_copy: bool) {
    LOCAL_COPY.store(u32::from(local_copy), Relaxed);
}

/// Whether peers on the same host are served by copying; see `local.rs`. Any context.
pub(crate) fn local_copy() -> bool {
    LOCAL_COPY.load(Relaxed) != 0
}
