// SPDX-License-Identifier: GPL-2.0

//! A buffer for the headers of one packet.

/// Transport headers of one packet, base transport header first.
#[derive(Clone, Copy, Debug)]
pub struct HeaderBuf {
    bytes: [u8; Self::CAPACITY],
    len: u8,
}

impl HeaderBuf {
    /// More than the longest combination of headers takes (44 bytes: XRC
    /// atomics).
    pub const CAPACITY: usize = 64;

    /// An empty buffer.
    #[inline]
    pub const fn new() -> Self {
        Self {
            bytes: [0; Self::CAPACITY],
            len: 0,
        }
    }

    /// The headers.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&[])
    }

    /// Bytes in the buffer.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether nothing was put yet.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sets bits of the byte at `at`, if there is one.
    #[inline]
    pub(crate) fn set_bits(&mut self, at: usize, bits: u8) {
        if let Some(byte) = self
            .bytes
            .get_mut(..usize::from(self.len))
            .and_then(|b| b.get_mut(at))
        {
            *byte |= bits;
        }
    }

    /// Clears bits of the byte at `at`, if there is one.
    #[inline]
    pub(crate) fn clear_bits(&mut self, at: usize, bits: u8) {
        if let Some(byte) = self
            .bytes
            .get_mut(..usize::from(self.len))
            .and_then(|b| b.get_mut(at))
        {
            *byte &= !bits;
        }
    }

    /// Writes over the bytes from `at` on, as far as there are any.
    #[inline]
    pub(crate) fn set(&mut self, at: usize, bytes: &[u8]) {
        let own = self.bytes.get_mut(..usize::from(self.len));
        let to = own.and_then(|b| b.get_mut(at..)).unwrap_or_default();
        for (to, from) in to.iter_mut().zip(bytes) {
            *to = *from;
        }
    }

    /// Appends; what does not fit is left out (no combination of headers is
    /// that long).
    #[inline]
    pub(crate) fn put<const N: usize>(&mut self, src: &[u8; N]) {
        let start = usize::from(self.len);
        let end = start.wrapping_add(N);
        if let Some(dst) = self.bytes.get_mut(start..end) {
            dst.copy_from_slice(src);
            self.len = end as u8;
        }
    }
}

impl Default for HeaderBuf {
    fn default() -> Self {
        Self::new()
    }
}

impl AsRef<[u8]> for HeaderBuf {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appends_and_stops_at_capacity() {
        let mut h = HeaderBuf::new();
        assert!(h.is_empty());
        h.put(&[1, 2]);
        h.put(&[3]);
        assert_eq!(h.as_slice(), &[1, 2, 3]);
        h.put(&[9; 64]);
        assert_eq!(h.len(), 3);
        h.put(&[7; 61]);
        assert_eq!(h.len(), 64);
        h.put(&[1]);
        assert_eq!(h.as_slice().last(), Some(&7));
    }
}
