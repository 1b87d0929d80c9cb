// SPDX-License-Identifier: GPL-2.0

//! Counters of a device, as `rdma statistic` and sysfs `hw_counters` show them.

use rdma::stats::CounterDesc;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A counter of a device.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Counter {
            $($(#[$doc])* $name,)*
        }

        /// Names, in the order of [`Counter`].
        pub const DESCRIPTIONS: &[CounterDesc] = &[$(CounterDesc::new($text)),*];

        /// How many there are.
        pub(crate) const COUNT: usize = DESCRIPTIONS.len();
    };
}

counters! {
    /// Packets handed to the network.
    SentPackets = c"sent_pkts",
    /// Bytes of payload in them.
    SentBytes = c"sent_bytes",
    /// Super-packets that were made of some of them.
    SentSupers = c"sent_super_pkts",
    /// Times that a polled send ring had new requests.
    RingPolls = c"send_ring_polls",
    /// Times that a timer was to look at a send ring next.
    RingTicks = c"send_ring_ticks",
    /// Packets that were handed to a queue pair.
    ReceivedPackets = c"rcvd_pkts",
    /// Bytes of UDP payload in them.
    ReceivedBytes = c"rcvd_bytes",
    /// Super-packets that came whole.
    ReceivedSupers = c"rcvd_super_pkts",
    /// Groups of packets that GRO had put together and that came whole.
    ReceivedMerged = c"rcvd_gro_pkts",
    /// Request packets seen before.
    DuplicateRequest = c"duplicate_request",
    /// Request packets ahead of the expected PSN.
    OutOfSequence = c"out_of_seq_request",
    /// RNR NAKs received.
    RnrReceived = c"rcvd_rnr_err",
    /// RNR NAKs sent.
    RnrSent = c"send_rnr_err",
    /// NAKs for a sequence error received.
    SequenceNak = c"rcvd_seq_err",
    /// Work requests that failed because nothing came back.
    RetryExceeded = c"retry_exceeded_err",
    /// Work requests that failed because the peer had no receive posted.
    RnrRetryExceeded = c"retry_rnr_exceeded_err",
    /// Request packets sent again.
    Retransmit = c"retransmits",
    /// Request packets sent again because an answer took long: probes for a lost tail.
    TailProbe = c"tail_probes",
    /// Request packets sent again to have an answer that no packet had asked for.
    TailAsk = c"late_ack_requests",
    /// Probes whose answer was on its way.
    EarlyProbe = c"early_tail_probes",
    /// Packets of READ responses that came before an earlier one and were placed.
    EarlyResponse = c"early_responses",
    /// Those that came too long before it.
    EarlyDropped = c"early_responses_dropped",
    /// Request packets that came before an earlier one and were kept until that came.
    EarlyRequest = c"early_requests",
    /// Those for which there was no room.
    EarlyRequestDropped = c"early_requests_dropped",
    /// Requests that were reported missing and were only late.
    WrongNak = c"early_seq_naks",
    /// Packets that were not sent: no memory, no route, or refused by the network.
    SendError = c"send_err",
    /// Packets with a wrong ICRC.
    BadIcrc = c"rcvd_icrc_err",
    /// Packets with a malformed header, IP options or IPv6 extension headers; datagrams beyond the
    /// MTU.
    Malformed = c"rcvd_malformed",
    /// Packets of another partition.
    BadPkey = c"rcvd_bad_pkey",
    /// Datagrams with a wrong queue key.
    BadQkey = c"rcvd_bad_qkey",
    /// Packets for no queue pair, or for one that must not get them.
    Unknown = c"rcvd_unknown_qp",
    /// Packets dropped because a queue was full.
    Dropped = c"rcvd_dropped",
    /// Messages between queue pairs of this host that needed no packet.
    LocalMessages = c"local_msgs",
    /// Bytes of such messages.
    LocalBytes = c"local_bytes",
    /// XRC packets with an SRQ number that is unknown or of another domain.
    XrcViolation = c"xrc_srq_err",
    /// Events of XRC targets that had no recipient.
    XrcUnheard = c"xrc_unheard_events",
    /// Packets of connections that came marked as having met congestion (ECN).
    EcnMarked = c"np_ecn_marked_roce_packets",
    /// Congestion notification packets sent.
    CnpSent = c"np_cnp_sent",
    /// Congestion notification packets that a queue pair took notice of.
    CnpHandled = c"rp_cnp_handled",
    /// How often the port's link went down.
    LinkDowned = c"link_downed",
    /// Completion queues that overflowed.
    CqOverrun = c"cq_overruns",
}
