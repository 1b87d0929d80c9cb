// SPDX-License-Identifier: GPL-2.0

//! Routes.
//!
//! C headers: `include/net/route.h`, `include/net/ip6_route.h`, `include/net/dst.h`.

use kernel::{
    error::to_result,
    prelude::*, //
};

use super::{
    GidAddr,
    Tunnel, //
};
use crate::bindings;

/// What decides where the packets of a queue pair go, and how they are marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flow {
    /// Source address; of this host, or the stack refuses it.
    pub src: GidAddr,
    /// Destination address, of the same family.
    pub dst: GidAddr,
    /// UDP source port; by convention from 0xc000 up.
    pub sport: u16,
    /// IPv4 type of service or IPv6 traffic class.
    pub tos: u8,
    /// Service level of the verbs: the packets' priority in this host and, over a VLAN, on the
    /// wire. 0: what follows from `tos`.
    pub sl: u8,
    /// IPv4 time to live or IPv6 hop limit; 0 is the route's default.
    pub hop_limit: u8,
    /// IPv6 flow label, 20 bits.
    pub flow_label: u32,
    /// Index of the interface that packets must leave by: that of the source GID. 0: any.
    pub oif: u32,
}

/// A [`Flow`] and its route as last looked up.
///
/// One user at a time, like the direction of the queue pair that it is part of.
///
/// # Invariants
///
/// `raw.hold` is null, or this value owns it; it belongs to `tunnel`. The destination in it goes
/// when the tunnel is closed or its namespace ends, whatever routes are left.
pub struct Route {
    pub(super) raw: bindings::xrdma_route,
    pub(super) tunnel: Tunnel,
}

// SAFETY: Destinations are counted in C, and not tied to a thread.
unsafe impl Send for Route {}

// SAFETY: A shared reference reads only.
unsafe impl Sync for Route {}

impl Route {
    /// Looks the route up, in the namespace of the tunnel. Any context but hard interrupt.
    ///
    /// # Errors
    ///
    /// What the routing tables say (`ENETUNREACH`, also for an IPv4 source that is not ours,
    /// `EHOSTUNREACH`, `EACCES`, `EINVAL`); `EAFNOSUPPORT` when the families differ; `ENETDOWN`
    /// when the tunnel is closed or has no socket of this family; `ENOMEM`.
    pub fn resolve(tunnel: &Tunnel, flow: &Flow) -> Result<Self> {
        // INVARIANT: No destination yet.
        let mut route = Self {
            raw: bindings::xrdma_route {
                flow: bindings::xrdma_flow {
                    src: flow.src.0,
                    dst: flow.dst.0,
                    oif: flow.oif,
                    flow_label: flow.flow_label & 0xf_ffff,
                    sport: flow.sport,
                    tos: flow.tos,
                    sl: flow.sl,
                    hop_limit: flow.hop_limit,
                },
                ..Default::default()
            },
            tunnel: tunnel.clone(),
        };
        // SAFETY: The tunnel is held by `route`; `raw` is ours alone.
        to_result(unsafe { bindings::xrdma_route_resolve(route.tunnel.as_raw(), &mut route.raw) })?;
        Ok(route)
    }

    /// The tunnel it sends by.
    pub fn tunnel(&self) -> &Tunnel {
        &self.tunnel
    }

    /// Whether the destination is this host, in this namespace (`RTN_LOCAL`), as last looked up.
    #[inline]
    pub fn is_local(&self) -> bool {
        self.raw.local
    }

    /// Whether the packets are IPv6.
    #[inline]
    pub fn is_v6(&self) -> bool {
        self.raw.v6
    }

    /// How many packets are best handed to the stack at a time: as many as may be in a
    /// super-packet, or few if somebody has turned these off, as last looked up.
    #[inline]
    pub fn burst(&self) -> usize {
        usize::from(self.raw.burst)
    }

    /// Whether the routing tables still say so. A packet allocated on a route that is not valid has
    /// it looked up anew.
    #[inline]
    pub fn still_valid(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_route_valid(self.tunnel.as_raw(), &self.raw) }
    }

    /// Looks the route up again. Any context but hard interrupt.
    ///
    /// # Errors
    ///
    /// As [`resolve`](Self::resolve); there is then no route, and packets are not sent.
    pub fn refresh(&mut self) -> Result {
        // SAFETY: By the type invariant; the tunnel is held, and `raw` is borrowed mutably.
        to_result(unsafe { bindings::xrdma_route_resolve(self.tunnel.as_raw(), &mut self.raw) })
    }

    /// The UDP source port of packets that are allocated from now on. The route stays the same
    /// until it has to be looked up anew: datagrams of many queue pairs share it.
    #[inline]
    pub fn set_source_port(&mut self, sport: u16) {
        self.raw.flow.sport = sport;
    }

    /// Runs `f`, during which packets are allocated with another type of service or traffic class
    /// and another priority. They take the same way as the others. Any context but hard interrupt.
    ///
    /// # Errors
    ///
    /// As [`resolve`](Self::resolve), when the route had gone stale.
    pub fn marked<R>(
        &mut self,
        tos: u8,
        priority: u8,
        f: impl FnOnce(&mut Self) -> R,
    ) -> Result<R> {
        // Not with the other marks, which rules may look at.
        if !self.still_valid() {
            self.refresh()?;
        }
        let own = (self.raw.flow.tos, self.raw.priority);
        (self.raw.flow.tos, self.raw.priority) = (tos, priority);
        let result = f(self);
        (self.raw.flow.tos, self.raw.priority) = own;
        Ok(result)
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_route_release(self.tunnel.as_raw(), &mut self.raw) };
    }
}
