// SPDX-License-Identifier: GPL-2.0

//! Building and sending packets.

use crate::params;
use crate::prelude::*;
use crate::rx::PKEY;
use rdma::net::{
    Icrc,
    TxTrain, //
};
use roce::congestion;
use roce::requester::Middles;
use roce::wire::{
    Cnp,
    HeaderBuf,
    TrainHeader, //
};

/// Bytes of the invariant CRC at the end of each packet.
pub(crate) const ICRC_LEN: usize = 4;

/// The address vector of a connection: everything that the route and the IP header need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Av {
    /// Our address.
    pub src: GidAddr,
    /// The peer's address.
    pub dst: GidAddr,
    /// UDP source port.
    pub sport: u16,
    /// IPv4 TOS or IPv6 traffic class.
    pub tos: u8,
    /// Service level.
    pub sl: u8,
    /// IPv4 TTL or IPv6 hop limit.
    pub hop_limit: u8,
    /// IPv6 flow label.
    pub flow_label: u32,
    /// Interface index of the net device that owns `src`, 0 for any.
    pub oif: u32,
}

/// An address vector with its route, looked up when first needed and again when it went stale.
#[derive(Default)]
pub(crate) struct Path {
    av: Av,
    route: Option<Route>,
}

impl Path {
    /// Changes the address vector; the route is looked up anew.
    pub(crate) fn set(&mut self, av: Av) {
        self.av = av;
        self.route = None;
    }

    /// The address vector.
    pub(crate) fn av(&self) -> &Av {
        &self.av
    }

    /// The route, looked up now if there is none yet. One that has gone stale is looked up anew
    /// when a packet is allocated for it. Softirq or process context.
    pub(crate) fn route(&mut self, tunnel: &Tunnel) -> Result<&mut Route> {
        match self.route {
            Some(ref mut route) => Ok(route),
            None => {
                let flow = Flow {
                    src: self.av.src,
                    dst: self.av.dst,
                    sport: self.av.sport,
                    tos: self.av.tos,
                    sl: self.av.sl,
                    hop_limit: self.av.hop_limit,
                    flow_label: self.av.flow_label,
                    oif: self.av.oif,
                };
                Ok(self.route.insert(Route::resolve(tunnel, &flow)?))
            }
        }
    }

    /// Whether the peer's address is one of this host, in the sender's network namespace. Softirq
    /// or process context.
    pub(crate) fn is_local(&mut self, tunnel: &Tunnel) -> bool {
        self.route(tunnel)
            .is_ok_and(|route| (route.still_valid() || route.refresh().is_ok()) && route.is_local())
    }
}

/// Why a packet was not built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuildError {
    /// No memory now. The packet counts as lost on the way.
    NoMemory,
    /// The payload's memory cannot be read.
    Fault,
}

impl From<Fault> for BuildError {
    fn from(_: Fault) -> Self {
        BuildError::Fault
    }
}

/// Packets of one run and one direction on their way into a batch. The last ones may be a train
/// ([`TxTrain`]) that grows with each.
pub(crate) struct Assembly {
    open: Option<OpenTrain>,
    /// A train has ended since that was asked last.
    has_ended: bool,
    lost: u32,
}

/// A train that is being built. It has a packet.
struct OpenTrain {
    header: TrainHeader,
    data: TxTrain,
    /// Bytes of payload of each packet.
    mtu: usize,
}

/// A packet to be built.
#[derive(Clone, Copy)]
pub(crate) struct Planned<'a> {
    /// BTH and the extended headers.
    pub(crate) header: &'a HeaderBuf,
    /// Bytes of payload.
    pub(crate) len: usize,
    /// Zero bytes behind it.
    pub(crate) pad: u8,
    /// Whether it may be in a super-packet.
    pub(crate) joining: Joining,
    /// Packets of its message behind it that may be in a train with it.
    pub(crate) followers: u32,
    /// Packets of the next message that may be in it as well.
    pub(crate) others: u32,
}

