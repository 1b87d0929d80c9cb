// SPDX-License-Identifier: GPL-2.0

//! A keyed hash of a tag: SipHash-1-3 of two words.
//!
//! A process that posts tags must not be able to choose them so that they share a bucket: the
//! search would take its time in softirq, which all processes share.

/// The secret of a list.
#[derive(Clone, Copy, Default)]
pub struct HashKey(pub u64, pub u64);

fn round(v: &mut [u64; 4]) {
    let [a, b, c, d] = v;
    *a = a.wrapping_add(*b);
    *b = b.rotate_left(13) ^ *a;
    *a = a.rotate_left(32);
    *c = c.wrapping_add(*d);
    *d = d.rotate_left(16) ^ *c;
    *a = a.wrapping_add(*d);
    *d = d.rotate_left(21) ^ *a;
    *c = c.wrapping_add(*b);
    *b = b.rotate_left(17) ^ *c;
    *c = c.rotate_left(32);
}

impl HashKey {
    /// The hash of `a`, `b`.
    pub fn hash(&self, a: u64, b: u64) -> u64 {
        let mut v = [
            self.0 ^ 0x736f_6d65_7073_6575,
            self.1 ^ 0x646f_7261_6e64_6f6d,
            self.0 ^ 0x6c79_6765_6e65_7261,
            self.1 ^ 0x7465_6462_7974_6573,
        ];
        // The last block of 16 bytes is their number alone.
        for word in [a, b, 16 << 56] {
            v[3] ^= word;
            round(&mut v);
            v[0] ^= word;
        }
        v[2] ^= 0xff;
        for _ in 0..3 {
            round(&mut v);
        }
        v[0] ^ v[1] ^ v[2] ^ v[3]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::Hasher;

    #[test]
    fn is_siphash() {
        // The standard library's default hasher is SipHash-1-3 with a zero key.
        for (a, b) in [(0, 0), (1, 2), (u64::MAX, 0x0123_4567_89ab_cdef)] {
            let mut theirs = std::collections::hash_map::DefaultHasher::new();
            theirs.write(&u64::to_le_bytes(a));
            theirs.write(&u64::to_le_bytes(b));
            assert_eq!(HashKey(0, 0).hash(a, b), theirs.finish());
        }
    }

    #[test]
    fn depends_on_the_key() {
        assert_ne!(HashKey(1, 0).hash(5, 6), HashKey(0, 0).hash(5, 6));
        assert_ne!(HashKey(0, 1).hash(5, 6), HashKey(0, 0).hash(5, 6));
    }
}
