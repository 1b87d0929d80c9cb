// SPDX-License-Identifier: GPL-2.0

//! Random work requests and the model of what they must do.

use roce::key::Key;
use roce::mtu::Mtu;
use roce::number::Srqn;
use roce::requester::{
    SendOp,
    SendWr, //
};

use super::rng::{
    content,
    Rng, //
};

pub const RKEY_WRITE: u32 = 0x100;
pub const RKEY_READ: u32 = 0x200;
pub const RKEY_ATOMIC: u32 = 0x300;
/// To read what was written with [`RKEY_WRITE`].
pub const RKEY_BACK: u32 = 0x400;
/// Where the regions begin; the low bits are awkward on purpose.
pub const VA_WRITE: u64 = 0x7f00_0000_0123;
pub const VA_READ: u64 = 0xffff_0000_0000_0001;
pub const VA_ATOMIC: u64 = 0x1000;
pub const WRITE_LEN: usize = 1 << 18;
pub const READ_LEN: u64 = 1 << 22;
pub const READ_SEED: u64 = 0x5eed;
pub const ATOMICS: usize = 8;

/// Memory that a remote side may touch.
#[derive(Clone, PartialEq, Eq)]
pub struct Memory {
    pub write: Vec<u8>,
    pub atomic: [u64; ATOMICS],
}

impl Memory {
    pub fn new() -> Self {
        Self {
            write: vec![0; WRITE_LEN],
            atomic: [0; ATOMICS],
        }
    }
}

/// A message that must come out of a receive queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Received {
    pub srqn: Option<Srqn>,
    pub is_write: bool,
    pub len: u32,
    pub data: Vec<u8>,
    pub imm: Option<u32>,
    pub invalidated: Option<Key>,
    pub solicited: bool,
}

/// A work request and what its completion must find in the buffers.
#[derive(Clone)]
pub struct Work {
    pub wr: SendWr,
    pub seed: u64,
    pub expect: Vec<u8>,
}

impl Work {
    /// The bytes that the message carries.
    pub fn payload(&self, offset: u32, len: u32) -> Vec<u8> {
        (u64::from(offset)..u64::from(offset) + u64::from(len))
            .map(|at| content(self.seed, at))
            .collect()
    }
}

/// Which operations to mix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mix {
    Rc,
    Xrc,
    Uc,
}

/// All work of one requester, with its effects.
pub struct Workload {
    pub work: Vec<Work>,
    pub received: Vec<Received>,
    pub memory: Memory,
}

impl Workload {
    /// `is_rewriting`: the same few places are written and read back again and
    /// again.
    pub fn new(
        rng: &mut Rng,
        mix: Mix,
        is_rewriting: bool,
        count: usize,
        mtu: Mtu,
        big: u32,
        srqs: u32,
    ) -> Self {
        let mut load = Self {
            work: Vec::new(),
            received: Vec::new(),
            memory: Memory::new(),
        };
        for id in 0..count {
            load.add(rng, mix, is_rewriting, id as u64, mtu, big, srqs);
        }
        load
    }

    /// One of a few places that overlap when messages are long.
    fn place(&self, rng: &mut Rng, length: u32) -> u64 {
        (rng.below(3) * 5003).min(WRITE_LEN as u64 - u64::from(length))
    }

    fn length(rng: &mut Rng, mtu: Mtu, big: u32) -> u32 {
        let m = u64::from(mtu.bytes());
        let len = match rng.below(10) {
            0 => 0,
            1 => rng.range(1, 4),
            2 | 3 => rng.below(m) + 1,
            4 => m * rng.range(1, 4),
            5 => m * rng.range(1, 4) + rng.range(1, 3),
            6..=8 => rng.below(8 * m),
            _ => rng.below(u64::from(big) * m),
        };
        (len as u32).min(WRITE_LEN as u32 / 2)
    }

