// SPDX-License-Identifier: GPL-2.0

//! What nearly every file of the crate uses.

pub(crate) use datapath::prelude::*;
