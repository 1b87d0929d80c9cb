// SPDX-License-Identifier: GPL-2.0

//! Address handles and address vectors.
//!
//! C header: `include/rdma/ib_verbs.h`.

use crate::{
    bindings,
    gid::Gid,
    object::object,
    pd::Pd,
    provider::Provider, //
};
use kernel::types::Opaque;

object! {
    /// An address handle: `struct ib_ah` and the provider's data.
    ///
    /// Kernel users may destroy it in atomic context, so the data must be droppable there.
    pub struct Ah<P: Provider>(ib_ah, P::Ah) {}
}

impl<P: Provider> Ah<P> {
    /// The protection domain it belongs to.
    pub fn pd(&self) -> &Pd<P> {
        // SAFETY: ib_core sets `pd` before the create operation and keeps the PD until the handle
        // is destroyed (`pd->usecnt`).
        unsafe { Pd::from_raw((*self.as_raw()).pd) }
    }
}

/// An address vector (`struct rdma_ah_attr`), RoCE only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AhAttr {
    /// Destination GID.
    pub dest: [u8; 16],
    /// Source: entry of the port's GID table, as ib_core resolved it. `None` when the vector has
    /// no GRH, which RoCE does not allow.
    pub src: Option<Gid>,
    /// Index of the source in the port's GID table.
    pub sgid_index: u8,
    /// IPv6 flow label (20 bits), the seed of the UDP source port.
    pub flow_label: u32,
    /// IPv4 TTL or IPv6 hop limit.
    pub hop_limit: u8,
    /// IPv4 TOS or IPv6 traffic class: DSCP and ECN.
    pub traffic_class: u8,
    /// Service level.
    pub sl: u8,
    /// Static rate (`enum ib_rate`).
    pub static_rate: u8,
    /// Port number, from 1.
    pub port: u32,
    /// Hardware address of the next hop, when ib_core resolved one.
    pub dmac: [u8; 6],
}

impl AhAttr {
    /// Reads an attribute of ib_core's.
    ///
    /// # Safety
    ///
    /// `attr` must be valid for reads, and its `grh.sgid_attr`, when set, a referenced GID
    /// attribute: so ib_core passes it to the operations that take an address.
    pub(crate) unsafe fn from_raw(attr: *const bindings::rdma_ah_attr) -> Self {
        // SAFETY: Valid for reads by contract.
        let attr = unsafe { &*attr };
        let grh = &attr.grh;
        let mut ah = Self {
            sl: attr.sl,
            static_rate: attr.static_rate,
            port: attr.port_num,
            ..Self::default()
        };
        if u32::from(attr.ah_flags) & bindings::ib_ah_flags_IB_AH_GRH != 0 {
            // SAFETY: Every member of `union ib_gid` is 16 plain bytes.
            ah.dest = unsafe { *grh.dgid.raw.as_ref() };
            ah.sgid_index = grh.sgid_index;
            ah.flow_label = grh.flow_label;
            ah.hop_limit = grh.hop_limit;
            ah.traffic_class = grh.traffic_class;
            if !grh.sgid_attr.is_null() {
                // SAFETY: Referenced by ib_core for the time of the call (contract).
                ah.src = Some(unsafe { Gid::from_raw(grh.sgid_attr) });
            }
        }
        if attr.type_ == bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_ROCE {
            // SAFETY: `type` says which member of the union is in use.
            ah.dmac = unsafe { attr.__bindgen_anon_1.roce.as_ref() }.dmac;
        }
        ah
    }

    /// Writes an attribute for a query.
    pub(crate) fn to_raw(self, attr: &mut bindings::rdma_ah_attr) {
        attr.sl = self.sl;
        attr.static_rate = self.static_rate;
        attr.port_num = self.port;
        attr.ah_flags = bindings::ib_ah_flags_IB_AH_GRH as u8;
        attr.type_ = bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_ROCE;
        attr.grh.sgid_index = self.sgid_index;
        attr.grh.flow_label = self.flow_label;
        attr.grh.hop_limit = self.hop_limit;
        attr.grh.traffic_class = self.traffic_class;
        // SAFETY: Every member of `union ib_gid` is 16 plain bytes.
        unsafe { *attr.grh.dgid.raw.as_mut() = self.dest };
        // SAFETY: `type` was set to the RoCE member just now; both are plain bytes.
        unsafe { attr.__bindgen_anon_1.roce.as_mut() }.dmac = self.dmac;
    }

    /// The UDP source port that RoCEv2 wants for a flow: from the flow label, or, when that is
    /// zero, from both QP numbers.
    pub fn udp_source_port(&self, local_qpn: u32, remote_qpn: u32) -> u16 {
        // SAFETY: A pure function of three integers.
        unsafe { bindings::xrdma_ib_udp_sport(self.flow_label, local_qpn, remote_qpn) }
    }
}
