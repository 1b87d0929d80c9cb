// SPDX-License-Identifier: GPL-2.0
//! Device memory: pages of the kernel, mapped into the process while they are allocated.

use core::ffi::{
    c_int,
    c_void, //
};
use core::mem::size_of;

use crate::abi;
use crate::context::Context;
use crate::mr;
use crate::sys::{
    check,
    object,
    status,
    Mapping,
    Result,
    EINVAL, //
};
use crate::verbs::cmd;
use crate::verbs::*;

/// Device memory.
#[repr(C)]
struct Dm {
    /// Filled by libibverbs. Must come first.
    base: VerbsDm,
    map: Mapping,
    length: u64,
}

/// What libibverbs fills, before there is a mapping.
fn zeroed() -> VerbsDm {
    // SAFETY: integers, raw pointers and optional functions: zero is valid.
    unsafe { core::mem::zeroed() }
}

/// # Safety
///
/// `context` must be open and `attr` valid.
unsafe fn alloc(context: *mut IbvContext, attr: &IbvAllocDmAttr) -> Result<*mut IbvDm> {
    if attr.comp_mask != 0 {
        return Err(EINVAL);
    }
    let mut base = zeroed();
    // SAFETY: the caller's arguments; no driver attributes.
    check(unsafe { cmd::ibv_cmd_alloc_dm(context, attr, &mut base, core::ptr::null_mut()) })?;
    let offset = abi::DM_MMAP_BASE + u64::from(base.handle) * abi::DM_MAX_SIZE;
    // SAFETY: an open context.
    let fd = unsafe { Context::fd(context) };
    match Mapping::device(fd, offset, attr.length) {
        Ok(map) => {
            base.dm.memcpy_to_dm = Some(copy_to);
            base.dm.memcpy_from_dm = Some(copy_from);
            let dm = Dm {
                base,
                map,
                length: attr.length as u64,
            };
            Ok(Box::into_raw(Box::new(dm)).cast())
        }
        Err(e) => {
            // SAFETY: made above, and nobody else knows it.
            unsafe { cmd::ibv_cmd_free_dm(&mut base) };
            Err(e)
        }
    }
}

/// ibv_alloc_dm(3)
///
/// # Safety
///
/// Called by libibverbs with an open context and valid attributes.
pub unsafe extern "C" fn alloc_dm(
    context: *mut IbvContext,
    attr: *mut IbvAllocDmAttr,
) -> *mut IbvDm {
    // SAFETY: passed on.
    object(unsafe { alloc(context, &*attr) })
}

/// ibv_free_dm(3)
///
/// # Safety
///
/// Called by libibverbs with memory from [`alloc_dm`].
pub unsafe extern "C" fn free_dm(dm: *mut IbvDm) -> c_int {
    // SAFETY: a live object of ours.
    let ret = unsafe { cmd::ibv_cmd_free_dm(dm.cast()) };
    if ret == 0 {
        // SAFETY: `alloc` made it with Box; it may not be used again.
        drop(unsafe { Box::from_raw(dm.cast::<Dm>()) });
    }
    ret
}

/// The address of `len` bytes at `offset`, which as in other devices are
/// whole words.
fn place(dm: &Dm, offset: u64, len: usize) -> Result<*mut u8> {
    const WORD: u64 = size_of::<u32>() as u64;
    let end = offset.checked_add(len as u64).ok_or(EINVAL)?;
    if end > dm.length || offset % WORD != 0 || len as u64 % WORD != 0 {
        return Err(EINVAL);
    }
    // SAFETY: inside the mapping, which has at least `length` bytes.
    Ok(unsafe { dm.map.base().as_ptr().add(offset as usize) })
}

unsafe extern "C" fn copy_to(
    dm: *mut IbvDm,
    offset: u64,
    from: *const c_void,
    len: usize,
) -> c_int {
    // SAFETY: a live object of ours.
    let to = place(unsafe { &*dm.cast::<Dm>() }, offset, len);
    // SAFETY: `to` is inside the mapping; `from` is the caller's.
    status(to.map(|to| unsafe { core::ptr::copy(from.cast(), to, len) }))
}

unsafe extern "C" fn copy_from(to: *mut c_void, dm: *mut IbvDm, offset: u64, len: usize) -> c_int {
    // SAFETY: a live object of ours.
    let from = place(unsafe { &*dm.cast::<Dm>() }, offset, len);
    // SAFETY: `from` is inside the mapping; `to` is the caller's.
    status(from.map(|from| unsafe { core::ptr::copy(from, to.cast(), len) }))
}

/// ibv_reg_dm_mr(3)
///
/// # Safety
///
/// Called by libibverbs with live objects.
pub unsafe extern "C" fn reg_dm_mr(
    pd: *mut IbvPd,
    dm: *mut IbvDm,
    offset: u64,
    length: usize,
    access: u32,
) -> *mut IbvMr {
    let mr = mr::new();
    // SAFETY: live objects; `mr` is ours; no driver attributes.
    let ret = unsafe {
        cmd::ibv_cmd_reg_dm_mr(
            pd,
            dm.cast(),
            offset,
            length,
            access,
            mr,
            core::ptr::null_mut(),
        )
    };
    mr::finish(mr, ret)
}
