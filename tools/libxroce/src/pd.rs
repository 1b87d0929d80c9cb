// SPDX-License-Identifier: GPL-2.0
//! Protection domains, parent domains and thread domains.
//!
//! A parent domain is another name for a PD: the kernel knows only the PD. The allocators of a
//! parent domain are never called, because the kernel allocates every buffer that it shares with
//! the process. A thread domain promises that only one thread uses the objects made with it; this
//! library does not become faster by that.

use core::ffi::c_int;
use core::sync::atomic::{
    AtomicU32,
    Ordering, //
};

use crate::sys::{
    check,
    object,
    status,
    Errno,
    Result,
    EBUSY,
    EINVAL,
    EOPNOTSUPP, //
};
use crate::verbs::cmd::{
    self,
    size,
    Buffer, //
};
use crate::verbs::{
    IbvContext,
    IbvParentDomainInitAttr,
    IbvPd,
    IbvTd,
    IbvTdInitAttr,
    IBV_PARENT_DOMAIN_ATTRS, //
};

/// A PD, or a parent domain of one.
#[repr(C)]
struct Pd {
    /// Must come first.
    base: IbvPd,
    /// The PD that this is a parent domain of; NULL for a PD.
    of: *mut Pd,
    /// The thread domain that it was made with, or NULL.
    td: *mut Td,
    /// Parent domains of this PD.
    parents: AtomicU32,
}

/// A thread domain.
#[repr(C)]
struct Td {
    /// Must come first.
    base: IbvTd,
    /// Parent domains that were made with it.
    users: AtomicU32,
}

fn new(context: *mut IbvContext, handle: u32) -> *mut Pd {
    Box::into_raw(Box::new(Pd {
        base: IbvPd { context, handle },
        of: core::ptr::null_mut(),
        td: core::ptr::null_mut(),
        parents: AtomicU32::new(0),
    }))
}

/// ibv_alloc_pd(3)
///
/// # Safety
///
/// Called by libibverbs with an open context.
pub unsafe extern "C" fn alloc_pd(context: *mut IbvContext) -> *mut IbvPd {
    let pd = new(context, 0);
    let mut cmd = Buffer::<{ size::ALLOC_PD }, ()>::new(());
    let mut resp = Buffer::<{ size::ALLOC_PD_RESP }, ()>::new(());
    // SAFETY: `pd` is ours; the buffers have the sizes given.
    let ret = unsafe {
        cmd::ibv_cmd_alloc_pd(
            context,
            pd.cast(),
            cmd.ptr(),
            4 * size::ALLOC_PD,
            resp.ptr(),
            4 * size::ALLOC_PD_RESP,
        )
    };
    object(check(ret).map(|()| pd.cast()).inspect_err(|_| {
        // SAFETY: made above, and nobody else knows it.
        drop(unsafe { Box::from_raw(pd) });
    }))
}

/// ibv_dealloc_pd(3): EBUSY for a PD with parent domains.
///
/// # Safety
///
/// Called by libibverbs with a PD or a parent domain from this file.
pub unsafe extern "C" fn dealloc_pd(pd: *mut IbvPd) -> c_int {
    let this = pd.cast::<Pd>();
    // SAFETY: a live domain of ours.
    let (of, td, parents) = unsafe { ((*this).of, (*this).td, &(*this).parents) };
    if !of.is_null() {
        // SAFETY: the PD and the thread domain stay as long as their parent
        // domains, see below; the parent domain may not be used again.
        unsafe {
            // Whoever sees the count frees them: the uses before are over by then.
            (*of).parents.fetch_sub(1, Ordering::Release);
            if !td.is_null() {
                (*td).users.fetch_sub(1, Ordering::Release);
            }
            drop(Box::from_raw(this));
        }
        return 0;
    }
    // What was done in the name of a parent domain comes before the count.
    if parents.load(Ordering::Acquire) != 0 {
        return status(Err(EBUSY));
    }
    // SAFETY: a live PD.
    let ret = unsafe { cmd::ibv_cmd_dealloc_pd(pd) };
    if ret == 0 {
        // SAFETY: made with Box in this file; it may not be used again.
        drop(unsafe { Box::from_raw(this) });
    }
    ret
}

