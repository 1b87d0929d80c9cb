# SPDX-License-Identifier: GPL-2.0
"""Traffic with checked payloads over a connection of verbs.py.

Each function posts work, waits for its completions and checks every byte that may and
may not have changed. `big` asks for megabytes as well.
"""
import functools

import ktap
import verbs
from verbs import SIGNALED, WCO, WR, get, ok, pattern, poll, put, recv_wr, sge

GUARD = 64
IMM = 0x11223344
SEEDS = iter(range(1, 1 << 30))


@functools.cache
def node(dev, version):
    """The end at a device."""
    return verbs.Node(dev, version)


def connect(kind, a, b, version, mtu=None, **opts):
    """A new connection of a kind ('rc', 'uc', 'xrc') from one device to another; mtu is IBV_MTU_*,
    the largest of the ports if not given; opts are those of verbs.attributes()."""
    one, two = node(a, version), node(b, version)
    if kind == 'xrc':
        if not verbs.has_xrc(two):
            raise ktap.Skip('no XRC')
    kinds = {'rc': verbs.Rc, 'uc': verbs.Uc, 'xrc': verbs.Xrc}
    conn = kinds[kind](one, two, mtu=mtu, **opts)
    conn.mtu = mtu or min(one.mtu, two.mtu)
    return conn


@functools.cache
def connection(kind, a, b, version, mtu=None):
    """The same for all who ask."""
    return connect(kind, a, b, version, mtu)


def lengths(conn, big):
    mtu = verbs.MTU_BYTES[conn.mtu]
    few = [0, 1, 3, mtu - 1, mtu, mtu + 1, 2 * mtu, 65536]
    if big:
        few += [1 << 20] if ktap.DEBUG else [1 << 20, 16 << 20]
    return few


def check_landed(dst, data, length):
    ktap.expect(get(dst, length, GUARD) == data, f'payload of {length} bytes differs')
    ktap.expect_eq(get(dst, GUARD), b'\0' * GUARD, 'bytes before the buffer')
    ktap.expect_eq(get(dst, GUARD, GUARD + length), b'\0' * GUARD, 'bytes after the buffer')


def buffers(conn, length):
    src = conn.a.mr(length + 2 * GUARD)
    dst = conn.b.mr(length + 2 * GUARD)
    data = pattern(next(SEEDS), length)
    return src, dst, data


