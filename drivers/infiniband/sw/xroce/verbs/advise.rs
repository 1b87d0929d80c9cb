// SPDX-License-Identifier: GPL-2.0

//! Prefetching on-demand memory (`ibv_advise_mr`).

use crate::prelude::*;
use crate::verbs::provider::Xroce;
use datapath::mr::{
    offset,
    Region,
    WireMr, //
};
use datapath::{
    mw,
    tables, //
};
use rdma::mr::{
    AccessFlag,
    Advice,
    AdvisedRange, //
};
use rdma::pd::Pd;

/// `ibv_advise_mr`: prefetches parts of on-demand regions. ENOENT for a key that is not of
/// such a region, as with mlx5; EFAULT for a range outside of it, or memory that is not there;
/// EINVAL for the key of a memory window; EPERM for a region of another protection domain or one
/// that may not be written so; EINTR for a signal; EIO when the device is about to go: thousands of
/// ranges of 4 GiB may take hours, and whoever removes the device waits for its commands.
pub(crate) fn advise(pd: &Pd<Xroce>, advice: Advice, wait: bool, list: &[AdvisedRange]) -> Result {
    let tables = tables::tables()?;
    let device = &pd.device().data().wire;
    let go_on = || match device.is_going() {
        true => Err(EIO),
        false => Ok(()),
    };
    for range in list {
        let lkey = Key::new(range.lkey);
        if mw::is_window(lkey) {
            return Err(EINVAL);
        }
        let mut error = ENOENT;
        // Not of a region that is pinned: its owner waits for readers, not for references.
        let fits = |mr: &WireMr| {
            let ours = mr.pd() == pd.data().id();
            if !ours && matches!(mr.kind(), Region::Fixed(r) if r.key == lkey) {
                error = EPERM;
            }
            ours && mr.sleeps()
        };
        let Some(mr) = tables.mrs.get_if(lkey.index(), fits) else {
            return Err(error);
        };
        let Region::Fixed(region) = mr.kind() else {
            return Err(ENOENT);
        };
        let Memory::OnDemand(memory) = &*region.memory else {
            return Err(ENOENT);
        };
        if region.key != lkey {
            return Err(ENOENT);
        }
        if advice == Advice::PrefetchWrite && !region.access.contains(AccessFlag::LocalWrite) {
            return Err(EPERM);
        }
        let len = u64::from(range.length);
        let at = offset(region.iova, region.length, range.addr, len).ok_or(EFAULT)?;
        let done = match advice {
            Advice::Prefetch => memory.prefetch(at, len, Usage::Read, go_on),
            Advice::PrefetchWrite => memory.prefetch(at, len, Usage::Write, go_on),
            // What is there is there: pages are looked up at each use.
            Advice::PrefetchNoFault => Ok(()),
        };
        if wait {
            done?;
        }
    }
    Ok(())
}
