// SPDX-License-Identifier: GPL-2.0

//! Tag matching: the list against one that a reader can check by eye, and the
//! device together with its software, in every order in which things can happen.

mod credit;
mod list;
mod model;
mod naive;
mod runs;
