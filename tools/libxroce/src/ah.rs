// SPDX-License-Identifier: GPL-2.0
//! Address handles: the kernel keeps the address, slots carry its number.

use core::ffi::c_int;
use core::mem::{
    offset_of,
    size_of, //
};

use crate::abi::CreateAhResp;
use crate::sys::{
    check,
    object, //
};
use crate::verbs::cmd::{
    self,
    size,
    Buffer, //
};
use crate::verbs::{
    IbvAh,
    IbvAhAttr,
    IbvPd, //
};

/// An address handle.
#[repr(C)]
pub struct Ah {
    base: IbvAh,
    /// For `xroce_send_slot.ud.ah`.
    number: u32,
}

impl Ah {
    /// Number of a program's handle.
    ///
    /// # Safety
    ///
    /// `ah` must come from [`create_ah`] and be alive.
    pub unsafe fn number(ah: *const IbvAh) -> u32 {
        // SAFETY: ours; written once before the program got it.
        unsafe { (*ah.cast::<Self>()).number }
    }
}

/// ibv_create_ah(3)
///
/// # Safety
///
/// Called by libibverbs with a live PD and valid attributes.
pub unsafe extern "C" fn create_ah(pd: *mut IbvPd, attr: *mut IbvAhAttr) -> *mut IbvAh {
    const WORDS: usize = size_of::<CreateAhResp>() / 4;
    type Resp = Buffer<{ size::CREATE_AH_RESP }, [u32; WORDS]>;
    let ah = Box::into_raw(Box::new(Ah {
        base: IbvAh {
            // SAFETY: a live PD.
            context: unsafe { (*pd).context },
            pd,
            handle: 0,
        },
        number: 0,
    }));
    // The driver's part follows one 32-bit word, so it is declared as words.
    let mut resp = Resp::new([0; WORDS]);
    // SAFETY: `ah` is ours; the buffer has the size given.
    let ret = unsafe { cmd::ibv_cmd_create_ah(pd, ah.cast(), attr, resp.ptr(), Resp::SIZE) };
    object(
        check(ret)
            .map(|()| {
                // SAFETY: made above, and nobody else knows it yet.
                unsafe { (*ah).number = resp.driver[offset_of!(CreateAhResp, ah) / 4] };
                ah.cast()
            })
            .inspect_err(|_| {
                // SAFETY: as above.
                drop(unsafe { Box::from_raw(ah) });
            }),
    )
}

/// ibv_destroy_ah(3)
///
/// # Safety
///
/// Called by libibverbs with a handle from [`create_ah`].
pub unsafe extern "C" fn destroy_ah(ah: *mut IbvAh) -> c_int {
    // SAFETY: a live handle.
    let ret = unsafe { cmd::ibv_cmd_destroy_ah(ah) };
    if ret == 0 {
        // SAFETY: `create_ah` made it with Box; it may not be used again.
        drop(unsafe { Box::from_raw(ah.cast::<Ah>()) });
    }
    ret
}
