// SPDX-License-Identifier: GPL-2.0
//! Tests of the ring protocol. The tests themselves act as the kernel's side.

use super::*;
use crate::abi::Cqe;

/// What the kernel does on its side.
impl Ring {
    fn kernel_take(&self) -> Option<u64> {
        let user = self.word(abi::RING_USER_INDEX).load(Ordering::Acquire);
        let mine = self.word(abi::RING_KERNEL_INDEX).load(Ordering::Relaxed);
        if user == mine {
            return None;
        }
        let cqe: Cqe = self.get(mine);
        self.word(abi::RING_KERNEL_INDEX)
            .store(mine.wrapping_add(1), Ordering::Release);
        Some(cqe.wr_id)
    }

    pub fn kernel_put(&self, wr_id: u64) -> bool {
        let user = self.word(abi::RING_USER_INDEX).load(Ordering::Acquire);
        let mine = self.word(abi::RING_KERNEL_INDEX).load(Ordering::Relaxed);
        if mine.wrapping_sub(user) == self.entries {
            return false;
        }
        let cqe = Cqe {
            wr_id,
            ..Cqe::default()
        };
        self.put(mine, 0, &cqe);
        self.word(abi::RING_KERNEL_INDEX)
            .store(mine.wrapping_add(1), Ordering::Release);
        true
    }

    /// What the kernel would find in a slot.
    pub fn peek<T: Plain>(&self, index: u32, offset: usize) -> T {
        // SAFETY: callers stay inside the slot, and the test owns both
        // sides.
        unsafe {
            self.slot(index)
                .add(offset)
                .cast::<T>()
                .as_ptr()
                .read_unaligned()
        }
    }

    pub fn set_flags(&self, flags: u32) {
        self.word(abi::RING_KERNEL_FLAGS)
            .store(flags, Ordering::Relaxed);
    }

    pub fn armed(&self) -> u32 {
        self.word(abi::RING_ARM).load(Ordering::Relaxed)
    }

    pub fn published(&self) -> u32 {
        self.user_index()
    }

    fn start_at(&self, index: u32) {
        self.word(abi::RING_USER_INDEX)
            .store(index, Ordering::Relaxed);
        self.word(abi::RING_KERNEL_INDEX)
            .store(index, Ordering::Relaxed);
    }
}

fn entry(wr_id: u64) -> Cqe {
    Cqe {
        wr_id,
        ..Cqe::default()
    }
}

#[test]
fn fills_wraps_and_refuses() {
    let ring = Ring::anonymous(4, 64);
    ring.start_at(u32::MAX - 1);
    let mut p = Producer::new(ring);
    for round in 0..5u64 {
        for i in 0..4 {
            let slot = p.free_slot().expect("room");
            p.put(slot, 0, &entry(round * 4 + i));
            p.advance();
        }
        assert!(p.free_slot().is_none());
        assert!(p.ring().kernel_take().is_none(), "nothing published yet");
        assert!(p.publish().is_some());
        assert!(p.publish().is_none());
        for i in 0..4 {
            assert_eq!(p.ring().kernel_take(), Some(round * 4 + i));
        }
    }
}

#[test]
fn rollback_forgets() {
    let mut p = Producer::new(Ring::anonymous(2, 64));
    p.free_slot().expect("room");
    p.advance();
    p.rollback();
    assert!(p.publish().is_none());
    assert!(p.ring().kernel_take().is_none());
}

#[test]
fn consumes_in_order() {
    let ring = Ring::anonymous(2, 64);
    ring.start_at(u32::MAX);
    let mut c = Consumer::new(ring);
    assert_eq!(c.take::<Cqe>(), None);
    assert!(c.ring().kernel_put(7));
    assert!(c.ring().kernel_put(8));
    assert!(!c.ring().kernel_put(9), "full until published");
    assert_eq!(c.take::<Cqe>().map(|e| e.wr_id), Some(7));
    assert_eq!(c.unpublished(), 1);
    assert!(!c.ring().kernel_put(9));
    c.publish();
    assert!(c.ring().kernel_put(9));
    assert_eq!(c.take::<Cqe>().map(|e| e.wr_id), Some(8));
    assert_eq!(c.take::<Cqe>().map(|e| e.wr_id), Some(9));
    assert_eq!(c.take::<Cqe>(), None);
}

