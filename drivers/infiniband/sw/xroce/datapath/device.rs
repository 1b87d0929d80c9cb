// SPDX-License-Identifier: GPL-2.0

//! The data that all objects of one device share. It lives as long as any of these objects.

use crate::ask_limit::AskLimit;
use crate::counters;
use crate::limits::Used;
use crate::log_limit::LogLimit;
use crate::pd::Sleeps;
use crate::prelude::*;
use rdma::percpu::PerCpu;
use rdma::pma::PortCounters;
use roce::mtu::Mtu;

/// ib_core's limit for the name of a device (`IB_DEVICE_NAME_MAX`), bytes.
const MAX_NAME: usize = 64;

/// Addresses of a port, more than ib_core's GID table has.
const MAX_ADDRESSES: u32 = 1 << 16;

/// Not 0: the module is about to be unloaded, and all devices with it.
static UNLOADING: Atomic<u32> = Atomic::new(0);

/// All devices are about to be unregistered, for good. Process context.
pub fn set_unloading() {
    UNLOADING.store(1, Relaxed);
}

/// A device, as packets and work requests see it.
///
/// ib_core's device holds a reference, and so does every object on the wire.
#[pin_data]
pub struct WireDevice {
    ns: NamespaceId,
    tunnel: Tunnel,
    /// Ends with the first zero.
    name: [u8; MAX_NAME],
    mac: [u8; 6],
    /// Path MTU of the port, bytes.
    mtu: Atomic<u32>,
    /// 1 if the net device had a link when it was last heard of.
    link: Atomic<u32>,
    /// Not 0: the device is about to be unregistered.
    going: Atomic<u32>,
    counters: PerCpu<{ counters::COUNT }>,
    used: Used,
    sleeps: Sleeps,
    /// For what is broken in a queue.
    pub(crate) log: LogLimit,
    /// For events of XRC targets that nobody hears of. Such a line is all that there is of one, and
    /// often a broken queue is the cause: neither may take the other's place.
    pub(crate) unheard: LogLimit,
    /// For packets that only ask silent peers for an answer.
    pub(crate) asks: AskLimit,
    /// IP addresses of the port, as ib_core's GID table has them.
    #[pin]
    addresses: Table<GidAddr>,
}

impl WireDevice {
    /// Makes the shared part of a device on `netdev`: opens the UDP port of its namespace. Process
    /// context. Fails with EADDRINUSE when another RoCE driver has the port.
    ///
    /// # Errors
    ///
    /// ENODEV when the net device has no namespace any more; EADDRINUSE when another RoCE driver
    /// has the port; ENOMEM.
    pub fn new(netdev: &NetDev, name: &str) -> Result<Arc<Self>> {
        let namespace = netdev.namespace().ok_or(ENODEV)?;
        let tunnel = Tunnel::open::<crate::rx::Rx>(&namespace)?;
        let mut text = [0; MAX_NAME];
        for (to, from) in text.iter_mut().zip(name.bytes()) {
            *to = from;
        }
        let counters = PerCpu::new()?;
        Arc::pin_init(
            try_pin_init!(WireDevice {
                ns: tunnel.id(),
                tunnel,
                name: text,
                mac: netdev.mac(),
                mtu: Atomic::new(crate::mtu::of_netdev(netdev.mtu()).bytes()),
                link: Atomic::new(u32::from(netdev.has_link())),
                going: Atomic::new(0),
                counters,
                used: Used::new(),
                sleeps: Sleeps::new(),
                log: LogLimit::new(),
                unheard: LogLimit::new(),
                asks: AskLimit::new(),
                addresses <- Table::new(0..MAX_ADDRESSES),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// The network namespace.
    pub fn ns(&self) -> NamespaceId {
        self.ns
    }

    /// The UDP sockets of the namespace.
    pub fn tunnel(&self) -> &Tunnel {
        &self.tunnel
    }

    /// The name that the device got when it was made.
    pub fn name(&self) -> &str {
        let mut parts = self.name.split(|byte| *byte == 0);
        let name = parts.next().and_then(|n| core::str::from_utf8(n).ok());
        name.unwrap_or("xroce")
    }

    /// The largest path MTU that the net device allows now. Any context.
    pub fn mtu(&self) -> Mtu {
        Mtu::fitting(self.mtu.load(Relaxed)).unwrap_or(Mtu::M256)
    }

    /// The net device has another MTU.
    pub fn set_mtu(&self, mtu: Mtu) {
        self.mtu.store(mtu.bytes(), Relaxed);
    }

    /// The node GUID: the hardware address with ff:fe in its middle and the local bit flipped.
    pub fn guid(&self) -> u64 {
        let [a, b, c, d, e, f] = self.mac;
        u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f])
    }

    /// Adds to a counter. Any context.
    pub fn count(&self, counter: Counter, n: u64) {
        self.counters.add(counter as usize, n);
    }

    /// Adds what a count that wraps has grown by since it was `seen`. Any context.
    pub fn count_since(&self, counter: Counter, seen: &mut u32, now: u32) {
        let grown = now.wrapping_sub(*seen);
        if grown != 0 {
            *seen = now;
            self.count(counter, u64::from(grown));
        }
    }

    /// Value of a counter.
    pub fn counter(&self, index: usize) -> u64 {
        self.counters.sum(index)
    }

    /// The traffic of the port.
    pub fn port_counters(&self) -> PortCounters {
        let count = |counter: Counter| self.counter(counter as usize);
        PortCounters {
            sent_bytes: count(Counter::SentBytes),
            received_bytes: count(Counter::ReceivedBytes),
            sent_packets: count(Counter::SentPackets),
            received_packets: count(Counter::ReceivedPackets),
            receive_errors: count(Counter::BadIcrc).saturating_add(count(Counter::Malformed)),
            send_discards: count(Counter::SendError),
            link_downed: count(Counter::LinkDowned),
        }
    }

    /// Tells whether the net device has a link, and counts when it has lost it. Under RTNL.
    pub fn set_link(&self, up: bool) {
        if self.link.xchg(u32::from(up), Relaxed) == 1 && !up {
            self.count(Counter::LinkDowned, 1);
        }
    }

    /// The device is about to be unregistered. Any context.
    pub fn set_going(&self) {
        self.going.store(1, Relaxed);
    }

    /// Whether the device is about to be unregistered. That waits for the commands under way, so
    /// those that take long end when they see this. Any context.
    pub fn is_going(&self) -> bool {
        self.going.load(Relaxed) != 0 || UNLOADING.load(Relaxed) != 0
    }

    /// Some memory that is registered at the device is on-demand memory.
    pub fn sleeps(&self) -> &Sleeps {
        &self.sleeps
    }

    /// What is in use.
    pub(crate) fn used(&self) -> &Used {
        &self.used
    }

    /// Tells whether `address` is one of the port's. Any context, no lock.
    pub fn owns(&self, address: &GidAddr) -> bool {
        self.addresses
            .find(|_, a| (a == address).then_some(()))
            .is_some()
    }

    /// The port got an address. Process context.
    ///
    /// # Errors
    ///
    /// ENOSPC when the table is full; ENOMEM.
    pub fn add_address(&self, address: GidAddr) -> Result {
        let place = self.addresses.reserve()?;
        place.publish(Ref::new(address, GFP_KERNEL)?);
        Ok(())
    }

    /// The port lost an address; one of two equal entries stays. Process context: ib_core changes
    /// its table under a mutex.
    pub fn remove_address(&self, address: &GidAddr) {
        let found = self.addresses.find(|id, a| (a == address).then_some(id));
        if let Some(id) = found {
            drop(self.addresses.remove(id));
        }
    }
}
