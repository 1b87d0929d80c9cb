// SPDX-License-Identifier: GPL-2.0

//! Parameters of the module that packets ask for. They are set when it is loaded.

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
