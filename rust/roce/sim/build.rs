// SPDX-License-Identifier: GPL-2.0

//! Hand-made packets, for the tests that talk to one side only.

use roce::opcode::{
    Headers,
    Opcode, //
};
use roce::wire::{
    Checked,
    Content,
    HeaderBuf,
    TrainHeader, //
};

/// A packet, header by header; the operation code says which ones are used.
#[derive(Clone, Default)]
pub struct Raw {
    pub opcode: u8,
    pub psn: u32,
    pub ack_req: bool,
    pub solicited: bool,
    pub pkey: u16,
    pub srqn: u32,
    pub va: u64,
    pub rkey: u32,
    pub len: u32,
    pub feth: u8,
    pub compare: u64,
    pub swap_add: u64,
    pub syndrome: u8,
    pub msn: u32,
    pub original: u64,
    pub imm: [u8; 4],
    pub inv: u32,
    pub payload: Vec<u8>,
}

impl Raw {
    pub fn new(opcode: u8, psn: u32) -> Self {
        Self {
            opcode,
            psn,
            pkey: 0xffff,
            feth: 1,
            ..Self::default()
        }
    }

    pub fn ask(mut self) -> Self {
        self.ack_req = true;
        self
    }

    pub fn data(mut self, len: usize) -> Self {
        self.payload = (0..len).map(|i| i as u8).collect();
        self
    }

    pub fn remote(mut self, rkey: u32, va: u64, len: u32) -> Self {
        (self.rkey, self.va, self.len) = (rkey, va, len);
        self
    }

    /// Of a FLUSH: placement type bits, and the selectivity level above them.
    pub fn feth(mut self, feth: u8) -> Self {
        self.feth = feth;
        self
    }

    pub fn srqn(mut self, srqn: u32) -> Self {
        self.srqn = srqn;
        self
    }

    pub fn aeth(mut self, syndrome: u8) -> Self {
        self.syndrome = syndrome;
        self
    }

    /// What is covered by the invariant CRC.
    pub fn bytes(&self) -> Vec<u8> {
        let has = Opcode::from_byte(self.opcode).unwrap().headers();
        let pad = (4 - self.payload.len() % 4) % 4;
        let mut b = vec![self.opcode, 0x40 | (pad as u8) << 4];
        if self.solicited {
            b[1] |= 0x80;
        }
        b.extend(self.pkey.to_be_bytes());
        b.extend(0x77u32.to_be_bytes());
        b.extend((self.psn & 0xff_ffff | u32::from(self.ack_req) << 31).to_be_bytes());
        if has.has(Headers::XRCETH) {
            b.extend(self.srqn.to_be_bytes());
        }
        if has.has(Headers::DETH) {
            b.extend([0; 8]);
        }
        if has.has(Headers::FETH) {
            b.extend([0, 0, 0, self.feth]);
        }
        if has.has(Headers::RETH | Headers::ATOMICETH) {
            b.extend(self.va.to_be_bytes());
            b.extend(self.rkey.to_be_bytes());
        }
        if has.has(Headers::RETH) {
            b.extend(self.len.to_be_bytes());
        }
        if has.has(Headers::ATOMICETH) {
            b.extend(self.swap_add.to_be_bytes());
            b.extend(self.compare.to_be_bytes());
        }
        if has.has(Headers::AETH) {
            b.extend((u32::from(self.syndrome) << 24 | self.msn).to_be_bytes());
        }
        if has.has(Headers::ATOMICACKETH) {
            b.extend(self.original.to_be_bytes());
        }
        if has.has(Headers::IMMDT) {
            b.extend(self.imm);
        }
        if has.has(Headers::IETH) {
            b.extend(self.inv.to_be_bytes());
        }
        b.extend(&self.payload);
        b.resize(b.len() + pad, 0);
        b
    }
}

/// Packets that are read as one: the first of them, with the payload of all, and with the AckReq
/// bit of the last.
pub fn joined(all: &[Raw]) -> Raw {
    Raw {
        payload: all.iter().flat_map(|raw| raw.payload.clone()).collect(),
        ack_req: all.last().expect("there is one").ack_req,
        ..all[0].clone()
    }
}

/// The headers of `count` Middle packets behind a packet with the headers `before`, of which the
/// last asks for an acknowledgement if `ack_req`. They are made from the headers of the train.
pub fn middles(before: &HeaderBuf, count: u32, ack_req: bool) -> Vec<Vec<u8>> {
    let mut train = TrainHeader::begin(before).expect("nothing may follow it");
    train.extend(count, ack_req);
    let header = train.as_slice();
    let checked = Checked::check_train(header, 0xffff).expect("it is a train");
    (1..=count)
        .map(|i| {
            let content = checked.train_content(header, (i, i), count + 1, &[]);
            let Content::Message(packet) = content else {
                panic!("a message became a CNP");
            };
            let mut out = HeaderBuf::new();
            packet.bth.emit(&mut out);
            if let Some(xrceth) = packet.xrceth {
                xrceth.emit(&mut out);
            }
            out.as_slice().to_vec()
        })
        .collect()
}
