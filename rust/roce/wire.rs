// SPDX-License-Identifier: GPL-2.0

//! The headers on the wire, one file each, and complete packets.
//!
//! [`Checked::check`] checks a packet from the wire once; it can fail only by returning an error. A
//! packet that passed is a [`Packet`]. The `parse` of a header takes as many bytes as the header
//! has, and does not fail. Every `emit` appends to a [`HeaderBuf`].

pub mod aeth;
pub mod atomiceth;
pub mod bth;
pub mod checked;
pub mod cnp;
pub mod deth;
pub mod feth;
pub mod header_buf;
pub mod ieth;
pub mod immdt;
pub mod packet;
pub mod reth;
pub mod train;
pub mod xrceth;

pub use aeth::{
    Aeth,
    NakCode,
    Syndrome, //
};
pub use atomiceth::{
    AtomicAckEth,
    AtomicEth, //
};
pub use bth::Bth;
pub use checked::{
    Checked,
    Content,
    Kind,
    Refused, //
};
pub use cnp::Cnp;
pub use deth::Deth;
pub use feth::Feth;
pub use header_buf::HeaderBuf;
pub use ieth::Ieth;
pub use immdt::ImmDt;
pub use packet::{
    split_icrc,
    Packet,
    ParseError, //
};
pub use reth::Reth;
pub use train::TrainHeader;
pub use xrceth::XrcEth;

/// UDP destination port of RoCEv2.
pub const UDP_PORT: u16 = 4791;

/// Bytes of the invariant CRC behind the payload.
pub const ICRC_LEN: usize = 4;

/// Bytes that make a payload of `len` bytes a multiple of four.
#[inline]
pub const fn pad(len: u32) -> u8 {
    (len.wrapping_neg() & 3) as u8
}

/// Takes `N` bytes off the front of `bytes`.
#[inline]
pub(crate) fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (head, tail) = bytes.split_first_chunk::<N>()?;
    *bytes = tail;
    Some(head)
}

#[cfg(test)]
mod tests {
    #[test]
    fn pad() {
        assert_eq!([0, 1, 2, 3, 4, 5].map(super::pad), [0, 3, 2, 1, 0, 3]);
        assert_eq!(super::pad(0x8000_0000), 0);
        assert_eq!(super::pad(u32::MAX), 1);
    }
}
