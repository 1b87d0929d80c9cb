// SPDX-License-Identifier: GPL-2.0

//! The header at the start of a message to a tag-matching queue (`tm_types.h`).

use crate::key::Key;

/// Bytes of the tag-matching header.
pub const TMH_LEN: usize = 16;
/// Bytes of the tag-matching header and the rendezvous header.
pub const RNDV_LEN: usize = 32;

// `enum ibv_tmh_op`
const RNDV: u8 = 1;
const FIN: u8 = 2;
const EAGER: u8 = 3;

/// Tag-matching header, host byte order.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tmh {
    /// Data of the application, not looked at.
    pub app_ctx: u32,
    /// The tag.
    pub tag: u64,
}

/// Rendezvous header, host byte order: where the data are.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Rvh {
    /// Virtual address at the sender.
    pub va: u64,
    /// Remote key.
    pub rkey: Key,
    /// Bytes.
    pub len: u32,
}

/// A message, seen by its first bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// Nothing to match: without a tag, the end of a rendezvous, or nothing that
    /// a device understands (an unknown operation, a header cut short). It goes
    /// to software whole.
    Raw,
    /// A tag, then the data.
    Eager(Tmh),
    /// A tag, and where the data are.
    Rendezvous(Tmh, Rvh),
}

impl Message {
    /// Reads the start of a message: its first [`RNDV_LEN`] bytes, or all if it
    /// has fewer. Reserved bytes are ignored.
    pub fn parse(head: &[u8]) -> Self {
        let Some((tmh, rest)) = head.split_first_chunk::<TMH_LEN>() else {
            return Self::Raw;
        };
        let [op, _, _, _, a0, a1, a2, a3, tag @ ..] = *tmh;
        let tmh = Tmh {
            app_ctx: u32::from_be_bytes([a0, a1, a2, a3]),
            tag: u64::from_be_bytes(tag),
        };
        match op {
            EAGER => Self::Eager(tmh),
            RNDV => match rest.first_chunk::<{ RNDV_LEN - TMH_LEN }>() {
                Some(rvh) => Self::Rendezvous(tmh, Rvh::parse(rvh)),
                None => Self::Raw,
            },
            _ => Self::Raw,
        }
    }
}

impl Rvh {
    fn parse(b: &[u8; RNDV_LEN - TMH_LEN]) -> Self {
        let [a0, a1, a2, a3, a4, a5, a6, a7, k0, k1, k2, k3, l0, l1, l2, l3] = *b;
        Self {
            va: u64::from_be_bytes([a0, a1, a2, a3, a4, a5, a6, a7]),
            rkey: Key::from_wire([k0, k1, k2, k3]),
            len: u32::from_be_bytes([l0, l1, l2, l3]),
        }
    }
}

/// The message that tells the sender that its data were fetched: the headers of
/// its request, with the operation changed.
pub fn fin(tmh: &Tmh, rvh: &Rvh) -> [u8; RNDV_LEN] {
    let [a0, a1, a2, a3] = tmh.app_ctx.to_be_bytes();
    let [t0, t1, t2, t3, t4, t5, t6, t7] = tmh.tag.to_be_bytes();
    let [v0, v1, v2, v3, v4, v5, v6, v7] = rvh.va.to_be_bytes();
    let [k0, k1, k2, k3] = rvh.rkey.to_wire();
    let [l0, l1, l2, l3] = rvh.len.to_be_bytes();
    [
        FIN, 0, 0, 0, a0, a1, a2, a3, t0, t1, t2, t3, t4, t5, t6, t7, //
        v0, v1, v2, v3, v4, v5, v6, v7, k0, k1, k2, k3, l0, l1, l2, l3,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(op: u8) -> [u8; RNDV_LEN] {
        let mut b = [0; RNDV_LEN];
        for (i, x) in b.iter_mut().enumerate() {
            *x = i as u8;
        }
        b[0] = op;
        b
    }

    const TMH: Tmh = Tmh {
        app_ctx: 0x0405_0607,
        tag: 0x0809_0a0b_0c0d_0e0f,
    };
    const RVH: Rvh = Rvh {
        va: 0x1011_1213_1415_1617,
        rkey: Key::new(0x1819_1a1b),
        len: 0x1c1d_1e1f,
    };

    #[test]
    fn layout() {
        assert_eq!(Message::parse(&headers(EAGER)), Message::Eager(TMH));
        assert_eq!(
            Message::parse(&headers(RNDV)),
            Message::Rendezvous(TMH, RVH)
        );
        let mut end = headers(FIN);
        end[1..4].fill(0);
        assert_eq!(fin(&TMH, &RVH), end);
    }

    #[test]
    fn nothing_to_match() {
        for op in [0, FIN, 4, 0x83, 0xff] {
            assert_eq!(Message::parse(&headers(op)), Message::Raw);
        }
        for len in 0..RNDV_LEN {
            assert_eq!(Message::parse(&headers(RNDV)[..len]), Message::Raw);
            let eager = Message::parse(&headers(EAGER)[..len]);
            assert_eq!(eager == Message::Raw, len < TMH_LEN);
        }
    }
}
