// SPDX-License-Identifier: GPL-2.0
//! The few system facilities that the provider needs, without the `libc` crate.

use core::ffi::{
    c_char,
    c_int,
    c_long,
    c_ulong,
    c_void, //
};
use core::ptr::NonNull;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{
    fence,
    Ordering, //
};
use std::sync::{
    Mutex,
    MutexGuard,
    PoisonError, //
};

use crate::abi;

/// An errno value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub c_int);

/// Result of what can fail with an errno.
pub type Result<T = ()> = core::result::Result<T, Errno>;

pub const ENOENT: Errno = Errno(2);
pub const EINTR: Errno = Errno(4);
pub const EIO: Errno = Errno(5);
pub const ENOMEM: Errno = Errno(12);
pub const EACCES: Errno = Errno(13);
pub const EBUSY: Errno = Errno(16);
pub const EEXIST: Errno = Errno(17);
pub const EINVAL: Errno = Errno(22);
pub const EPROTO: Errno = Errno(71);
pub const EOVERFLOW: Errno = Errno(75);
pub const EOPNOTSUPP: Errno = Errno(95);

/// `dladdr`'s answer.
#[repr(C)]
struct DlInfo {
    file: *const c_char,
    base: *mut c_void,
    symbol: *const c_char,
    address: *mut c_void,
}

/// `struct timespec` of a 64-bit system.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Timespec {
    pub sec: c_long,
    pub nsec: c_long,
}

extern "C" {
    fn mmap(
        addr: *mut c_void,
        len: usize,
        prot: c_int,
        flags: c_int,
        fd: c_int,
        offset: i64,
    ) -> *mut c_void;
    fn munmap(addr: *mut c_void, len: usize) -> c_int;
    /// Its last argument is the new address.
    fn mremap(addr: *mut c_void, old_len: usize, new_len: usize, flags: c_int, ...) -> *mut c_void;
    fn write(fd: c_int, buf: *const c_void, len: usize) -> isize;
    fn ioctl(fd: c_int, request: c_ulong, arg: *mut c_void) -> c_int;
    fn clock_gettime(clock: c_int, out: *mut Timespec) -> c_int;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dladdr(addr: *const c_void, info: *mut DlInfo) -> c_int;
    fn free(ptr: *mut c_void);
    fn __errno_location() -> *mut c_int;
}

const PROT_READ_WRITE: c_int = 3;
const MAP_SHARED: c_int = 1;
const MAP_PRIVATE: c_int = 2;
const MAP_ANONYMOUS: c_int = 0x20;
const MREMAP_MAYMOVE: c_int = 1;
const MREMAP_FIXED: c_int = 2;

/// `CLOCK_REALTIME`
pub const CLOCK_REALTIME: c_int = 0;
/// `CLOCK_MONOTONIC_RAW`: the clock of [`crate::abi::Cqe::timestamp`].
pub const CLOCK_MONOTONIC_RAW: c_int = 4;

/// The calling thread's errno.
pub fn errno() -> Errno {
    // SAFETY: the C library gives every thread a valid errno location.
    Errno(unsafe { *__errno_location() })
}

/// Sets the calling thread's errno.
pub fn set_errno(e: Errno) {
    // SAFETY: the C library gives every thread a valid errno location.
    unsafe { *__errno_location() = e.0 }
}

/// What a verb that returns an `int` returns: 0, or the errno value, which
/// libibverbs' own functions leave in errno too.
pub fn status(r: Result) -> c_int {
    match r {
        Ok(()) => 0,
        Err(e) => {
            set_errno(e);
            e.0
        }
    }
}

/// What a verb that returns an object returns: it, or NULL with errno set.
pub fn object<T>(r: Result<*mut T>) -> *mut T {
    r.unwrap_or_else(|e| {
        set_errno(e);
        core::ptr::null_mut()
    })
}

/// Turns the return value of libibverbs' command functions into a result.
///
/// # Errors
///
/// The error number that the function returned or left in `errno`.
pub fn check(ret: c_int) -> Result {
    match ret {
        0 => Ok(()),
        // Older functions answer -1 and set errno.
        r if r < 0 => Err(errno()),
        r => Err(Errno(r)),
    }
}

/// Address of a function of the loaded libraries; 0 when none has it.
pub fn symbol(name: &core::ffi::CStr) -> usize {
    // SAFETY: NULL (RTLD_DEFAULT) looks in everything that is loaded.
    unsafe { dlsym(core::ptr::null_mut(), name.as_ptr()) as usize }
}