#[test]
fn arm_never_weakens() {
    let c = Consumer::new(Ring::anonymous(2, 64));
    c.ring().arm(abi::ARM_SOLICITED);
    assert_eq!(c.ring().armed(), abi::ARM_SOLICITED);
    c.ring().arm(abi::ARM_NEXT);
    assert_eq!(c.ring().armed(), abi::ARM_NEXT);
    c.ring().arm(abi::ARM_SOLICITED);
    assert_eq!(c.ring().armed(), abi::ARM_NEXT);
}

#[test]
fn refuses_nonsense() {
    let bad = |entries, stride, slot| {
        let info = RingInfo {
            size: 4096,
            entries,
            stride,
            ..RingInfo::default()
        };
        let map = Arc::new(Mapping::anonymous(4096).expect("memory"));
        Ring::over(&map, 0, &info, slot).is_err()
    };
    assert!(!bad(32, 64, 64));
    assert!(bad(0, 64, 64));
    assert!(bad(3, 64, 64));
    assert!(bad(64, 64, 64), "longer than the mapping");
    assert!(bad(u32::MAX, u32::MAX, 64));
    assert!(bad(32, 60, 60), "unaligned");
    assert!(bad(32, 64, 128), "slots too short");
}

/// Two rings in one mapping, as the kernel describes them; and in two.
#[test]
fn a_pair() {
    use std::os::fd::AsRawFd;
    let file = crate::sys::unnamed_file();
    file.set_len(3 * 4096).expect("length");
    let info = |offset, size| RingInfo {
        offset,
        size,
        entries: 8,
        stride: 64,
        ..RingInfo::default()
    };
    let pair = |one: &RingInfo, other: &RingInfo| {
        let fd = file.as_raw_fd();
        Ring::map_pair(fd, (one, 64), (other, 64)).map(|(a, b)| (a.expect("one"), b))
    };
    let one = info(4096, 4096);
    for other in [info(4096 + 768, 4096 - 768), info(8192, 4096)] {
        let (a, b) = pair(&one, &other).expect("mapped");
        let b = b.expect("other");
        a.start_at(5);
        b.start_at(7);
        assert_eq!((a.user_index(), b.user_index()), (5, 7));
        // What the other side sees.
        let at = |offset| {
            let mut word = [0; 4];
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut word, offset).expect("file");
            u32::from_ne_bytes(word)
        };
        assert_eq!((at(one.offset), at(other.offset)), (5, 7));
        drop(a);
        assert_eq!(b.user_index(), 7, "alone");
    }
    assert!(pair(&one, &info(0, 0)).expect("mapped").1.is_none());
    assert!(pair(&one, &info(4096 + 3584, 512)).is_err(), "too short");
    assert!(pair(&one, &info(4096 + 772, 3324)).is_err(), "unaligned");
}

/// Both sides at once, each with a mapping of its own: nothing lost,
/// doubled or torn.
#[test]
fn two_threads() {
    use std::os::fd::AsRawFd;
    const N: u64 = 100_000;
    let file = crate::sys::unnamed_file();
    file.set_len(4096).expect("length");
    let info = RingInfo {
        size: 4096,
        entries: 8,
        stride: 64,
        ..RingInfo::default()
    };
    let map = || {
        Ring::map(file.as_raw_fd(), &info, 64)
            .expect("mapped")
            .expect("not empty")
    };
    let kernel = map();
    let mut p = Producer::new(map());
    std::thread::scope(|s| {
        s.spawn(move || {
            let mut want = 0;
            while want < N {
                match kernel.kernel_take() {
                    Some(got) => {
                        assert_eq!(got, want);
                        want += 1;
                    }
                    None => std::thread::yield_now(),
                }
            }
        });
        let mut i = 0;
        while i < N {
            if let Some(slot) = p.free_slot() {
                p.put(slot, 0, &entry(i));
                p.advance();
                i += 1;
                if i % 3 == 0 || i == N {
                    p.publish();
                }
            } else {
                p.publish();
                std::thread::yield_now();
            }
        }
    });
}