impl OpenTrain {
    /// A train that begins with `packet`, whose payload is to be filled in. `None`: there is to be
    /// none.
    fn begin(route: &mut Route, sender: &Sender, packet: &Planned<'_>) -> Option<Self> {
        let mtu = u32::try_from(packet.len).ok()?;
        let room = route.train_room(mtu);
        let all = packet.followers.saturating_add(packet.others);
        let count = match all < room || packet.others == 0 {
            // As few trains as can be, which are about as long as each other: rather than one
            // packet behind a train, which would be built.
            true => {
                let trains = all.checked_div(room)?.saturating_add(1);
                all.checked_div(trains)?.saturating_add(1)
            }
            // What is behind it goes on with the next message, so it will not be that short.
            false => room,
        };
        if packet.joining == Joining::Alone || packet.pad != 0 || count < 2 {
            return None;
        }
        let header = TrainHeader::begin(packet.header)?;
        let first = u32::try_from(header.first_len()).ok()?;
        let middle = u32::try_from(header.middle_len()).ok()?;
        let longest = u32::try_from(header.longest_len()).ok()?;
        Some(OpenTrain {
            data: TxTrain::alloc(route, sender, (first, middle, longest), mtu, count)?,
            header,
            mtu: packet.len,
        })
    }

    /// The headers of the train with `packet` added, if that is the next one and there is room.
    fn with(&self, packet: &Planned<'_>) -> Option<TrainHeader> {
        let mut header = self.header;
        let fits = match header.is_end(packet.header) {
            true => packet.len != 0 && packet.len <= self.mtu,
            false => packet.len == self.mtu,
        };
        (fits
            && packet.joining == Joining::Allowed
            && packet.pad == 0
            && self.data.room() > 0
            && header.push(packet.header))
        .then_some(header)
    }

    /// Has `fill` write the payload of the packet that was added, `len` bytes. If it fails, the
    /// packet is not in the train.
    fn fill(
        &mut self,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let out = self.data.next_mut(1).ok_or(Fault)?;
        fill(out.get_mut(..len).ok_or(Fault)?)?;
        match len == self.mtu {
            true => self.data.pass(1),
            false => self.data.pass_last(len as u32),
        }
        Ok(())
    }

    /// Packets that there is room for, and that may follow.
    fn room(&self) -> u32 {
        match self.header.is_open() {
            true => self.data.room(),
            false => 0,
        }
    }

    /// Adds `middles`, of which there are no more than [`Self::room`]. Has `fill` write their
    /// payload, piece by piece: it is told how many bytes come before. Returns how many are in the
    /// train. If `fill` failed there are fewer; should the last one have asked for an
    /// acknowledgement, the last one that is there does.
    fn extend(
        &mut self,
        middles: Middles,
        mut fill: impl FnMut(u32, &mut [u8]) -> Result<(), Fault>,
    ) -> u32 {
        let (mut done, mut most) = (0u32, u32::MAX);
        while done < middles.count {
            let before = (done as usize).wrapping_mul(self.mtu) as u32;
            let left = middles.count.wrapping_sub(done).min(most);
            let Some(out) = self.data.next_mut(left) else {
                break;
            };
            let count = out.len().checked_div(self.mtu).unwrap_or(0) as u32;
            if count != 0 && fill(before, out).is_ok() {
                self.data.pass(count);
                done = done.wrapping_add(count);
            } else if count > 1 {
                // What can be read of these goes out, as it would by itself.
                most = 1;
            } else {
                break;
            }
        }
        self.header.extend(done, middles.ack_req);
        done
    }
}

impl Assembly {
    /// No packets.
    pub(crate) fn new() -> Self {
        Assembly {
            open: None,
            has_ended: false,
            lost: 0,
        }
    }

    /// Packets that are not in the batch yet.
    pub(crate) fn len(&self) -> usize {
        self.open
            .as_ref()
            .map_or(0, |open| open.data.len() as usize)
    }

    /// Whether a train has ended since the last call, and none is being built.
    pub(crate) fn take_ended(&mut self) -> bool {
        core::mem::take(&mut self.has_ended) && self.open.is_none()
    }

