// SPDX-License-Identifier: GPL-2.0

//! The driver's own part of a uverbs command.
//!
//! C header: `include/rdma/uverbs_ioctl.h`.

use crate::{
    bindings,
    provider::Provider,
    ucontext::UContext, //
};
use core::{
    marker::PhantomData,
    mem::size_of,
    ops::{
        Deref,
        DerefMut, //
    }, //
};
use kernel::{
    error::to_result,
    prelude::*, //
};
use zerocopy::{
    FromBytes,
    Immutable,
    IntoBytes, //
};

/// Request and response of the driver within the command that is being run.
///
/// Exists only for the time of an operation, in the process that called it. Copying may fault
/// pages in, so it may sleep.
///
/// # Invariants
///
/// `raw` is the `driver_udata` of the attribute bundle of a running command.
pub struct Payload<'a> {
    raw: &'a mut bindings::ib_udata,
}

impl Payload<'_> {
    /// Wraps what ib_core passes; `None` for null, which stands for a kernel user.
    ///
    /// # Safety
    ///
    /// `raw` must be null or the `driver_udata` of the attribute bundle of a command that runs in
    /// the current process, and that goes on for all of the value's life.
    pub(crate) unsafe fn from_raw(raw: *mut bindings::ib_udata) -> Option<Self> {
        // SAFETY: Null or valid by contract.
        let raw = unsafe { raw.as_mut() }?;
        // INVARIANT: By contract.
        Some(Self { raw })
    }

    /// Reads the request.
    ///
    /// # Errors
    ///
    /// `EINVAL` when user space has sent less than `T`, `EOPNOTSUPP` when what it has sent beyond
    /// `T` is not zero, `EFAULT`.
    pub fn read<T: FromBytes>(&mut self) -> Result<T> {
        self.read_at_least(size_of::<T>())
    }

    /// Reads the request, of which user space that is older than the structure may send only the
    /// first `min` bytes; the rest reads as zero.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), for `min` bytes.
    pub fn read_at_least<T: FromBytes>(&mut self, min: usize) -> Result<T> {
        let mut value = T::new_zeroed();
        // SAFETY: `value` is `size_of::<T>()` writable bytes, of which every pattern is valid;
        // `raw` is valid by the invariant and the helper copies from the current process.
        to_result(unsafe {
            bindings::_ib_copy_validate_udata_in(
                self.raw,
                (&raw mut value).cast(),
                size_of::<T>(),
                min,
            )
        })?;
        Ok(value)
    }

    /// Writes the response, cut to what user space made room for; further room is zeroed.
    ///
    /// # Errors
    ///
    /// `EFAULT`.
    pub fn write<T: IntoBytes + Immutable>(&mut self, value: &T) -> Result {
        let bytes = value.as_bytes();
        // SAFETY: `bytes` is initialised memory of that length; `raw` is valid by the invariant
        // and the helper copies to the current process.
        to_result(unsafe {
            bindings::_ib_respond_udata(self.raw, bytes.as_ptr().cast(), bytes.len())
        })
    }

    /// Tells whether there is neither a request nor room for a response.
    pub fn is_empty(&self) -> bool {
        self.raw.inlen == 0 && self.raw.outlen == 0
    }
}

/// The [`Payload`] of a command that runs in a user context.
///
/// # Invariants
///
/// The command runs on a device of provider `P`, and is not the one that makes the context: uverbs
/// gives that one a context whose alloc operation is still to come.
pub struct Udata<'a, P: Provider> {
    payload: Payload<'a>,
    _provider: PhantomData<P>,
}

impl<P: Provider> Udata<'_, P> {
    /// Wraps what ib_core passes; `None` for null, which stands for a kernel user.
    ///
    /// # Safety
    ///
    /// As [`Payload::from_raw`]; and the command runs on a device of provider `P` and does not make
    /// its user context.
    pub(crate) unsafe fn from_raw(raw: *mut bindings::ib_udata) -> Option<Self> {
        // SAFETY: By contract.
        let payload = unsafe { Payload::from_raw(raw) }?;
        // INVARIANT: By contract.
        Some(Self {
            payload,
            _provider: PhantomData,
        })
    }

    /// The user context that the command runs in.
    ///
    /// # Errors
    ///
    /// `EINVAL` when there is none.
    pub fn ucontext(&self) -> Result<&UContext<P>> {
        let raw: *const bindings::ib_udata = &*self.payload.raw;
        // SAFETY: By the invariant of `Payload` the helper finds the bundle around it.
        let context = unsafe { bindings::xrdma_ib_udata_context(raw) };
        if context.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: The alloc operation of the context has succeeded, since this is not the command
        // that it is part of (invariant) and uverbs lets no other have it before. It is freed after
        // all commands of the file (hw_destroy_rwsem).
        Ok(unsafe { UContext::from_raw(context) })
    }
}

impl<'a, P: Provider> Deref for Udata<'a, P> {
    type Target = Payload<'a>;

    fn deref(&self) -> &Payload<'a> {
        &self.payload
    }
}

impl<P: Provider> DerefMut for Udata<'_, P> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.payload
    }
}
