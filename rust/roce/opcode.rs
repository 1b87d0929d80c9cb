// SPDX-License-Identifier: GPL-2.0

//! The operation codes of the base transport header (IBTA 9.2.1, table 38; the
//! XRC ones from annex A14).

use crate::wire::bth;

/// The transport service that an operation code belongs to: its upper 3 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// Reliable connection.
    Rc = 0x00,
    /// Unreliable connection.
    Uc = 0x20,
    /// Unreliable datagram.
    Ud = 0x60,
    /// Extended reliable connection.
    Xrc = 0xa0,
}

/// What a packet does: the lower 5 bits of an operation code.
#[expect(missing_docs, reason = "the names are those of IBTA")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    SendFirst = 0x00,
    SendMiddle = 0x01,
    SendLast = 0x02,
    SendLastImm = 0x03,
    SendOnly = 0x04,
    SendOnlyImm = 0x05,
    WriteFirst = 0x06,
    WriteMiddle = 0x07,
    WriteLast = 0x08,
    WriteLastImm = 0x09,
    WriteOnly = 0x0a,
    WriteOnlyImm = 0x0b,
    ReadRequest = 0x0c,
    ReadResponseFirst = 0x0d,
    ReadResponseMiddle = 0x0e,
    ReadResponseLast = 0x0f,
    ReadResponseOnly = 0x10,
    Acknowledge = 0x11,
    AtomicAcknowledge = 0x12,
    CmpSwap = 0x13,
    FetchAdd = 0x14,
    SendLastInv = 0x16,
    SendOnlyInv = 0x17,
    Flush = 0x1c,
    AtomicWrite = 0x1d,
}

/// Groups of operations that make up one kind of message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// SEND in all its forms.
    Send,
    /// RDMA WRITE in all its forms.
    Write,
    /// RDMA READ request.
    Read,
    /// Compare-and-swap and fetch-and-add.
    Atomic,
    /// FLUSH (IBTA 1.5 memory placement extensions).
    Flush,
    /// ATOMIC WRITE (IBTA 1.5 memory placement extensions).
    AtomicWrite,
    /// RDMA READ response.
    ReadResponse,
    /// ACK, NAK, RNR NAK.
    Ack,
    /// The result of an atomic.
    AtomicAck,
}

/// Where a packet stands in its message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// First of several.
    First,
    /// Neither first nor last.
    Middle,
    /// Last of several.
    Last,
    /// The only one.
    Only,
}

impl Position {
    /// The position of packet `index` of `count`.
    #[inline]
    pub const fn of(index: u32, count: u32) -> Self {
        let last = index.wrapping_add(1) >= count;
        match (index == 0, last) {
            (true, true) => Self::Only,
            (true, false) => Self::First,
            (false, true) => Self::Last,
            (false, false) => Self::Middle,
        }
    }

    /// Whether a message begins here.
    #[inline]
    pub const fn begins(self) -> bool {
        matches!(self, Self::First | Self::Only)
    }

    /// Whether a message ends here.
    #[inline]
    pub const fn ends(self) -> bool {
        matches!(self, Self::Last | Self::Only)
    }
}

/// The set of extended headers that follow the base transport header.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Headers(u16);

impl Headers {
    /// XRC extended transport header.
    pub const XRCETH: u16 = 1 << 0;
    /// Datagram extended transport header.
    pub const DETH: u16 = 1 << 1;
    /// FLUSH extended transport header.
    pub const FETH: u16 = 1 << 2;
    /// RDMA extended transport header.
    pub const RETH: u16 = 1 << 3;
    /// Atomic extended transport header.
    pub const ATOMICETH: u16 = 1 << 4;
    /// ACK extended transport header.
    pub const AETH: u16 = 1 << 5;
    /// Atomic acknowledge extended transport header.
    pub const ATOMICACKETH: u16 = 1 << 6;
    /// Immediate data.
    pub const IMMDT: u16 = 1 << 7;
    /// Invalidate extended transport header.
    pub const IETH: u16 = 1 << 8;

    /// Whether one of `bits` is in the set.
    #[inline]
    pub const fn has(self, bits: u16) -> bool {
        self.0 & bits != 0
    }
}

/// A known operation code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opcode {
    /// Transport service.
    pub transport: Transport,
    /// Operation.
    pub operation: Operation,
}