    /// Packets that were added, and that there was no memory for in the end.
    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    /// Builds `packet` of `sender`, whose payload `fill` writes, as the next one for `batch`. Says
    /// whether it is in a train with the one before it. [`Self::close`] has to follow the last one.
    /// Softirq or process context.
    pub(crate) fn add(
        &mut self,
        batch: &mut TxBatch,
        route: &mut Route,
        sender: &Sender,
        packet: &Planned<'_>,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Fault>,
    ) -> Result<bool, BuildError> {
        let longer = self.open.as_ref().and_then(|open| open.with(packet));
        if longer.is_none() {
            self.close(batch, route, sender);
            self.open = OpenTrain::begin(route, sender, packet);
        }
        let Some(open) = &mut self.open else {
            let header = packet.header.as_slice();
            let pad = usize::from(packet.pad);
            let skb = build(route, sender, header, packet.len, pad, packet.joining, fill)?;
            batch.push(skb, packet.joining);
            return Ok(false);
        };
        let joins = longer.is_some();
        let filled = open.fill(packet.len, fill);
        if let (Some(header), Ok(())) = (longer, filled) {
            open.header = header;
        }
        if filled.is_err() || open.room() == 0 {
            self.close(batch, route, sender);
        }
        Ok(filled.map(|()| joins)?)
    }

    /// Middle packets that [`Self::extend`] may add to the packet that was added last.
    pub(crate) fn room(&self) -> u32 {
        self.open.as_ref().map_or(0, OpenTrain::room)
    }

    /// Adds `middles`, [`Self::room`] of them at most. `fill` writes their payload: it gets pieces
    /// of it in their order, and the number of bytes before each. Returns how many were added: all,
    /// unless `fill` failed. Else as [`Self::add`].
    pub(crate) fn extend(
        &mut self,
        batch: &mut TxBatch,
        route: &mut Route,
        sender: &Sender,
        middles: Middles,
        fill: impl FnMut(u32, &mut [u8]) -> Result<(), Fault>,
    ) -> u32 {
        let Some(open) = &mut self.open else {
            return 0;
        };
        let added = open.extend(middles, fill);
        if added < middles.count || open.room() == 0 {
            self.close(batch, route, sender);
        }
        added
    }

    /// Ends the train, if there is one. A packet that no other has followed goes by itself.
    /// Context as for [`Self::add`].
    pub(crate) fn close(&mut self, batch: &mut TxBatch, route: &mut Route, sender: &Sender) {
        let Some(OpenTrain {
            header, mut data, ..
        }) = self.open.take()
        else {
            return;
        };
        let count = data.len();
        if count == 0 {
            // The payload of the first packet could not be read.
            return;
        }
        if count == 1 {
            let payload = data.filled(0);
            let (header, len, allowed) = (header.of_first(), payload.len(), Joining::Allowed);
            let built = build(route, sender, header, len, 0, allowed, |out| {
                out.copy_from_slice(payload.get(..out.len()).ok_or(Fault)?);
                Ok(())
            });
            match built {
                Ok(skb) => batch.push(skb, allowed),
                Err(_) => self.lost = self.lost.wrapping_add(1),
            }
            return;
        }
        let (first, header) = (data.header_mut(), header.as_slice());
        if first.len() == header.len() {
            first.copy_from_slice(header);
            batch.push_train(data, route);
            self.has_ended = true;
        } else {
            self.lost = self.lost.wrapping_add(count);
        }
    }
}

