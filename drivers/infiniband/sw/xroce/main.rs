// SPDX-License-Identifier: GPL-2.0

//! The soft-RoCE provider: an RDMA device (RoCEv2 over UDP) on any net device, with XRC.
//!
//! `Documentation/infiniband/xroce-design.rst` has the picture. ib_core's objects hold references to
//! objects on the wire, which packets find by number; those drive the state machines of crate `roce`
//! with work requests from the rings and packets from the UDP sockets.
//!
//! - The face of ib_core: `provider.rs` is the table of operations; `pd.rs`, `mr.rs`, `cq.rs`,
//!   `srq.rs`, `ah.rs`, `port.rs` and `qp/{create,modify,query,destroy}.rs` implement them; `link.rs`
//!   is `rdma link` and what happens to net devices.
//! - Shared by all objects: `device.rs`, `tables.rs` (numbers), `limits.rs`, `counters.rs`.
//! - Queue pairs at work: `qp/engine.rs` says who runs what and where, `qp/send.rs` and
//!   `qp/receive.rs` are the two directions, `qp/drain.rs` their ends, `ud.rs` datagrams, `local.rs`
//!   delivery within the host.
//! - Formats and memory: `abi.rs` (layouts), `wr.rs` (decoding), `qp/request.rs` (what comes out),
//!   `qp/ring.rs` (reading rings), `access.rs` (gather and scatter).
//! - Tag matching: `tm/`.
//! - Packets: `rx.rs` in, `tx.rs` out.
//!
//! Completion events leave through crate `rdma`'s vectors.

mod abi;
mod access;
mod ah;
mod counters;
mod cq;
mod device;
mod dm;
mod limits;
mod link;
mod local;
mod log_limit;
mod mcast;
mod mr;
mod mw;
mod pd;
mod port;
mod prelude;
mod provider;
mod qp;
mod rx;
mod srq;
mod tables;
mod tm;
mod tx;
mod ud;
mod wr;

use core::borrow::Borrow;
use link::{
    Links,
    Watch, //
};
use prelude::*;
use provider::Xroce;
use rdma::link::Registration;
use rdma::net::NetdevNotifier;
use rdma::work::Services;

module! {
    type: Module,
    name: "xroce",
    authors: ["The xroce authors"],
    description: "Soft RoCEv2 RDMA device with XRC",
    license: "GPL",
    alias: ["rdma-link-xroce"],
    params: {
        local_copy: u8 {
            default: 1,
            description: "Copy between queue pairs of one host instead of sending packets (1)",
        },
        comp_vectors: u32 {
            default: 0,
            description: "Completion vectors of a device, at most one for each possible CPU (0: as many)",
        },
    },
}

/// What a parameter's `value()` says: a reference in Linux 7.2, the value itself in 7.3.
fn param<T: Copy>(value: impl Borrow<T>) -> T {
    *value.borrow()
}

/// Whether peers on the same host are served by copying; see `local.rs`.
fn local_copy() -> bool {
    param::<u8>(module_parameters::local_copy.value()) != 0
}

/// How many completion vectors a new device gets.
fn comp_vectors() -> u32 {
    let possible = rdma::percpu::possible_cpus();
    match param::<u32>(module_parameters::comp_vectors.value()) {
        0 => possible,
        wanted => wanted.min(possible),
    }
}

/// The module. Fields are dropped in this order: no new devices and the end of the old ones, no news
/// of net devices, then everything that runs later.
struct Module {
    _links: Pin<KBox<Registration<Xroce, Links>>>,
    _watch: NetdevNotifier,
    _services: Services,
}

impl kernel::Module for Module {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let services = Services::start()?;
        tables::init()?;
        link::init()?;
        let watch = NetdevNotifier::register::<Watch>()?;
        let links = KBox::pin_init(Registration::new(c"xroce"), GFP_KERNEL)?;
        pr_info!(
            "soft RoCEv2 with XRC, UDP port {}, user ABI {}\n",
            roce::wire::UDP_PORT,
            abi::XROCE_ABI_VERSION
        );
        Ok(Module {
            _links: links,
            _watch: watch,
            _services: services,
        })
    }
}