/// Nanoseconds of a clock.
pub fn clock_ns(clock: c_int) -> u64 {
    let mut t = Timespec::default();
    // SAFETY: `t` is a valid place for the answer.
    unsafe { clock_gettime(clock, &mut t) };
    (t.sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(t.nsec as u64)
}

/// One whole `write()`, repeated when a signal interrupts it.
///
/// # Errors
///
/// The error of `write()`; EIO when it wrote less than all.
pub fn write_all(fd: c_int, buf: &[u8]) -> Result {
    loop {
        // SAFETY: `buf` is valid for reads of its length.
        let n = unsafe { write(fd, buf.as_ptr().cast(), buf.len()) };
        if n == buf.len() as isize {
            return Ok(());
        }
        match errno() {
            EINTR if n < 0 => {}
            e if n < 0 => return Err(e),
            _ => return Err(EIO),
        }
    }
}

/// An `ioctl()` with a pointer argument, repeated when a signal interrupts it.
///
/// # Errors
///
/// The error of `ioctl()`, never EINTR.
///
/// # Safety
///
/// `arg` must be what `request` on this descriptor expects, pointers in it
/// included.
pub unsafe fn ioctl_ptr(fd: c_int, request: c_ulong, arg: *mut c_void) -> Result {
    loop {
        // SAFETY: the caller vouches for `arg`.
        if unsafe { ioctl(fd, request, arg) } == 0 {
            return Ok(());
        }
        match errno() {
            EINTR => {}
            e => return Err(e),
        }
    }
}

/// Frees memory that the C library allocated.
///
/// # Safety
///
/// `ptr` must come from `malloc` or `calloc` and must not be used again.
pub unsafe fn c_free(ptr: *mut c_void) {
    // SAFETY: passed on.
    unsafe { free(ptr) }
}

/// Path of the file that a loaded function belongs to.
pub fn file_of(function: *const c_void) -> Option<String> {
    let mut info = DlInfo {
        file: core::ptr::null(),
        base: core::ptr::null_mut(),
        symbol: core::ptr::null(),
        address: core::ptr::null_mut(),
    };
    // SAFETY: dladdr only compares the address, and `info` is valid.
    if unsafe { dladdr(function, &mut info) } == 0 || info.file.is_null() {
        return None;
    }
    // SAFETY: dladdr gave a C string that lives as long as its library, which
    // stays loaded: we are linked against it.
    let name = unsafe { core::ffi::CStr::from_ptr(info.file) };
    name.to_str().ok().map(str::to_owned)
}

/// One line on stderr, for what a person must learn although no log is on.
pub fn complain(line: core::fmt::Arguments<'_>) {
    // Not eprintln: that panics when stderr is closed.
    let _ = writeln!(std::io::stderr(), "libxroce: {line}");
}

/// What is mapped at the moment.
struct Mapped {
    next: u64,
    /// By number, which is never used again, because addresses are: descriptor, address, length.
    all: BTreeMap<u64, (c_int, usize, usize)>,
}

static MAPPED: Mutex<Mapped> = Mutex::new(Mapped {
    next: 0,
    all: BTreeMap::new(),
});

fn mapped() -> MutexGuard<'static, Mapped> {
    MAPPED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Replaces a mapping of a device by memory of the process with what it contains. When there is no
/// memory, nothing changes.
///
/// # Safety
///
/// `base` and `len` must be those of a whole mapping.
unsafe fn detach(base: *mut c_void, len: usize) {
    let head = abi::RING_HDR_SIZE.min(len);
    // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory. It is
    // of the same length as the one that is copied (contract), and then takes its place, in one
    // step, with the same content and rights: who has pointers into it notices nothing. The kernel
    // may write meanwhile: the index of a ring is copied before the slots that it covers.
    unsafe {
        let flags = MAP_PRIVATE | MAP_ANONYMOUS;
        let copy = mmap(core::ptr::null_mut(), len, PROT_READ_WRITE, flags, -1, 0);
        if copy as isize == -1 {
            return;
        }
        let (from, to) = (base.cast::<u8>(), copy.cast::<u8>());
        core::ptr::copy_nonoverlapping(from, to, head);
        fence(Ordering::SeqCst);
        core::ptr::copy_nonoverlapping(from.add(head), to.add(head), len - head);
        let moved = mremap(copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, base);
        if moved as isize == -1 {
            munmap(copy, len);
        }
    }
}

/// Memory shared with the kernel; unmapped when dropped.
pub struct Mapping {
    base: NonNull<u8>,
    len: usize,
    number: u64,
}

impl Mapping {
    /// Maps `len` bytes at `offset` of a device file.
    ///
    /// # Errors
    ///
    /// EINVAL for no bytes or an offset that `mmap()` cannot take; the error of `mmap()`.
    pub fn device(fd: c_int, offset: u64, len: usize) -> Result<Self> {
        let offset = i64::try_from(offset).map_err(|_| EINVAL)?;
        Self::new(len, MAP_SHARED, fd, offset)
    }

    /// Zeroed memory of this process, to test what is made for a device's.
    ///
    /// # Errors
    ///
    /// EINVAL for no bytes; the error of `mmap()`.
    #[cfg(test)]
    pub fn anonymous(len: usize) -> Result<Self> {
        Self::new(len, MAP_SHARED | MAP_ANONYMOUS, -1, 0)
    }

    fn new(len: usize, flags: c_int, fd: c_int, offset: i64) -> Result<Self> {
        if len == 0 {
            return Err(EINVAL);
        }
        // SAFETY: a new mapping at an address of the kernel's choice touches
        // no existing memory.
        let p = unsafe {
            mmap(
                core::ptr::null_mut(),
                len,
                PROT_READ_WRITE,
                flags,
                fd,
                offset,
            )
        };
        if p as isize == -1 {
            return Err(errno());
        }
        let base = NonNull::new(p.cast()).ok_or(ENOMEM)?;
        let mut mapped = mapped();
        let number = mapped.next;
        mapped.next += 1;
        mapped.all.insert(number, (fd, p as usize, len));
        Ok(Self { base, len, number })
    }

    /// Replaces all that was mapped through `fd`, which is about to be closed, by copies: each
    /// mapping would keep the file open. They are copies, which nobody fills any more, because a
    /// thread may still look at a queue when its process ends and librdmacm closes the device. What
    /// there is no memory for stays.
    ///
    /// # Safety
    ///
    /// Nobody may drop such a mapping meanwhile.
    pub unsafe fn end_all(fd: c_int) {
        // The copies are made without the lock, which a process that is forked meanwhile would
        // find locked for ever.
        let mut ended = Vec::new();
        mapped().all.retain(|_, &mut (of, base, len)| {
            if of == fd {
                ended.push((base, len));
            }
            of != fd
        });
        for (base, len) in ended {
            // SAFETY: exactly a mapping that `new` made, which nobody has unmapped yet or does so
            // now, as the caller says.
            unsafe { detach(base as *mut c_void, len) };
        }
    }

    /// First byte; page aligned.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        mapped().all.remove(&self.number);
        // SAFETY: this is exactly the mapping that `new` made, or its copy, and whoever
        // holds pointers into it borrows or owns this object.
        unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}

// SAFETY: shared memory has no owner thread; all access goes through `Ring`,
// which says who may touch what.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// A file without a name, to test what maps a device's.
#[cfg(test)]
pub fn unnamed_file() -> std::fs::File {
    static NUMBER: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("libxroce-{}-{number}", std::process::id()));
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .expect("a file");
    std::fs::remove_file(&path).expect("its name");
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_closed_device_leaves_a_copy() {
        let file = unnamed_file();
        let content: Vec<u8> = (0..8192u32).map(|i| (i % 251) as u8).collect();
        file.write_all_at(&content, 0).expect("room");
        let map = Mapping::device(file.as_raw_fd(), 0, content.len()).expect("memory");
        let other = Mapping::anonymous(4096).expect("memory");
        let at = |i: usize| {
            assert!(i < map.len());
            // SAFETY: within the mapping; read by nobody else.
            unsafe { map.base().add(i).read_volatile() }
        };
        // SAFETY: both are dropped below.
        unsafe { Mapping::end_all(file.as_raw_fd()) };
        assert!((0..content.len()).all(|i| at(i) == content[i]));
        // Neither side sees what the other one writes.
        file.write_all_at(&[0xff; 8], 0).expect("room");
        assert_eq!(at(0), content[0]);
        // SAFETY: as above.
        unsafe { map.base().add(4096).write_volatile(!content[4096]) };
        let mut byte = [0];
        file.read_exact_at(&mut byte, 4096).expect("content");
        assert_eq!(byte[0], content[4096]);
        // Once more does nothing, and both go.
        // SAFETY: as above.
        unsafe { Mapping::end_all(file.as_raw_fd()) };
        assert_eq!(at(4096), !content[4096]);
        drop((map, other));
    }
}
