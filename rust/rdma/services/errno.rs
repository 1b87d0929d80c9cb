// SPDX-License-Identifier: GPL-2.0

//! Error codes of the verbs for which crate `kernel` has no constant.

use kernel::{
    bindings,
    error::Error, //
};

/// The device cannot do that.
pub fn eopnotsupp() -> Error {
    Error::from_errno(-(bindings::EOPNOTSUPP as i32))
}

/// The two sides speak different versions.
pub fn eproto() -> Error {
    Error::from_errno(-(bindings::EPROTO as i32))
}

/// The address or port is taken.
pub fn eaddrinuse() -> Error {
    Error::from_errno(-(bindings::EADDRINUSE as i32))
}

/// The address is not one of this host.
pub fn eaddrnotavail() -> Error {
    Error::from_errno(-(bindings::EADDRNOTAVAIL as i32))
}

/// The message is full.
pub fn emsgsize() -> Error {
    Error::from_errno(-(bindings::EMSGSIZE as i32))
}