def split(mr, length, parts):
    """The same bytes as up to `parts` elements of uneven size."""
    out, at = [], 0
    for i in range(parts):
        n = length - at if i == parts - 1 else min(length - at, 1 + (length // parts) * i // 2)
        out.append(sge(mr, n, GUARD + at))
        at += n
    return out


def send(conn, length, imm=None, flags=SIGNALED, parts=1):
    src, dst, data = buffers(conn, length)
    put(src, data, GUARD)
    conn.post_recv(recv_wr(split(dst, length, parts), wr_id=77))
    op = WR.IBV_WR_SEND if imm is None else WR.IBV_WR_SEND_WITH_IMM
    conn.post(conn.send_wr(op, split(src, length, parts), wr_id=78, imm=imm or 0, flags=flags))
    rx = ok(poll(conn.recv_cq))[0]
    ktap.expect_eq(rx.wr_id, 77, "the receive's wr_id")
    ktap.expect_eq(rx.byte_len, length, 'byte_len')
    ktap.expect_eq(rx.qp_num, conn.recv_qpn, 'qp_num')
    ktap.expect_eq(rx.opcode, WCO.IBV_WC_RECV, 'opcode')
    if imm is not None:
        ktap.expect(rx.wc_flags & 2, 'IBV_WC_WITH_IMM is missing')
        ktap.expect_eq(rx.imm_data, imm, 'immediate data')
    tx = ok(poll(conn.send_cq))[0]
    ktap.expect_eq(
        (tx.wr_id, tx.opcode, tx.qp_num),
        (78, WCO.IBV_WC_SEND, conn.send_qp.qp_num),
        "the send's completion",
    )
    check_landed(dst, data, length)


def write(conn, length, imm=None, flags=SIGNALED, parts=1):
    src, dst, data = buffers(conn, length)
    put(src, data, GUARD)
    op = WR.IBV_WR_RDMA_WRITE
    if imm is not None:
        op = WR.IBV_WR_RDMA_WRITE_WITH_IMM
        conn.post_recv(recv_wr([], wr_id=79))
    conn.post(
        conn.send_wr(
            op,
            split(src, length, parts),
            imm=imm or 0,
            rkey=dst.rkey,
            raddr=dst.buf + GUARD,
            flags=flags,
        )
    )
    if imm is not None:
        rx = ok(poll(conn.recv_cq))[0]
        ktap.expect_eq(
            (rx.wr_id, rx.opcode, rx.imm_data, rx.byte_len),
            (79, WCO.IBV_WC_RECV_RDMA_WITH_IMM, imm, length),
            "the receive",
        )
    tx = ok(poll(conn.send_cq))[0]
    ktap.expect_eq(tx.opcode, WCO.IBV_WC_RDMA_WRITE, 'opcode')
    check_landed(dst, data, length)


def read(conn, length, parts=1):
    dst, src, data = buffers(conn, length)
    put(src, data, GUARD)
    conn.post(
        conn.send_wr(
            WR.IBV_WR_RDMA_READ, split(dst, length, parts), rkey=src.rkey, raddr=src.buf + GUARD
        )
    )
    tx = ok(poll(conn.send_cq))[0]
    ktap.expect_eq(tx.opcode, WCO.IBV_WC_RDMA_READ, 'opcode')
    check_landed(dst, data, length)


def atomics(conn, _big=False):
    result, cell = conn.a.mr(64), conn.b.mr(64)

    def run(op, before, compare_add, swap, after):
        put(cell, before.to_bytes(8, 'little'), 8)
        put(result, b'\0' * 64)
        conn.post(
            conn.atomic_wr(op, [sge(result, 8, 16)], cell.rkey, cell.buf + 8, compare_add, swap)
        )
        ok(poll(conn.send_cq))
        ktap.expect_eq(int.from_bytes(get(result, 8, 16), 'little'), before, 'the value before')
        ktap.expect_eq(int.from_bytes(get(cell, 8, 8), 'little'), after, 'the value after')
        ktap.expect_eq(get(result, 16), b'\0' * 16, 'bytes before the result')
        ktap.expect_eq(get(result, 40, 24), b'\0' * 40, 'bytes after the result')
        ktap.expect_eq(get(cell, 8) + get(cell, 48, 16), b'\0' * 56, 'bytes around the cell')

    big = 0x0123456789ABCDEF
    cas, faa = WR.IBV_WR_ATOMIC_CMP_AND_SWP, WR.IBV_WR_ATOMIC_FETCH_AND_ADD
    run(cas, big, big, 0xFEDCBA9876543210, 0xFEDCBA9876543210)
    run(cas, big, big + 1, 5, big)
    run(faa, big, 3, 0, big + 3)
    run(faa, (1 << 64) - 1, 2, 0, 1)


def every_opcode(conn, big):
    for n in lengths(conn, big):
        send(conn, n)
        send(conn, n, imm=IMM + n % 251)
        write(conn, n)
        write(conn, n, imm=IMM)
        read(conn, n)


def unreliable(conn, _big):
    """UC: a plain WRITE's completion does not say that it has arrived, so one with immediate
    follows."""
    for n in lengths(conn, False)[:6]:
        send(conn, n)
        send(conn, n, imm=IMM)
        write(conn, n, imm=IMM)


def inline(conn, _big):
    for n in (0, 1, 63, 64, 255, 511, verbs.INLINE_MAX):
        send(conn, n, flags=SIGNALED | verbs.INLINE)
        write(conn, n, flags=SIGNALED | verbs.INLINE)
        write(conn, n, imm=IMM, flags=SIGNALED | verbs.INLINE)
    send(conn, 60, flags=SIGNALED | verbs.INLINE, parts=3)


def elements(conn, _big):
    for parts in (2, 3, 4):
        for n in (0, 5, 1023, 4097, 65537):
            send(conn, n, parts=parts)
            write(conn, n, parts=parts)
            read(conn, n, parts=parts)


def in_order(conn, _big):
    """Many requests outstanding: completions and receives keep the order."""
    count, rounds = 32, 2 if ktap.DEBUG else 6
    src, dst = conn.a.mr(count * 512), conn.b.mr(count * 512)
    for r in range(rounds):
        data = pattern(next(SEEDS), count * 512)
        put(src, data)
        put(dst, b'\0' * (count * 512))
        for i in range(count):
            conn.post_recv(recv_wr([sge(dst, 512, i * 512)], wr_id=i))
        for i in range(count):
            conn.post(
                conn.send_wr(
                    WR.IBV_WR_SEND_WITH_IMM,
                    [sge(src, 512 - i, i * 512)],
                    wr_id=i,
                    imm=i,
                    flags=SIGNALED if i % 4 == 3 else 0,
                )
            )
        rx = ok(poll(conn.recv_cq, count))
        ktap.expect_eq(
            [(w.wr_id, w.imm_data, w.byte_len) for w in rx],
            [(i, i, 512 - i) for i in range(count)],
            'receives',
        )
        tx = ok(poll(conn.send_cq, count // 4))
        ktap.expect_eq([w.wr_id for w in tx], list(range(3, count, 4)), 'signalled sends')
        for i in range(count):
            ktap.expect(
                get(dst, 512 - i, i * 512) == data[i * 512 : i * 512 + 512 - i], f'message {i}'
            )


def read_after_write(conn, _big):
    """A READ sees what WRITEs before it wrote; a fenced SEND waits for the READ."""
    src, dst, back = conn.a.mr(8192), conn.b.mr(8192), conn.a.mr(8192)
    land = conn.b.mr(8192)
    for i in range(2 if ktap.DEBUG else 10):
        data = pattern(next(SEEDS), 8192)
        put(src, data)
        put(back, b'\0' * 8192)
        conn.post_recv(recv_wr([sge(land)]))
        conn.post(
            conn.send_wr(WR.IBV_WR_RDMA_WRITE, [sge(src)], rkey=dst.rkey, raddr=dst.buf, flags=0)
        )
        conn.post(conn.send_wr(WR.IBV_WR_RDMA_READ, [sge(back)], rkey=dst.rkey, raddr=dst.buf))
        conn.post(conn.send_wr(WR.IBV_WR_SEND, [sge(back)], flags=SIGNALED | verbs.FENCE))
        ok(poll(conn.send_cq, 2))
        ok(poll(conn.recv_cq))
        ktap.expect(get(back, 8192) == data, f'READ after WRITE, round {i}')
        ktap.expect(get(land, 8192) == data, f'SEND after READ, round {i}')


def many_reads(conn, _big):
    """More READs and atomics than may be outstanding are queued, not refused."""
    n = 24
    src, dst, cell = conn.b.mr(n * 4096), conn.a.mr(n * 4096), conn.b.mr(8)
    data = pattern(next(SEEDS), n * 4096)
    put(src, data)
    result = conn.a.mr(8 * n)
    for i in range(n):
        conn.post(
            conn.send_wr(
                WR.IBV_WR_RDMA_READ,
                [sge(dst, 4096, i * 4096)],
                rkey=src.rkey,
                raddr=src.buf + i * 4096,
                wr_id=i,
            )
        )
        conn.post(
            conn.atomic_wr(
                WR.IBV_WR_ATOMIC_FETCH_AND_ADD,
                [sge(result, 8, 8 * i)],
                cell.rkey,
                cell.buf,
                1,
                wr_id=i,
            )
        )
    tx = ok(poll(conn.send_cq, 2 * n))
    ktap.expect_eq([w.wr_id for w in tx], [i // 2 for i in range(2 * n)], 'order')
    ktap.expect(get(dst, n * 4096) == data, 'READ payload')
    olds = [int.from_bytes(get(result, 8, 8 * i), 'little') for i in range(n)]
    ktap.expect_eq(olds, list(range(n)), 'values that fetch-and-add saw')


def exactly_once(conn, messages, read_back=True, close_early=True):
    """Sends, WRITEs, READs and atomics, many at a time: all arrive, in order, once.

    Without read_back there are no READs. With close_early the responder's memory is
    deregistered as soon as the requester's completions say that it can be."""
    size = 20000
    src, dst, back = conn.a.mr(8 * size), conn.b.mr(8 * size), conn.a.mr(size)
    cell, olds = conn.b.mr(8), conn.a.mr(8 * messages)
    total = 0
    peers = []
    while total < messages:
        count = min(8, messages - total)
        data = pattern(next(SEEDS), 8 * size)
        put(src, data)
        put(dst, b'\0' * (8 * size))
        put(back, b'\0' * size)
        sizes = [1 + (i * 2711) % size for i in range(total, total + count)]
        for i in range(count):
            conn.post_recv(recv_wr([sge(dst, size, i * size)], wr_id=total + i))
        for i in range(count):
            conn.post(
                conn.send_wr(
                    WR.IBV_WR_SEND_WITH_IMM,
                    [sge(src, sizes[i], i * size)],
                    wr_id=total + i,
                    imm=total + i,
                )
            )
            conn.post(
                conn.atomic_wr(
                    WR.IBV_WR_ATOMIC_FETCH_AND_ADD,
                    [sge(olds, 8, 8 * (total + i))],
                    cell.rkey,
                    cell.buf,
                    1,
                    wr_id=total + i,
                )
            )
        peer = conn.b.mr(size)
        conn.post(
            conn.send_wr(WR.IBV_WR_RDMA_WRITE, [sge(src, size)], rkey=peer.rkey, raddr=peer.buf)
        )
        if read_back:
            conn.post(
                conn.send_wr(WR.IBV_WR_RDMA_READ, [sge(back, size)], rkey=peer.rkey, raddr=peer.buf)
            )
        rx = ok(poll(conn.recv_cq, count, seconds=60))
        ktap.expect_eq(
            [(w.wr_id, w.imm_data, w.byte_len) for w in rx],
            [(total + i, total + i, sizes[i]) for i in range(count)],
            'receives',
        )
        tx = ok(poll(conn.send_cq, 2 * count + 1 + read_back, seconds=60))
        ktap.expect_eq(
            [w.wr_id for w in tx[: 2 * count]],
            [total + i // 2 for i in range(2 * count)],
            'completions',
        )
        for i in range(count):
            ktap.expect(
                get(dst, sizes[i], i * size) == data[i * size : i * size + sizes[i]], f'message {i}'
            )
        ktap.expect(get(peer, size) == data[:size], 'what was written')
        if read_back:
            ktap.expect(get(back, size) == data[:size], 'what was written and read back')
        if close_early:
            peer.close()
        else:
            peers.append(peer)
        total += count
    ktap.expect_eq(
        [int.from_bytes(get(olds, 8, 8 * i), 'little') for i in range(messages)],
        list(range(messages)),
        'values that fetch-and-add saw',
    )
    verbs.nothing(conn.recv_cq, 'receive')
    verbs.nothing(conn.send_cq)
    for mr in (src, dst, back, cell, olds, *peers):
        mr.close()
