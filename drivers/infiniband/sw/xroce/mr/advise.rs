// SPDX-License-Identifier: GPL-2.0

//! Prefetching memory that is not pinned.

use super::{
    offset,
    Region,
    WireMr, //
};
use crate::prelude::*;
use crate::provider::Xroce;
use crate::tables;
use rdma::mr::{
    access,
    Advice,
    AdvisedRange, //
};
use rdma::pd::Pd;

/// `ibv_advise_mr`: prefetches parts of regions that are not pinned. EFAULT for a key that is not of
/// such a region of the protection domain, a range outside of it, or memory that is not there; EPERM
/// for a region that may not be written so; EINTR for a signal.
pub(crate) fn advise(pd: &Pd<Xroce>, advice: Advice, wait: bool, list: &[AdvisedRange]) -> Result {
    let tables = tables::tables()?;
    for range in list {
        // Not of a region that is pinned: its owner waits for readers, not for references.
        let fits = |mr: &WireMr| mr.pd == pd.data().id() && mr.sleeps();
        let mr = tables.mrs.get_if(range.lkey >> 8, fits).ok_or(EFAULT)?;
        let Region::Fixed(region) = &mr.kind else {
            return Err(EFAULT);
        };
        let Memory::OnDemand(memory) = &*region.memory else {
            return Err(EFAULT);
        };
        if region.key != range.lkey {
            return Err(EFAULT);
        }
        if advice == Advice::PrefetchWrite && region.access & access::LOCAL_WRITE == 0 {
            return Err(EPERM);
        }
        let len = u64::from(range.length);
        let at = offset(region.iova, region.length, range.addr, len).ok_or(EFAULT)?;
        let done = match advice {
            Advice::Prefetch => memory.prefetch(at, len, false),
            Advice::PrefetchWrite => memory.prefetch(at, len, true),
            // What is there is there: pages are looked up at each use.
            Advice::PrefetchNoFault => Ok(()),
        };
        if wait {
            done?;
        }
    }
    Ok(())
}
