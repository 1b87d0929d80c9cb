// SPDX-License-Identifier: GPL-2.0

//! Growing vectors in a way that cannot panic.

use kernel::{
    alloc::Flags,
    prelude::*, //
};

/// Makes room for one more element of `vec`; the push that follows uses
/// `push_within_capacity`. Process context, may sleep.
///
/// It stands in for `KVec::push` and `KVec::reserve`: these are inlined here with unchecked
/// arithmetic on lengths, and the kernel's overflow checks make panics of that. They cannot happen,
/// but that no object of the module refers to the panic machinery is worth more when there is no
/// exception (`tools/vm/nopanic`).
///
/// # Errors
///
/// `ENOMEM`.
pub fn make_room<T>(vec: &mut KVec<T>, flags: Flags) -> Result {
    make_room_for(vec, vec.len().saturating_add(1), flags)
}

/// As [`make_room`], for `len` elements in all.
///
/// # Errors
///
/// `ENOMEM`.
pub fn make_room_for<T>(vec: &mut KVec<T>, len: usize, flags: Flags) -> Result {
    if len <= vec.capacity() {
        return Ok(());
    }
    let room = vec.capacity().saturating_mul(2).max(len).max(4);
    let mut grown = KVec::with_capacity(room, flags)?;
    for element in vec.drain_all() {
        // There is room for all of them.
        let _ = grown.push_within_capacity(element);
    }
    *vec = grown;
    Ok(())
}
