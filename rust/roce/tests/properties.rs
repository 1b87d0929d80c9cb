// SPDX-License-Identifier: GPL-2.0

//! Properties that hold for all inputs. Counterexamples are made as small as possible.

#[path = "../sim/mod.rs"]
mod sim;

use proptest::prelude::*;

use roce::icrc::{
    self,
    Crc32, //
};
use roce::key::Key;
use roce::mtu::{
    Mtu,
    MAX_MESSAGE, //
};
use roce::number::{
    Qpn,
    Srqn, //
};
use roce::opcode::Opcode;
use roce::psn::Psn;
use roce::ud::{
    receive,
    Datagram, //
};
use roce::wire::*;

use sim::crc::Crc;
use sim::network::Faults;
use sim::run::{
    run,
    Scenario, //
};
use sim::workload::Mix;

fn mtu() -> impl Strategy<Value = Mtu> {
    (1u32..=5).prop_map(|m| Mtu::from_ib(m).unwrap())
}

fn known_opcode() -> impl Strategy<Value = u8> {
    any::<u8>().prop_filter("known", |b| Opcode::from_byte(*b).is_some())
}

/// Emits a header and returns its bytes.
fn emitted(f: impl FnOnce(&mut HeaderBuf)) -> Vec<u8> {
    let mut h = HeaderBuf::new();
    f(&mut h);
    h.as_slice().to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(2000)
    })]

    #[test]
    fn psn_distance_is_the_inverse_of_add(a: u32, d in -(1i32 << 23)..(1i32 << 23)) {
        let a = Psn::new(a);
        let b = a.add(d as u32);
        prop_assert_eq!(b.distance(a), d);
        prop_assert_eq!(b.is_before(a), d < 0);
        prop_assert_eq!(b.is_after(a), d > 0);
        prop_assert_eq!(a.next().prev(), a);
    }

    #[test]
    fn psn_since_counts(a: u32, n in 0u32..1 << 24) {
        let a = Psn::new(a);
        prop_assert_eq!(a.add(n).since(a), n);
        prop_assert_eq!(a.add(n).is_within(a, n), false);
        prop_assert_eq!(n == 0 || a.add(n - 1).is_within(a, n), true);
    }

    #[test]
    fn segments_cover_the_message(m in mtu(), len in 0u32..=MAX_MESSAGE) {
        let n = m.packets(len);
        prop_assert!(n >= 1);
        let last = m.payload(len, n - 1);
        prop_assert_eq!(u64::from(n - 1) * u64::from(m.bytes()) + u64::from(last), u64::from(len));
        prop_assert!(len == 0 || last != 0);
        prop_assert_eq!(m.payload(len, n), 0);
    }

    #[test]
    fn any_bytes_are_a_packet_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(p) = Packet::parse(&bytes) {
            prop_assert_eq!(p.bth.version, 0);
            prop_assert_eq!(
                p.opcode.header_len() + p.payload.len() + usize::from(p.bth.pad),
                bytes.len()
            );
        }
    }

    #[test]
    fn well_formed_bytes_are_a_packet(
        op in known_opcode(),
        pad in 0u8..4,
        words in 0usize..300,
        fill: u8,
    ) {
        let len = Opcode::from_byte(op).unwrap().header_len();
        let mut bytes = vec![fill; len + 4 * words];
        bytes[0] = op;
        bytes[1] = pad << 4;
        let result = Packet::parse(&bytes);
        if words == 0 && pad != 0 {
            prop_assert_eq!(result.unwrap_err(), ParseError::Pad);
        } else {
            prop_assert_eq!(result.unwrap().payload.len(), 4 * words - usize::from(pad));
        }
    }

    #[test]
    fn headers_round_trip(a: u64, b: u64, c: u64, k: u32, l: u32, x: u8, y: u8) {
        let reth = Reth { va: a, rkey: Key::new(k), len: l };
        prop_assert_eq!(Reth::parse(&emitted(|h| reth.emit(h)).try_into().unwrap()), reth);
        let atomic = AtomicEth { va: a, rkey: Key::new(k), swap_add: b, compare: c };
        prop_assert_eq!(AtomicEth::parse(&emitted(|h| atomic.emit(h)).try_into().unwrap()), atomic);
        let ack = AtomicAckEth { original: a };
        prop_assert_eq!(AtomicAckEth::parse(&emitted(|h| ack.emit(h)).try_into().unwrap()), ack);
        let aeth = Aeth { syndrome: Syndrome::from_byte(x), msn: k & 0xff_ffff };
        prop_assert_eq!(Aeth::parse(&emitted(|h| aeth.emit(h)).try_into().unwrap()), aeth);
        let deth = Deth { qkey: l, src_qpn: Qpn::new(k) };
        prop_assert_eq!(Deth::parse(&emitted(|h| deth.emit(h)).try_into().unwrap()), deth);
        let xrc = XrcEth { srqn: Srqn::new(k) };
        prop_assert_eq!(XrcEth::parse(&emitted(|h| xrc.emit(h)).try_into().unwrap()), xrc);
        let imm = ImmDt { raw: l };
        prop_assert_eq!(ImmDt::parse(&emitted(|h| imm.emit(h)).try_into().unwrap()), imm);
        let ieth = Ieth { rkey: Key::new(l) };
        prop_assert_eq!(Ieth::parse(&emitted(|h| ieth.emit(h)).try_into().unwrap()), ieth);
        let feth = Feth { placement: x & 0xf, level: y & 3 };
        prop_assert_eq!(Feth::parse(&emitted(|h| feth.emit(h)).try_into().unwrap()), feth);
        let bth = Bth {
            opcode: x,
            solicited: y & 1 != 0,
            mig_req: y & 2 != 0,
            pad: y >> 2 & 3,
            version: y >> 4,
            pkey: k as u16,
            fecn: y & 4 != 0,
            becn: y & 8 != 0,
            dest_qpn: Qpn::new(l),
            ack_req: y & 16 != 0,
            psn: Psn::new(k),
        };
        prop_assert_eq!(Bth::parse(&emitted(|h| bth.emit(h)).try_into().unwrap()), bth);
    }

    #[test]
    fn datagrams_round_trip(
        src: u32,
        qkey: u32,
        imm: Option<u32>,
        data in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let d = Datagram {
            src_qpn: Qpn::new(src),
            dest_qpn: Qpn::GSI,
            qkey,
            pkey: 0xffff,
            psn: Psn::new(src),
            solicited: src & 1 != 0,
            imm,
            len: data.len() as u32,
        };
        let (h, pad) = d.headers();
        let mut bytes = h.as_slice().to_vec();
        bytes.extend(&data);
        bytes.resize(bytes.len() + usize::from(pad), 0);
        let p = Packet::parse(&bytes).unwrap();
        let m = receive(&p, qkey, 0xffff).unwrap();
        prop_assert_eq!((m.src_qpn, m.imm, m.solicited), (d.src_qpn, imm, d.solicited));
        prop_assert_eq!(m.payload, &data[..]);
        prop_assert!(receive(&p, !qkey, 0xffff).is_err());
    }

    #[test]
    fn icrc_sees_every_flipped_bit_but_the_masked_ones(
        is_v6: bool,
        fill: u8,
        len in 12usize..60,
        bit in 0usize..2000,
    ) {
        let header_len = if is_v6 { 48 } else { 28 };
        let mut bytes = vec![fill; header_len + len];
        bytes[0] = if is_v6 { 0x60 } else { 0x45 };
        let of = |b: &[u8]| icrc::compute::<Crc>(&b[..header_len], &b[header_len..]);
        let before = of(&bytes).unwrap();
        let bit = bit % (bytes.len() * 8);
        let at = bit / 8;
        bytes[at] ^= 1 << (bit % 8);
        let is_masked = if is_v6 {
            matches!(at, 1..=3 | 7 | 46 | 47 | 52) || (at == 0 && bit % 8 < 4)
        } else {
            matches!(at, 1 | 8 | 10 | 11 | 26 | 27 | 32)
        };
        match of(&bytes) {
            // No longer an IP header of that version.
            None => prop_assert_eq!(at, 0),
            Some(after) => prop_assert_eq!(after == before, is_masked),
        }
    }

    #[test]
    fn crc_continues(
        a in proptest::collection::vec(any::<u8>(), 0..50),
        cut in 0usize..50,
        seed: u32,
    ) {
        let cut = cut.min(a.len());
        prop_assert_eq!(
            Crc::update(Crc::update(seed, &a[..cut]), &a[cut..]),
            Crc::update(seed, &a)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 200,
        ..ProptestConfig::with_cases(150)
    })]

    /// The simulator's invariants hold for any mixture of faults.
    #[test]
    fn any_network_that_lets_something_through(
        seed: u64,
        mix in prop_oneof![Just(Mix::Rc), Just(Mix::Xrc), Just(Mix::Uc)],
        loss in 0u64..30,
        duplicate in 0u64..300,
        reorder in 0u64..60,
        corrupt in 0u64..20,
        is_slow_receiver: bool,
        is_local: bool,
        count in 1usize..60,
        big in 1u32..60,
    ) {
        let is_reliable = mix != Mix::Uc;
        run(&Scenario {
            mix,
            is_rewriting: false,
            // What UC loses to overtaking or want of receives nobody counts here.
            faults: Faults {
                loss: if is_reliable { loss } else { loss.max(1) },
                duplicate,
                reorder,
                corrupt,
            },
            is_slow_receiver,
            is_local,
            count,
            big,
            is_disaster: false,
        }, seed);
    }
}
