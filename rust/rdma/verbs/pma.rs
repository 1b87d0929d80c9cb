// SPDX-License-Identifier: GPL-2.0

//! Performance management: the answer to a query of a port's counters.
//!
//! When somebody reads sysfs `ports/N/counters`, ib_core queries the device with a management
//! datagram (`process_mad`). Source: IBTA volume 1, 16.1.3 (attributes) and 16.1.4 (the extended
//! ones); `include/rdma/ib_pma.h`.

/// Bytes of a management datagram.
pub(crate) const MAD_LEN: usize = 256;

/// `IB_MGMT_CLASS_PERF_MGMT`.
const CLASS_PERF_MGMT: u8 = 0x04;
/// `IB_MGMT_METHOD_GET`.
const METHOD_GET: u8 = 0x01;
/// `IB_MGMT_METHOD_GET_RESP`.
const METHOD_GET_RESP: u8 = 0x81;
/// Status for a class or method that is not there (`IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD`).
const STATUS_METHOD: u16 = 2 << 2;
/// The same for an attribute (`IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB`).
const STATUS_ATTRIBUTE: u16 = 3 << 2;

/// Where the class, the method, the status and the attribute stand in a datagram.
const CLASS_AT: usize = 1;
const METHOD_AT: usize = 3;
const STATUS_AT: usize = 4;
const ATTRIBUTE_AT: usize = 16;
/// Bytes of the header.
const HEADER_LEN: usize = 24;
/// Where the attribute's data begins, after 40 reserved bytes.
const DATA_AT: usize = 64;

const CLASS_PORT_INFO: u16 = 0x0001;
const PORT_COUNTERS: u16 = 0x0012;
const PORT_COUNTERS_EXT: u16 = 0x001d;

/// `IB_PMA_CLASS_CAP_EXT_WIDTH`: there are 64-bit counters.
const EXTENDED_WIDTH: u16 = 0x0200;

/// What a port has done since the device was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Packets received with an error.
    pub receive_errors: u64,
    /// Packets that could not be sent.
    pub send_discards: u64,
    /// How often the link went down.
    pub link_downed: u64,
}

/// What becomes of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The reply holds an attribute.
    Reply,
    /// The reply holds only a status that says what is not there.
    Unsupported,
}

/// Answers `request` in `reply`, which is zeroes.
pub(crate) fn answer(
    request: &[u8; MAD_LEN],
    reply: &mut [u8; MAD_LEN],
    counters: impl FnOnce() -> PortCounters,
) -> Answer {
    for (to, from) in reply.iter_mut().zip(request).take(HEADER_LEN) {
        *to = *from;
    }
    if request[CLASS_AT] != CLASS_PERF_MGMT || request[METHOD_AT] != METHOD_GET {
        put(reply, STATUS_AT, STATUS_METHOD.to_be_bytes());
        return Answer::Unsupported;
    }
    put(reply, METHOD_AT, [METHOD_GET_RESP]);
    match u16::from_be_bytes([request[ATTRIBUTE_AT], request[ATTRIBUTE_AT + 1]]) {
        CLASS_PORT_INFO => put(reply, DATA_AT + 2, EXTENDED_WIDTH.to_be_bytes()),
        PORT_COUNTERS => narrow(reply, &counters()),
        PORT_COUNTERS_EXT => wide(reply, &counters()),
        _ => {
            put(reply, STATUS_AT, STATUS_ATTRIBUTE.to_be_bytes());
            return Answer::Unsupported;
        }
    }
    Answer::Reply
}

/// PortCounters: values stop at the largest that fits.
fn narrow(reply: &mut [u8; MAD_LEN], c: &PortCounters) {
    let downed = u8::try_from(c.link_downed).unwrap_or(u8::MAX);
    put(reply, DATA_AT + 7, [downed]);
    put(reply, DATA_AT + 8, stop16(c.receive_errors));
    put(reply, DATA_AT + 14, stop16(c.send_discards));
    put(reply, DATA_AT + 24, stop32(words(c.sent_bytes)));
    put(reply, DATA_AT + 28, stop32(words(c.received_bytes)));
    put(reply, DATA_AT + 32, stop32(c.sent_packets));
    put(reply, DATA_AT + 36, stop32(c.received_packets));
}

/// PortCountersExtended.
fn wide(reply: &mut [u8; MAD_LEN], c: &PortCounters) {
    put(reply, DATA_AT + 8, words(c.sent_bytes).to_be_bytes());
    put(reply, DATA_AT + 16, words(c.received_bytes).to_be_bytes());
    put(reply, DATA_AT + 24, c.sent_packets.to_be_bytes());
    put(reply, DATA_AT + 32, c.received_packets.to_be_bytes());
}

/// Data is counted in words of four bytes.
fn words(bytes: u64) -> u64 {
    bytes / 4
}

fn stop16(value: u64) -> [u8; 2] {
    u16::try_from(value).unwrap_or(u16::MAX).to_be_bytes()
}

fn stop32(value: u64) -> [u8; 4] {
    u32::try_from(value).unwrap_or(u32::MAX).to_be_bytes()
}

fn put<const N: usize>(reply: &mut [u8; MAD_LEN], at: usize, value: [u8; N]) {
    for (to, from) in reply.iter_mut().skip(at).zip(value) {
        *to = from;
    }
}