    #[expect(clippy::too_many_arguments)]
    fn add(
        &mut self,
        rng: &mut Rng,
        mix: Mix,
        is_rewriting: bool,
        id: u64,
        mtu: Mtu,
        big: u32,
        srqs: u32,
    ) {
        use SendOp::*;
        let op = match mix {
            _ if is_rewriting => rng.pick(&[Write, Read, Write, Read, WriteImm, Send, FetchAdd]),
            Mix::Uc => rng.pick(&[Send, Send, SendImm, Write, WriteImm, Local]),
            _ => rng.pick(&[
                Send,
                Send,
                SendImm,
                SendInv,
                Write,
                Write,
                WriteImm,
                Read,
                Read,
                CmpSwap,
                FetchAdd,
                AtomicWrite,
                Flush,
                Local,
            ]),
        };
        let seed = rng.next();
        let srqn = Srqn::new(0x800000 + rng.below(u64::from(srqs.max(1))) as u32);
        let length = match op {
            Local => 0,
            CmpSwap | FetchAdd | AtomicWrite => 8,
            _ => Self::length(rng, mtu, big),
        };
        let mut wr = SendWr {
            wr_id: id,
            op,
            signaled: rng.below(3) != 0,
            solicited: rng.below(4) == 0,
            fence: rng.below(8) == 0,
            length,
            imm: rng.next() as u32,
            invalidate_rkey: Key::new(rng.next() as u32),
            srqn,
            cookie: !(id as u32),
            ..SendWr::default()
        };
        let mut work = Work {
            wr,
            seed,
            expect: Vec::new(),
        };
        let cell = rng.below(ATOMICS as u64) as usize;
        match op {
            Write | WriteImm => {
                let at = if is_rewriting {
                    // A READ may still be answered, or answered again, when what
                    // was posted behind it is executed.
                    wr.fence = true;
                    self.place(rng, length)
                } else {
                    rng.below(WRITE_LEN as u64 - u64::from(length) + 1)
                };
                wr.rkey = Key::new(RKEY_WRITE);
                wr.remote_addr = VA_WRITE + at;
                let data = work.payload(0, length);
                self.memory.write[at as usize..][..data.len()].copy_from_slice(&data);
            }
            Read if is_rewriting => {
                let at = self.place(rng, length);
                wr.rkey = Key::new(RKEY_BACK);
                wr.remote_addr = VA_WRITE + at;
                work.expect = self.memory.write[at as usize..][..length as usize].to_vec();
            }
            Read => {
                let at = rng.below(READ_LEN - u64::from(length));
                wr.rkey = Key::new(RKEY_READ);
                wr.remote_addr = VA_READ.wrapping_add(at);
                work.expect = (at..at + u64::from(length))
                    .map(|a| content(READ_SEED, a))
                    .collect();
            }
            CmpSwap | FetchAdd | AtomicWrite => {
                wr.rkey = Key::new(RKEY_ATOMIC);
                wr.remote_addr = VA_ATOMIC + 8 * cell as u64;
                let before = self.memory.atomic[cell];
                let now = match op {
                    CmpSwap => {
                        wr.compare_add = if rng.below(2) == 0 {
                            before
                        } else {
                            rng.next()
                        };
                        wr.swap = rng.next();
                        if wr.compare_add == before {
                            wr.swap
                        } else {
                            before
                        }
                    }
                    FetchAdd => {
                        wr.compare_add = rng.next();
                        before.wrapping_add(wr.compare_add)
                    }
                    _ => u64::from_ne_bytes(work.payload(0, 8).try_into().unwrap()),
                };
                if op != AtomicWrite {
                    work.expect = before.to_ne_bytes().to_vec();
                }
                self.memory.atomic[cell] = now;
            }
            Flush => {
                wr.rkey = Key::new(RKEY_WRITE);
                wr.remote_addr = VA_WRITE;
                wr.flush_placement = 1;
            }
            _ => {}
        }
        work.wr = wr;
        if op.consumes_receive() {
            let is_write = op == WriteImm;
            self.received.push(Received {
                srqn: (mix == Mix::Xrc).then_some(srqn),
                is_write,
                len: length,
                data: if is_write {
                    Vec::new()
                } else {
                    work.payload(0, length)
                },
                imm: matches!(op, SendImm | WriteImm).then_some(wr.imm),
                invalidated: (op == SendInv).then_some(wr.invalidate_rkey),
                solicited: wr.solicited,
            });
        }
        self.work.push(work);
    }
}
