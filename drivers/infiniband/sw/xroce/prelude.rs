// SPDX-License-Identifier: GPL-2.0

//! Imports that nearly every file of the crate uses.

pub(crate) use datapath::prelude::*;
