# SPDX-License-Identifier: GPL-2.0
"""The longest possible message, 2 GiB, with every byte checked.

The destination is memory of its own. The source is not: a guest has 3 GiB, so the
source consists of the pages of one file, mapped many times.
"""
import ctypes
import mmap
import os

import ktap
import verbs
from pyverbs.mr import MR
from verbs import SIGNALED, WCO, WR, ok, pattern, poll, recv_wr

LENGTH = 1 << 31
GUARD = mmap.PAGESIZE
# A prime number of pages: what lands a power of two too far away looks wrong.
UNIT = 4099 * mmap.PAGESIZE

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
_RW = mmap.PROT_READ | mmap.PROT_WRITE
_MAP_FIXED = 0x10


def _map(length, flags, fd=-1, at=None):
    """Pages, or OSError."""
    got = _libc.mmap(at, length, _RW, flags, fd, 0)
    if got in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), f'mmap of {length} bytes')
    return got


def _anonymous(length):
    """Zeroed pages, none of them there before it is touched."""
    return _map(length, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _pieces():
    """(offset, length) of each turn of the file's pages."""
    return [(at, min(UNIT, LENGTH - at)) for at in range(0, LENGTH, UNIT)]


def _source():
    """LENGTH bytes that the pages of one file repeat."""
    fd = os.memfd_create('source')
    os.ftruncate(fd, UNIT)
    addr = _anonymous(LENGTH)
    for at, n in _pieces():
        _map(n, mmap.MAP_SHARED | _MAP_FIXED, fd, addr + at)
    os.close(fd)
    data = pattern(1, UNIT)
    ctypes.memmove(addr, data, UNIT)
    return addr


def _check(dst, src):
    """Has the whole message, and nothing else, landed between the guards?"""
    for at, n in _pieces():
        ktap.expect(_libc.memcmp(dst + GUARD + at, src, n) == 0, f'{n} bytes at {at} differ')
    zero = b'\0' * GUARD
    ktap.expect(ctypes.string_at(dst, GUARD) == zero, 'bytes before the buffer')
    ktap.expect(ctypes.string_at(dst + GUARD + LENGTH, GUARD) == zero, 'bytes after the buffer')


def message(conn, opcode):
    """One message of 2 GiB over a connection: a SEND, a WRITE or a READ."""
    reading = opcode == WR.IBV_WR_RDMA_READ
    src, dst = _source(), _anonymous(LENGTH + 2 * GUARD)
    mrs = []

    def register(pd, addr):
        mrs.append(MR(pd, LENGTH, verbs.ALL, address=addr))
        return mrs[-1]

    try:
        here = register(conn.a.pd, dst + GUARD if reading else src)
        there = register(conn.dst_pd, src if reading else dst + GUARD)
        local = [verbs.SGE(dst + GUARD if reading else src, LENGTH, here.lkey)]
        remote = src if reading else dst + GUARD
        if opcode == WR.IBV_WR_SEND:
            conn.post_recv(recv_wr([verbs.SGE(remote, LENGTH, there.lkey)]))
            conn.post(conn.send_wr(opcode, local, flags=SIGNALED))
        else:
            conn.post(conn.send_wr(opcode, local, rkey=there.rkey, raddr=remote))
        tx = ok(poll(conn.send_cq, 1, seconds=600))[0]
        ktap.expect_eq(
            tx.opcode,
            {WR.IBV_WR_SEND: WCO.IBV_WC_SEND, WR.IBV_WR_RDMA_READ: WCO.IBV_WC_RDMA_READ}.get(
                opcode, WCO.IBV_WC_RDMA_WRITE
            ),
            'opcode',
        )
        if opcode == WR.IBV_WR_SEND:
            ktap.expect_eq(ok(poll(conn.recv_cq))[0].byte_len, LENGTH, 'byte_len')
        _check(dst, src)
    finally:
        for mr in mrs:
            mr.close()
        _libc.munmap(src, LENGTH)
        _libc.munmap(dst, LENGTH + 2 * GUARD)