/// EINVAL for no PD, one that is a parent domain, and what is of another context; EOPNOTSUPP for
/// attributes that are not known.
///
/// # Safety
///
/// The PD and the thread domain must be alive.
unsafe fn parent(context: *mut IbvContext, attr: &IbvParentDomainInitAttr) -> Result<*mut Pd> {
    if attr.comp_mask & !IBV_PARENT_DOMAIN_ATTRS != 0 {
        return Err(EOPNOTSUPP);
    }
    if attr.pd.is_null() {
        return Err(EINVAL);
    }
    let (of, td) = (attr.pd.cast::<Pd>(), attr.td.cast::<Td>());
    // SAFETY: live objects of ours.
    unsafe {
        // Not of a parent domain. Nor of another context, where the PD's number may be that of
        // some other one.
        if !(*of).of.is_null()
            || (*of).base.context != context
            || !td.is_null() && (*td).base.context != context
        {
            return Err(EINVAL);
        }
        let domain = new(context, (*of).base.handle);
        (*domain).of = of;
        (*domain).td = td;
        (*of).parents.fetch_add(1, Ordering::Relaxed);
        if !td.is_null() {
            (*td).users.fetch_add(1, Ordering::Relaxed);
        }
        Ok(domain)
    }
}

/// ibv_alloc_parent_domain(3)
///
/// # Safety
///
/// Called by libibverbs with an open context and live objects.
pub unsafe extern "C" fn alloc_parent_domain(
    context: *mut IbvContext,
    attr: *mut IbvParentDomainInitAttr,
) -> *mut IbvPd {
    // SAFETY: as the caller says.
    object(unsafe { parent(context, &*attr) }).cast()
}

/// ibv_alloc_td(3)
///
/// # Safety
///
/// Called by libibverbs with an open context and valid attributes.
pub unsafe extern "C" fn alloc_td(
    context: *mut IbvContext,
    attr: *mut IbvTdInitAttr,
) -> *mut IbvTd {
    // SAFETY: the caller's attributes.
    if unsafe { (*attr).comp_mask } != 0 {
        return object(Err(EINVAL));
    }
    let td = Td {
        base: IbvTd { context },
        users: AtomicU32::new(0),
    };
    Box::into_raw(Box::new(td)).cast()
}

/// ibv_dealloc_td(3): EBUSY while parent domains use it.
///
/// # Safety
///
/// Called by libibverbs with a thread domain from [`alloc_td`].
pub unsafe extern "C" fn dealloc_td(td: *mut IbvTd) -> c_int {
    // SAFETY: a live thread domain of ours.
    if unsafe { (*td.cast::<Td>()).users.load(Ordering::Acquire) } != 0 {
        return status(Err::<(), Errno>(EBUSY));
    }
    // SAFETY: made with Box above; it may not be used again.
    drop(unsafe { Box::from_raw(td.cast::<Td>()) });
    0
}

/// ibv_import_pd(3): a PD of the context that was imported. Whether there is
/// one is seen when it is used.
///
/// # Safety
///
/// Called by libibverbs with an open context.
pub unsafe extern "C" fn import_pd(context: *mut IbvContext, handle: u32) -> *mut IbvPd {
    new(context, handle).cast()
}

/// ibv_unimport_pd(3)
///
/// # Safety
///
/// Called by libibverbs with a PD from [`import_pd`].
pub unsafe extern "C" fn unimport_pd(pd: *mut IbvPd) {
    // SAFETY: made with Box in this file; it may not be used again.
    drop(unsafe { Box::from_raw(pd.cast::<Pd>()) });
}