/// Builds one packet of `sender`: `header` (BTH and the extended headers), `len` bytes of payload
/// that `fill` writes, `pad` zero bytes and the ICRC, which may wait if the packet may share a
/// super-packet (`joining`). Softirq or process context.
pub(crate) fn build(
    route: &mut Route,
    sender: &Sender,
    header: &[u8],
    len: usize,
    pad: usize,
    joining: Joining,
    fill: impl FnOnce(&mut [u8]) -> Result<(), Fault>,
) -> Result<TxSkb, BuildError> {
    let covered = header.len().wrapping_add(len).wrapping_add(pad);
    let total = u32::try_from(covered.wrapping_add(ICRC_LEN)).map_err(|_| BuildError::NoMemory)?;
    let mut skb = TxSkb::alloc(route, sender, total).ok_or(BuildError::NoMemory)?;
    {
        let packet = skb.payload_mut();
        let (head, rest) = packet
            .split_at_mut_checked(header.len())
            .ok_or(BuildError::NoMemory)?;
        head.copy_from_slice(header);
        let (payload, tail) = rest.split_at_mut_checked(len).ok_or(BuildError::NoMemory)?;
        fill(payload)?;
        if let Some(zeroes) = tail.get_mut(..pad) {
            zeroes.fill(0);
        }
    }
    if joining == Joining::Alone || !skb.put_off_icrc() {
        let covered = skb.payload().get(..covered).unwrap_or(&[]);
        skb.set_icrc(RoceIcrc::icrc(skb.headers(), covered));
    }
    Ok(skb)
}

/// Whether a packet may share a super-packet. `is_first`: it is sent for the first time, and will
/// be sent again if it is lost. What is sent again goes alone, and so does what nobody repeats:
/// whatever a net device makes of super-packets, the connection gets on.
#[inline]
pub(crate) fn joining(is_first: bool) -> Joining {
    match is_first && params::super_packets() {
        true => Joining::Allowed,
        false => Joining::Alone,
    }
}

/// How many packets with `mtu` bytes of payload go along `route` in a train, at most: 0 if none do.
/// A train has two at least.
#[inline]
pub(crate) fn train_room(route: &Route, mtu: u32) -> u32 {
    match route.train_room(mtu) {
        room if room >= 2 && params::super_packets() => room,
        _ => 0,
    }
}

/// Counts for `device` what became of packets.
#[inline]
pub(crate) fn count_flushed(device: &WireDevice, flushed: Flushed) {
    if flushed.supers > 0 {
        device.count(Counter::SentSupers, u64::from(flushed.supers));
    }
    if flushed.dropped > 0 {
        device.count(Counter::SendError, u64::from(flushed.dropped));
    }
}

/// How a congestion notification packet is marked, whatever the data are: DSCP 48 and priority 6,
/// as ConnectX does if not told otherwise, so that it has a queue that is not the congested one. It
/// is there to relieve the network, so it is not to be marked itself.
const CNP_TOS: u8 = 48 << 2 | congestion::NOT_ECT;
const CNP_PRIORITY: u8 = 6;

/// Tells the peer's queue pair `dest_qpn` that packets of its met congestion. What cannot be sent
/// is not: what meets congestion next tries again. Softirq or process context.
pub(crate) fn notice(
    tunnel: &Tunnel,
    sender: &Sender,
    path: &mut Path,
    dest_qpn: Qpn,
) -> Option<TxSkb> {
    let cnp = Cnp {
        pkey: PKEY,
        dest_qpn,
    };
    let route = path.route(tunnel).ok()?;
    route
        .marked(CNP_TOS, CNP_PRIORITY, |route| {
            let cnp = cnp.emit();
            build(route, sender, cnp.as_slice(), 0, 0, Joining::Alone, |_| {
                Ok(())
            })
        })
        .ok()?
        .ok()
}

/// The kernel's CRC-32, for [`roce::icrc`].
pub(crate) struct KernelCrc;

impl roce::icrc::Crc32 for KernelCrc {
    fn update(seed: u32, data: &[u8]) -> u32 {
        rdma::crc::crc32_le(seed, data)
    }
}

/// Computes the ICRC of packets of ours.
pub struct RoceIcrc;

impl Icrc for RoceIcrc {
    fn icrc(headers: &[u8], covered: &[u8]) -> u32 {
        // Headers of ours always have one.
        roce::icrc::compute::<KernelCrc>(headers, covered).unwrap_or(0)
    }
}
