// SPDX-License-Identifier: GPL-2.0

//! The user side of the verbs: data that crosses the uverbs file.

pub mod file;
pub mod mmap;
pub mod rcv_qp;
pub mod udata;
