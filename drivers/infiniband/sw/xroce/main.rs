// SPDX-License-Identifier: GPL-2.0

//! The soft-RoCE provider: an RDMA device (RoCEv2 over UDP) on any net device, with XRC.
//!
//! `Documentation/infiniband/xroce-design.rst` gives an overview. This crate contains the functions
//! that ib_core calls (`verbs/`). Crate `datapath` below it contains the objects that packets and
//! rings refer to, crate `roce` the protocol, crate `xrc` the lifetimes of XRC domains and targets,
//! and crate `rdma` the bindings.

mod prelude;
mod verbs;

use core::borrow::Borrow;
use datapath::{
    device,
    params,
    tables,
    tx, //
};
use prelude::*;
use rdma::link::{
    Also,
    Registration, //
};
use rdma::net::NetdevNotifier;
use rdma::work::Services;
use verbs::link::{
    self,
    Links,
    Watch, //
};
use verbs::provider::Xroce;

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
        super_packets: u8 {
            default: 1,
            description: "Hand packets of one burst to the network as super-packets (1)",
        },
        poll_rings: u8 {
            default: 1,
            description: "Poll send rings that are posted to at a high rate (1); 2: any rate",
        },
        comp_vectors: u32 {
            default: 0,
            description: "Completion vectors of a device, at most one per possible CPU (0: all)",
        },
        as_rxe: u8 {
            default: 0,
            description: "Make devices for link type rxe too; rdma_rxe must not be loaded (0)",
        },
    },
}

/// What a parameter's `value()` says: a reference in Linux 7.2, the value itself in 7.3.
fn param<T: Copy>(value: impl Borrow<T>) -> T {
    *value.borrow()
}

/// How many completion vectors a new device gets; 0: one for each possible CPU.
fn comp_vectors() -> u32 {
    param(module_parameters::comp_vectors.value())
}

/// The link type, and with `as_rxe` that of rdma_rxe as well: scripts have its name in them.
/// The driver id stays our own, since it says which ABI user space speaks.
fn links() -> Result<Registration<Xroce, Links>> {
    let also = (param::<u8>(module_parameters::as_rxe.value()) != 0).then_some(Also {
        name: c"rxe",
        module: c"rdma_rxe",
    });
    let as_rxe = also.is_some();
    Registration::new(c"xroce", also).inspect_err(|e| {
        if as_rxe && *e == EBUSY {
            pr_err!("as_rxe: rdma_rxe is loaded, which has to go first: rmmod rdma_rxe\n");
        }
    })
}

/// The module. Fields are dropped in this order: no new devices and the end of the old ones, no
/// news of net devices, then everything that runs later.
struct Module {
    _links: Registration<Xroce, Links>,
    _watch: NetdevNotifier,
    _services: Services,
}

impl Drop for Module {
    /// Before the fields: the first of them waits for commands.
    fn drop(&mut self) {
        device::set_unloading();
    }
}

impl kernel::Module for Module {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let services = Services::start::<tx::RoceIcrc>()?;
        params::set(
            param::<u8>(module_parameters::local_copy.value()) != 0,
            param::<u8>(module_parameters::super_packets.value()) != 0,
            u32::from(param::<u8>(module_parameters::poll_rings.value())),
        );
        tables::init()?;
        link::init()?;
        let watch = NetdevNotifier::register::<Watch>()?;
        let links = links()?;
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
