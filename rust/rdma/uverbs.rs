// SPDX-License-Identifier: GPL-2.0

//! The user side of the verbs: what crosses the uverbs file.

pub mod mmap;
pub mod udata;
