// SPDX-License-Identifier: GPL-2.0
//! libibverbs provider of the xroce device.
//!
//! libibverbs loads this library as `libxroce-rdmavN.so`, the constructor in
//! [`register`] hands it a table, and from then on every verb on an xroce
//! device comes in through the functions that [`layout`] lists.
//!
//! Control verbs go to the kernel through libibverbs' own command functions.
//! The data path does not: work requests and completions travel through rings
//! shared with the kernel ([`ring`], [`abi`]), and a system call is made only
//! to wake a send queue that sleeps ([`doorbell`]).
//!
//! Programs that know the device may link with the library, as `libxroce.so.1`,
//! for what the verbs do not have ([`dv`]).
//!
//! Nothing here unwinds (panics abort), starts a thread, or trusts more of
//! libibverbs' private layout than [`layout`] asserts.

mod abi;
mod ah;
mod context;
mod cq;
mod device;
mod dm;
mod doorbell;
mod dv;
mod ioctl;
mod layout;
mod lock;
mod mcast;
mod mr;
mod mw;
mod pd;
mod qp;
mod recv;
mod register;
mod ring;
mod srq;
mod sys;
mod tags;
mod verbs;
mod xrcd;
