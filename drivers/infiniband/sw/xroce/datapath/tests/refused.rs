// SPDX-License-Identifier: GPL-2.0

//! Code that the compiler must reject in this crate: received packets that nobody has checked.
//!
//! `tools/vm/refused` compiles this file in the same way as crate `datapath`, and compares the
//! errors with the comments at the ends of lines. The documentation of `Checked` tests that nobody
//! else creates one.

use rdma::net::{
    Backlog,
    RxSkb, //
};
use roce::wire::{
    Checked,
    Kind,
    Packet, //
};

// There is no packet without the check, which includes the invariant CRC.
fn parsed(skb: &RxSkb) -> bool {
    Packet::parse(skb.payload()).is_ok() //~ E0599
}
fn read(skb: &RxSkb, kind: Kind) -> bool {
    let Kind::Message(opcode) = kind else {
        return false;
    };
    Packet::read(opcode, skb.payload()).aeth.is_some() //~ E0624
}

// No packet waits that was not checked.
fn waits(backlog: &Backlog<Checked>, skb: RxSkb) -> bool {
    backlog.push(skb).is_ok() //~ E0308
}
fn content(skb: &RxSkb) -> Kind {
    skb.noted().kind() //~ E0599
}