impl Opcode {
    /// An operation code that need not exist: [`Opcode::from_byte`] is the one
    /// that checks.
    #[inline]
    pub const fn new(transport: Transport, operation: Operation) -> Self {
        Self {
            transport,
            operation,
        }
    }

    /// The operation code that `byte` stands for, if it is one that this crate
    /// implements.
    #[inline]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        let transport = match byte & 0xe0 {
            0x00 => Transport::Rc,
            0x20 => Transport::Uc,
            0x60 => Transport::Ud,
            0xa0 => Transport::Xrc,
            _ => return None,
        };
        use Operation::*;
        let operation = match byte & 0x1f {
            0x00 => SendFirst,
            0x01 => SendMiddle,
            0x02 => SendLast,
            0x03 => SendLastImm,
            0x04 => SendOnly,
            0x05 => SendOnlyImm,
            0x06 => WriteFirst,
            0x07 => WriteMiddle,
            0x08 => WriteLast,
            0x09 => WriteLastImm,
            0x0a => WriteOnly,
            0x0b => WriteOnlyImm,
            0x0c => ReadRequest,
            0x0d => ReadResponseFirst,
            0x0e => ReadResponseMiddle,
            0x0f => ReadResponseLast,
            0x10 => ReadResponseOnly,
            0x11 => Acknowledge,
            0x12 => AtomicAcknowledge,
            0x13 => CmpSwap,
            0x14 => FetchAdd,
            0x16 => SendLastInv,
            0x17 => SendOnlyInv,
            0x1c => Flush,
            0x1d => AtomicWrite,
            _ => return None,
        };
        let exists = match transport {
            Transport::Rc | Transport::Xrc => true,
            Transport::Uc => (operation as u8) <= WriteOnlyImm as u8,
            Transport::Ud => matches!(operation, SendOnly | SendOnlyImm),
        };
        if exists {
            Some(Self::new(transport, operation))
        } else {
            None
        }
    }

    /// The byte in the base transport header.
    #[inline]
    pub const fn to_byte(self) -> u8 {
        self.transport as u8 | self.operation as u8
    }

    /// What kind of message the packet belongs to.
    #[inline]
    pub const fn family(self) -> Family {
        use Operation::*;
        match self.operation {
            SendFirst | SendMiddle | SendLast | SendLastImm | SendOnly | SendOnlyImm
            | SendLastInv | SendOnlyInv => Family::Send,
            WriteFirst | WriteMiddle | WriteLast | WriteLastImm | WriteOnly | WriteOnlyImm => {
                Family::Write
            }
            ReadRequest => Family::Read,
            ReadResponseFirst | ReadResponseMiddle | ReadResponseLast | ReadResponseOnly => {
                Family::ReadResponse
            }
            Acknowledge => Family::Ack,
            AtomicAcknowledge => Family::AtomicAck,
            CmpSwap | FetchAdd => Family::Atomic,
            Flush => Family::Flush,
            AtomicWrite => Family::AtomicWrite,
        }
    }

    /// Where the packet stands in its message.
    #[inline]
    pub const fn position(self) -> Position {
        use Operation::*;
        match self.operation {
            SendFirst | WriteFirst | ReadResponseFirst => Position::First,
            SendMiddle | WriteMiddle | ReadResponseMiddle => Position::Middle,
            SendLast | SendLastImm | SendLastInv | WriteLast | WriteLastImm | ReadResponseLast => {
                Position::Last
            }
            _ => Position::Only,
        }
    }

    /// Whether a responder sends such packets.
    #[inline]
    pub const fn is_response(self) -> bool {
        matches!(
            self.family(),
            Family::ReadResponse | Family::Ack | Family::AtomicAck
        )
    }

    /// Whether a requester sends such packets.
    #[inline]
    pub const fn is_request(self) -> bool {
        !self.is_response()
    }

    /// Whether the packet carries immediate data.
    #[inline]
    pub const fn has_imm(self) -> bool {
        self.headers().has(Headers::IMMDT)
    }

    /// The headers that follow the base transport header.
    #[inline]
    pub const fn headers(self) -> Headers {
        use Operation::*;
        let bits = match self.operation {
            SendFirst | SendMiddle | SendLast | SendOnly => 0,
            SendLastImm | SendOnlyImm => Headers::IMMDT,
            SendLastInv | SendOnlyInv => Headers::IETH,
            WriteFirst | WriteOnly => Headers::RETH,
            WriteMiddle | WriteLast => 0,
            WriteLastImm => Headers::IMMDT,
            WriteOnlyImm => Headers::RETH | Headers::IMMDT,
            ReadRequest | AtomicWrite => Headers::RETH,
            ReadResponseFirst | ReadResponseLast | ReadResponseOnly | Acknowledge => Headers::AETH,
            ReadResponseMiddle => 0,
            AtomicAcknowledge => Headers::AETH | Headers::ATOMICACKETH,
            CmpSwap | FetchAdd => Headers::ATOMICETH,
            Flush => Headers::FETH | Headers::RETH,
        };
        let own = match self.transport {
            Transport::Xrc if self.is_request() => Headers::XRCETH,
            Transport::Ud => Headers::DETH,
            _ => 0,
        };
        Headers(bits | own)
    }

    /// Bytes of all headers, the base transport header included.
    #[inline]
    pub const fn header_len(self) -> usize {
        let h = self.headers();
        let mut len = bth::LEN;
        // The lengths are constants whose sum is below 64.
        if h.has(Headers::XRCETH) {
            len = len.wrapping_add(4);
        }
        if h.has(Headers::DETH) {
            len = len.wrapping_add(8);
        }
        if h.has(Headers::FETH) {
            len = len.wrapping_add(4);
        }
        if h.has(Headers::RETH) {
            len = len.wrapping_add(16);
        }
        if h.has(Headers::ATOMICETH) {
            len = len.wrapping_add(28);
        }
        if h.has(Headers::AETH) {
            len = len.wrapping_add(4);
        }
        if h.has(Headers::ATOMICACKETH) {
            len = len.wrapping_add(8);
        }
        if h.has(Headers::IMMDT) {
            len = len.wrapping_add(4);
        }
        if h.has(Headers::IETH) {
            len = len.wrapping_add(4);
        }
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_round_trip_and_counts() {
        let mut per_class = [0; 8];
        for b in 0..=255u8 {
            if let Some(op) = Opcode::from_byte(b) {
                assert_eq!(op.to_byte(), b);
                assert_ne!(op.is_request(), op.is_response());
                per_class[usize::from(b >> 5)] += 1;
            }
        }
        // RC, UC, RD, UD, CNP, XRC and two unused classes.
        assert_eq!(per_class, [25, 12, 0, 2, 0, 25, 0, 0]);
        assert_eq!(Opcode::from_byte(0x81), None);
        assert_eq!(Opcode::from_byte(0x15), None);
        assert_eq!(Opcode::from_byte(0x2c), None);
        assert_eq!(Opcode::from_byte(0x60), None);
    }

    #[test]
    fn xrc_is_rc_plus_a0_with_xrceth_in_requests_only() {
        for b in 0..0x20u8 {
            let (Some(rc), Some(xrc)) = (Opcode::from_byte(b), Opcode::from_byte(b + 0xa0)) else {
                continue;
            };
            assert_eq!(rc.operation, xrc.operation);
            assert_eq!(xrc.headers().has(Headers::XRCETH), rc.is_request());
            let extra = if rc.is_request() { 4 } else { 0 };
            assert_eq!(xrc.header_len(), rc.header_len() + extra);
        }
    }

    #[test]
    fn lengths_as_in_the_tables_of_ibta() {
        let len = |b| Opcode::from_byte(b).unwrap().header_len();
        assert_eq!(len(0x00), 12); // SEND first
        assert_eq!(len(0x05), 16); // SEND only with immediate
        assert_eq!(len(0x0b), 32); // WRITE only with immediate
        assert_eq!(len(0x0c), 28); // READ request
        assert_eq!(len(0x0e), 12); // READ response middle
        assert_eq!(len(0x10), 16); // READ response only
        assert_eq!(len(0x12), 24); // atomic acknowledge
        assert_eq!(len(0x13), 40); // compare and swap
        assert_eq!(len(0x1c), 32); // FLUSH
        assert_eq!(len(0x64), 20); // UD SEND only
        assert_eq!(len(0x65), 24); // UD SEND only with immediate
        assert_eq!(len(0xb3), 44); // XRC compare and swap
    }

    #[test]
    fn positions() {
        assert_eq!(Position::of(0, 1), Position::Only);
        assert_eq!(Position::of(0, 2), Position::First);
        assert_eq!(Position::of(1, 3), Position::Middle);
        assert_eq!(Position::of(2, 3), Position::Last);
        assert!(Position::Only.begins() && Position::Only.ends());
    }
}
