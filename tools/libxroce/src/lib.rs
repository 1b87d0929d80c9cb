// SPDX-License-Identifier: GPL-2.0
//! libibverbs provider of the xroce device.
//!
//! libibverbs loads this library as `libxroce-rdmavN.so`. The constructor in [`register`] passes a
//! table to libibverbs. From then on, every verb on an xroce device arrives through the functions
//! that [`layout`] lists.
//!
//! Control verbs go to the kernel through libibverbs' own command functions. The data path does
//! not: work requests and completions travel through rings shared with the kernel ([`ring`],
//! [`abi`]). System calls are made only to wake a send queue that the kernel does not look at by
//! itself ([`doorbell`]), and to yield to other threads ([`cq`], [`lock`]).
//!
//! Programs that know the device may link with the library as `libxroce.so.1`, for functions that
//! the verbs do not have ([`dv`]).
//!
//! Nothing here unwinds (panics abort), starts a thread, or relies on more of libibverbs' private
//! layout than [`layout`] asserts.

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
