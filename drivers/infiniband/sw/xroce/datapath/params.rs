// SPDX-License-Identifier: GPL-2.0

//! Module parameters that the data path reads. They are set when the module is loaded.

use crate::prelude::*;

/// Whether peers on the same host are served by copying.
static LOCAL_COPY: Atomic<u32> = Atomic::new(1);

/// Whether packets may share super-packets.
static SUPER_PACKETS: Atomic<u32> = Atomic::new(1);

/// Which rings are polled: 0 none, 1 those that are posted to at a high rate, 2 those that are
/// posted to at any rate.
static POLL_RINGS: Atomic<u32> = Atomic::new(1);

/// With `poll_rings=2`, which is for tests on a debug kernel, the times of a poller are multiplied
/// by this.
const SLOW: u32 = 16;

/// Sets the parameters; before the first device is made.
pub fn set(local_copy: bool, super_packets: bool, poll_rings: u32) {
    LOCAL_COPY.store(u32::from(local_copy), Relaxed);
    SUPER_PACKETS.store(u32::from(super_packets), Relaxed);
    POLL_RINGS.store(poll_rings, Relaxed);
}

/// Whether peers on the same host are served by copying; see `local.rs`. Any context.
pub(crate) fn local_copy() -> bool {
    LOCAL_COPY.load(Relaxed) != 0
}

/// Whether packets may share super-packets. Those that come are taken in any case. Any context.
pub(crate) fn super_packets() -> bool {
    SUPER_PACKETS.load(Relaxed) != 0
}

/// Whether rings are polled; see `qp/hot.rs`. Any context.
#[inline]
pub(crate) fn poll_rings() -> bool {
    POLL_RINGS.load(Relaxed) != 0
}

/// Whether a ring may be polled however slowly it is posted to. No rate is high on every debug
/// kernel: one READ can take longer there than many do elsewhere. Any context.
#[inline]
pub(crate) fn poll_any_rate() -> bool {
    POLL_RINGS.load(Relaxed) > 1
}

/// What the times of a poller are multiplied by. Any context.
#[inline]
pub(crate) fn poll_times() -> u32 {
    match poll_any_rate() {
        false => 1,
        true => SLOW,
    }
}
