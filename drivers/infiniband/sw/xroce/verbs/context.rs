// SPDX-License-Identifier: GPL-2.0

//! User contexts: which ABI the module and the plug-in of a process share.

use crate::prelude::*;
use datapath::limits;
use rdma::uverbs::udata::Payload;

/// Features of the user ABI.
const FEATURES: u64 = abi::XROCE_FEATURE_SHARED_ARM as u64
    | abi::XROCE_FEATURE_AWAKE as u64
    | abi::XROCE_FEATURE_ONE_MAPPING as u64;

/// `ibv_open_device`: tells the plug-in the version of the ABI, the largest inline payload, and
/// which of its features the module has as well. EPROTO for another version of the ABI, EINVAL if a
/// reserved field is set.
pub(crate) fn alloc(udata: &mut Payload<'_>) -> Result<()> {
    let request: abi::xroce_alloc_ucontext_req = udata.read()?;
    if request.abi_version != abi::XROCE_ABI_VERSION {
        return Err(eproto());
    }
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    udata.write(&abi::xroce_alloc_ucontext_resp {
        abi_version: abi::XROCE_ABI_VERSION,
        max_inline: limits::MAX_INLINE,
        features: request.features & FEATURES,
    })
}
