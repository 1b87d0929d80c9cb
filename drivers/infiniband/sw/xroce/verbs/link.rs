// SPDX-License-Identifier: GPL-2.0

//! Creation and removal of devices: `rdma link add`, `rdma link del`, and changes of the net
//! device.

use crate::prelude::*;
use crate::verbs::device::DeviceData;
use crate::verbs::provider::Xroce;
use datapath::{
    mr,
    mtu, //
};
use kernel::{
    new_mutex,
    sync::Mutex, //
};
use rdma::device::{
    Device,
    DeviceConfig,
    UnregisteredDevice, //
};
use rdma::link::{
    Leave,
    LinkOps, //
};
use rdma::net::{
    NetdevEvent,
    NetdevEvents, //
};
use rdma::rcu::Global;
use rdma::vector::Vectors;

/// Held while a device is looked for, made and registered.
static ADDING: Global<Mutex<()>> = Global::new();

/// Before the link type is registered; once.
pub(crate) fn init() -> Result {
    ADDING.init(new_mutex!((), "xroce links"))?;
    Ok(())
}

/// The link type.
pub(crate) struct Links;

impl LinkOps<Xroce> for Links {
    /// EEXIST when the net device has an xroce device already, ENODEV when it goes meanwhile, or to
    /// another namespace, EADDRINUSE when another driver has the
    /// UDP port of RoCEv2 in the namespace.
    fn newlink(leave: &Leave<'_, Xroce>, name: &CStr, netdev: &NetDev) -> Result {
        // Commands come in parallel; of two for one net device the second finds the first's device.
        let adding = ADDING.get().ok_or(ENODEV)?;
        let _adding = adding.lock();
        if Device::<Xroce>::by_netdev(netdev).is_some() {
            return Err(EEXIST);
        }
        let text = name.to_str().map_err(|_| EINVAL)?;
        let wire = WireDevice::new(netdev, text).inspect_err(|e| {
            if *e == eaddrinuse() {
                pr_err!(
                    "{}: UDP port {} is taken in this network namespace, by rdma_rxe perhaps\n",
                    text,
                    roce::wire::UDP_PORT
                );
            }
        })?;
        let ns = wire.ns();
        let vectors = Vectors::new(name, crate::comp_vectors())?;
        let device = UnregisteredDevice::<Xroce>::new(
            netdev,
            vectors,
            try_init!(DeviceData { wire }? Error),
        )?;
        device.register(
            leave,
            netdev,
            &DeviceConfig {
                name,
                description: c"xroce",
                local_dma_lkey: mr::LOCAL_DMA_LKEY.get(),
            },
        )?;
        // It may have gone, or gone to another namespace, before `Watch` could find the device.
        if !netdev.is_in(ns) {
            if let Some(device) = Device::<Xroce>::by_netdev(netdev) {
                device.unregister_queued();
            }
            return Err(ENODEV);
        }
        Ok(())
    }

    fn dellink(device: &Device<Xroce>) {
        device.data().wire.set_going();
    }
}

/// What happens to net devices. Called with the RTNL held.
pub(crate) struct Watch;

impl NetdevEvents for Watch {
    fn netdev_event(event: NetdevEvent, netdev: &NetDev) {
        let Some(device) = Device::<Xroce>::by_netdev(netdev) else {
            return;
        };
        match event {
            NetdevEvent::Unregister => {
                device.data().wire.set_going();
                device.unregister_queued();
            }
            NetdevEvent::ChangeMtu => {
                device.data().wire.set_mtu(mtu::of_netdev(netdev.mtu()));
            }
            NetdevEvent::Up | NetdevEvent::Down | NetdevEvent::Change => {
                device.data().wire.set_link(netdev.has_link());
            }
            _ => {}
        }
    }
}
