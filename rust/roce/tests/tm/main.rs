// SPDX-License-Identifier: GPL-2.0

//! Tests of tag matching: the list is compared with one that a reader can check by eye, and the
//! device is run together with its software, in every order in which events can happen.

mod credit;
mod list;
mod model;
mod naive;
mod runs;
