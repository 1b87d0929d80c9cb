// SPDX-License-Identifier: GPL-2.0
//! The user context: opening a device and agreeing on the ABI.

use core::ffi::{
    c_int,
    c_void, //
};
use core::mem::size_of;

use crate::abi::{
    self,
    AllocUcontextReq,
    AllocUcontextResp, //
};
use crate::layout::{
    self,
    Layout, //
};
use crate::sys::{
    self,
    check,
    complain,
    object,
    Errno,
    Mapping,
    Result,
    ENOMEM,
    EPROTO, //
};
use crate::verbs::cmd::{
    self,
    size,
    Buffer, //
};
use crate::verbs::{
    IbvContext,
    IbvDevice,
    VerbsContext, //
};

/// Features that this library can use.
const FEATURES: u64 = abi::FEATURE_SHARED_ARM | abi::FEATURE_AWAKE | abi::FEATURE_ONE_MAPPING;

/// An open device. libibverbs owns the memory in front of it
/// (`struct verbs_context` ends with the `ibv_context` that starts this).
#[repr(C)]
pub struct Context {
    ibv: IbvContext,
    /// Bits of `enum xroce_features` in force.
    pub features: u64,
}

impl Context {
    /// Our part of a context.
    ///
    /// # Safety
    ///
    /// `context` must come from [`alloc_context`] and be open.
    pub unsafe fn features(context: *mut IbvContext) -> u64 {
        // SAFETY: a context of ours, written once before libibverbs knew it.
        unsafe { (*context.cast::<Self>()).features }
    }

    /// Descriptor of the device file.
    ///
    /// # Safety
    ///
    /// `context` must be an open context.
    pub unsafe fn fd(context: *mut IbvContext) -> c_int {
        // SAFETY: written once when the device was opened.
        unsafe { (*context).cmd_fd }
    }
}

/// Says why a device cannot be opened; otherwise the program's own message
/// ("failed to open device") is all a person gets.
fn explain(e: Errno) {
    if e == EPROTO {
        complain(format_args!(
            "the loaded xroce module does not speak version {} of the ABI; \
             install the module and the library of one release",
            abi::ABI_VERSION
        ));
    }
}

/// Asks the kernel for a context.
///
/// # Safety
///
/// `base` must be an initialised `struct verbs_context`.
unsafe fn get_context(layout: &Layout, base: *mut VerbsContext) -> Result<AllocUcontextResp> {
    let mut cmd = Buffer::<{ size::GET_CONTEXT }, _>::new(AllocUcontextReq {
        abi_version: abi::ABI_VERSION,
        reserved: 0,
        features: FEATURES,
    });
    let mut resp = Buffer::<{ size::GET_CONTEXT_RESP }, _>::new(AllocUcontextResp::default());
    type Cmd = Buffer<{ size::GET_CONTEXT }, AllocUcontextReq>;
    type Resp = Buffer<{ size::GET_CONTEXT_RESP }, AllocUcontextResp>;
    // SAFETY: `base` as the caller says; the buffers have the sizes given.
    check(unsafe {
        cmd::get_context(
            layout,
            base,
            (cmd.ptr(), Cmd::SIZE),
            (resp.ptr(), Resp::SIZE),
        )
    })?;
    if resp.driver.abi_version != abi::ABI_VERSION {
        return Err(EPROTO);
    }
    Ok(resp.driver)
}

/// Makes a context of an open file; `agree` comes to terms with the kernel and
/// gives the features in force. Takes over `fd` in any case.
///
/// # Safety
///
/// `device` must be a device of ours, `fd` its open file.
unsafe fn make(
    layout: &Layout,
    device: *mut IbvDevice,
    fd: c_int,
    agree: impl FnOnce(*mut VerbsContext, *mut IbvContext) -> Result<u64>,
) -> Result<*mut VerbsContext> {
    // SAFETY: libibverbs' arguments are passed on. It closes `fd` when it
    // fails, and allocates zeroed memory in which its own structure comes
    // first.
    let base = unsafe {
        cmd::_verbs_init_and_alloc_context(
            device,
            fd,
            layout.context_head + size_of::<Context>(),
            core::ptr::null_mut(),
            abi::DRIVER_ID,
        )
    };
    if base.is_null() {
        return Err(ENOMEM);
    }
    let verbs = base.cast::<VerbsContext>();
    // SAFETY: our part starts where libibverbs' head ends, with its context.
    let ours = unsafe { base.cast::<u8>().add(layout.context_head) }.cast::<Context>();
    match agree(verbs, ours.cast()) {
        Ok(features) => {
            // SAFETY: nobody else knows the memory yet.
            unsafe {
                (*ours).features = features;
                cmd::verbs_set_ops(verbs, layout.ops());
            }
            Ok(verbs)
        }
        Err(e) => {
            // SAFETY: initialised above, and nobody else knows it; closes fd.
            unsafe {
                cmd::verbs_uninit_context(verbs);
                sys::c_free(base);
            }
            Err(e)
        }
    }
}

/// `alloc_context`: ibv_open_device(3). Takes over `cmd_fd` in any case.
///
/// # Safety
///
/// Called by libibverbs with a device of ours and its open file.
pub unsafe extern "C" fn alloc_context(
    device: *mut IbvDevice,
    cmd_fd: c_int,
    _private: *mut c_void,
) -> *mut VerbsContext {
    let Some(layout) = layout::get() else {
        return object(Err(EPROTO));
    };
    let agree = |verbs, _| {
        // SAFETY: initialised by `make`.
        let resp = unsafe { get_context(layout, verbs) }.inspect_err(|&e| explain(e))?;
        Ok(resp.features & FEATURES)
    };
    // SAFETY: as the caller says.
    object(unsafe { make(layout, device, cmd_fd, agree) })
}

/// `import_context`: ibv_import_device(3). Takes over `cmd_fd` in any case.
///
/// # Safety
///
/// Called by libibverbs with a device of ours and a file on which it is open.
pub unsafe extern "C" fn import_context(
    device: *mut IbvDevice,
    cmd_fd: c_int,
) -> *mut VerbsContext {
    let Some(layout) = layout::get() else {
        return object(Err(EPROTO));
    };
    let agree = |_, context| {
        // SAFETY: initialised by `make`; no driver attributes.
        check(unsafe { cmd::ibv_cmd_query_context(context, core::ptr::null_mut()) })?;
        // Whoever opened the device has agreed with the kernel on the ABI, and
        // the kernel offers every feature to all. What a module that is older
        // than this library refuses is not asked for.
        Ok(FEATURES & !abi::FEATURE_ONE_MAPPING)
    };
    // SAFETY: as the caller says.
    object(unsafe { make(layout, device, cmd_fd, agree) })
}

/// `free_context`: ibv_close_device(3). If the program left queues behind, their rings are shared
/// with the kernel no longer: it learns of the close when nothing holds the file any more, and XRC
/// targets, which outlive the context in their domain, shall know it at once.
///
/// # Safety
///
/// Called by libibverbs with a context of ours that nobody uses any more.
pub unsafe extern "C" fn free_context(context: *mut IbvContext) {
    let base = layout::verbs_context(context);
    // SAFETY: what `make` made; libibverbs allocated it with calloc. Nobody uses the context, so
    // nobody destroys an object of it, which would drop its rings.
    unsafe {
        Mapping::end_all(Context::fd(context));
        cmd::verbs_uninit_context(base);
        sys::c_free(base.cast());
    }
}
