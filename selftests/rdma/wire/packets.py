#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=180 debug
"""Packets that a correct peer would not send: errors in them are counted or answered as
IBTA specifies, nothing is written, and the device continues to work."""
import errno
import itertools
import json
import os
import random
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]

import guard
import ktap
import net
import verbs
import wire
from guard import Guarded
from ktap import case, expect, expect_eq
from pyverbs.libibverbs_enums import ibv_qp_attr_mask as MASK
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from roce import CNP
from verbs import (
    ACC,
    ALL,
    QP,
    QPS,
    QPT,
    WCS,
    QPAttr,
    QPCap,
    QPInitAttr,
    attributes,
    get,
    recv_wr,
    sge,
    status_name,
)
from wire import (
    ACK,
    ATOMIC_ACK,
    FETCH_ADD,
    NAK_ACCESS,
    NAK_INVALID,
    NAK_PSN,
    RC,
    READ,
    READ_RESPONSE_ONLY,
    SEND_FIRST,
    SEND_LAST,
    SEND_MIDDLE,
    SEND_ONLY,
    SEND_ONLY_IMM,
    UD,
    WRITE_FIRST,
    WRITE_LAST,
    WRITE_MIDDLE,
    WRITE_ONLY,
    XRC,
    atomiceth,
    bth,
    deth,
    reth,
    xrceth,
)

# The peer's queue pair, which does not exist, and the first PSN that it uses.
GHOST, PSN = 0xABCDEF, 0xFFFFFE
NOBODY = 0x7FFFF0
MTU = 1024
READ_FLAG, WRITE_FLAG, ATOMIC_FLAG = (
    int(f)
    for f in (ACC.IBV_ACCESS_REMOTE_READ, ACC.IBV_ACCESS_REMOTE_WRITE, ACC.IBV_ACCESS_REMOTE_ATOMIC)
)

link = node = peer = marker = None


def setup():
    global link, node, peer, marker
    net.hosts_up()
    link = wire.Wire()
    node, peer = verbs.Node('x1'), verbs.Node('x2')
    marker = Marker()


def psn(n):
    """The n-th PSN of the ghost."""
    return PSN + n & 0xFFFFFF


class Marker:
    """A healthy queue pair, whose answer to the last packet says that those before have been
    handled."""

    def __init__(self):
        self.target, self.n = Target(), 0

    def __call__(self):
        """Waits until then; they had no answer."""
        self.target.write(self.n)
        self.target.acked(self.n)
        self.n += 1


class Target:
    """A queue pair of x1 that is connected to the ghost, and memory."""

    def __init__(self, xrc=False, access=ALL, mr_access=ALL, state=QPS.IBV_QPS_RTS):
        self.base = XRC if xrc else RC
        self.node = verbs.Node('x1')
        self.mr = self.node.mr(4096, mr_access)
        if xrc:
            self.domain = verbs.Domain(self.node)
            self.srq = self.domain.srq()
            self.srqn = self.srq.get_srq_num()
            self.qp = self.domain.tgt()
        else:
            cap = QPCap(max_send_wr=8, max_recv_wr=8, max_send_sge=1, max_recv_sge=1)
            self.qp = QP(
                self.node.pd,
                QPInitAttr(qp_type=QPT.IBV_QPT_RC, scq=self.node.cq, rcq=self.node.cq, cap=cap),
            )
        attr = attributes(self.node, peer, GHOST, mtu=3, access=access, peer_psn=PSN)
        if state != QPS.IBV_QPS_RESET:
            self.qp.to_init(attr)
        if state in (QPS.IBV_QPS_RTR, QPS.IBV_QPS_RTS):
            self.qp.to_rtr(attr)
        if state == QPS.IBV_QPS_RTS:
            self.qp.to_rts(attr)
        if state == QPS.IBV_QPS_ERR:
            self.qp.modify(QPAttr(qp_state=QPS.IBV_QPS_ERR), MASK.IBV_QP_STATE)
        link.answers(GHOST)

    def headers(self, srqn=None):
        """What stands between the BTH and the other headers of a request."""
        if self.base == RC:
            return b''
        return xrceth(self.srqn if srqn is None else srqn)

    def request(self, op, n=0, rest=b'', srqn=None, **options):
        """Send the n-th request packet of the ghost."""
        link.send(self.base | op, self.qp.qp_num, psn(n), self.headers(srqn) + rest, **options)

    def write(self, n=0, data=b'data', va=None, rkey=None, length=None, op=WRITE_ONLY, **options):
        """An RDMA WRITE of one packet."""
        self.request(
            op,
            n,
            reth(
                self.mr.buf if va is None else va,
                self.mr.rkey if rkey is None else rkey,
                len(data) if length is None else length,
            )
            + data,
            **options,
        )

    def read(self, n=0, va=None, rkey=None, length=64, **options):
        """An RDMA READ request."""
        self.request(
            READ,
            n,
            reth(self.mr.buf if va is None else va, self.mr.rkey if rkey is None else rkey, length),
            **options,
        )

    def atomic(self, n=0, va=None, rkey=None, **options):
        """A fetch-and-add of 1."""
        self.request(
            FETCH_ADD,
            n,
            atomiceth(self.mr.buf if va is None else va, self.mr.rkey if rkey is None else rkey, 1),
            **options,
        )

    def state(self):
        """The state of the queue pair."""
        return self.qp.query(MASK.IBV_QP_STATE)[0].qp_state

    def acked(self, n=0):
        """The next answer acknowledges the n-th request."""
        opcode, at, rest = link.answer(GHOST)
        expect_eq((opcode, at, rest[0] & 0xE0), (self.base | ACK, psn(n), 0), 'ACK')

    def refused(self, syndrome, n=0, fatal=True):
        """The next answer is that NAK, once; afterwards the queue pair is in error."""
        opcode, at, rest = link.answer(GHOST)
        expect_eq((opcode, at, hex(rest[0])), (self.base | ACK, psn(n), hex(syndrome)), 'NAK')
        if fatal:
            ktap.wait_for('error state', 10, lambda: self.state() == QPS.IBV_QPS_ERR)
            self.write(n)
            marker()

    def alive(self, n=0):
        """Nothing was answered or written; a right request is."""
        expect_eq(link.answers(GHOST), [], 'answers')
        expect_eq(get(self.mr, 4096), bytes(4096), 'memory')
        expect_eq(self.state(), QPS.IBV_QPS_RTS, 'state')
        self.write(n, b'good')
        self.acked(n)
        expect_eq(get(self.mr, 4), b'good', 'what was written')

    def untouched(self):
        """Nothing was written."""
        expect_eq(get(self.mr, 4096), bytes(4096), 'memory')

    def close(self):
        self.node.close()


QKEY = 0x11223344
# What stands before a datagram in a receive.
GRH = 40


class Datagrams:
    """A UD queue pair of x1, and memory."""

    def __init__(self, shared=False):
        self.node = verbs.Node('x1')
        self.mr = self.node.mr(4096)
        self.srq = SRQ(self.node.pd, SrqInitAttr(SrqAttr(max_wr=8))) if shared else None
        cap = QPCap(max_send_wr=1, max_recv_wr=8, max_send_sge=1, max_recv_sge=1)
        self.qp = QP(
            self.node.pd,
            QPInitAttr(
                qp_type=QPT.IBV_QPT_UD, scq=self.node.cq, rcq=self.node.cq, cap=cap, srq=self.srq
            ),
        )
        attr = QPAttr(port_num=1)
        attr.qkey = QKEY
        self.qp.to_rts(attr)

    def packet(self, data=b'data', op=SEND_ONLY, qkey=QKEY, immediate=b''):
        """A datagram from BTH to payload."""
        return bth(UD | op, self.qp.qp_num, PSN, ack=False) + deth(qkey, GHOST) + immediate + data

    def send(self, data=b'data', options=b'', **fields):
        """Send a datagram."""
        link.raw(self.packet(data, **fields), options=options)

    def post(self, room=4096):
        """A receive for so many bytes, headers included."""
        (self.srq or self.qp).post_recv(recv_wr([sge(self.mr, room)]))

    def got(self, data, status=WCS.IBV_WC_SUCCESS):
        """Exactly one receive has completed."""
        (wc,) = verbs.poll(self.node.cq)
        expect_eq(status_name(wc.status), status.name, 'status')
        if status == WCS.IBV_WC_SUCCESS:
            expect_eq(
                (wc.byte_len, wc.src_qp, get(self.mr, len(data), GRH)),
                (GRH + len(data), GHOST, data),
                'receive',
            )
        verbs.nothing(self.node.cq)

    def alive(self):
        """Nothing was received; the receive that is posted takes a right datagram."""
        marker()
        verbs.nothing(self.node.cq)
        expect_eq(get(self.mr, 4096), bytes(4096), 'memory')
        self.send(b'good')
        self.got(b'good')

    def close(self):
        self.node.close()


class Busy:
    """A target that waits for memory, which nobody provides, for seconds."""

    def __init__(self, xrc):
        self.guarded = Guarded(1)
        self.target = Target(xrc)
        self.node = self.target.node
        self.mr = MR(
            self.node.pd, self.guarded.size, ALL | ACC.IBV_ACCESS_ON_DEMAND, self.guarded.address
        )

    def occupy(self):
        """The first request of the ghost has the responder wait."""
        with Counted(1, 'rcvd_pkts'):
            self.target.write(0, va=self.guarded.address, rkey=self.mr.rkey)

    def is_busy(self):
        """Nothing was answered yet."""
        return not link.answers(GHOST)

    def close(self):
        self.mr.close()
        self.target.close()


class BusyDatagrams(Datagrams):
    """A UD queue pair that waits, for seconds, for memory of its receive that nobody provides."""

    def __init__(self):
        super().__init__()
        self.guarded = Guarded(2)
        self.slow = MR(
            self.node.pd, self.guarded.size, ALL | ACC.IBV_ACCESS_ON_DEMAND, self.guarded.address
        )
        self.qp.post_recv(recv_wr([sge(self.slow, self.guarded.size)]))

    def occupy(self):
        """A datagram for the receive."""
        self.send()

    def is_busy(self):
        """It still waits."""
        return not self.node.cq.poll()[0]

    def flood(self, count, *numbers):
        """As many datagrams, the largest there are, for this queue pair or each of those."""
        numbers = numbers or [self.qp.qp_num]
        with Counted(count * len(numbers), 'rcvd_pkts'):
            for qpn in numbers:
                head = bth(UD | SEND_ONLY, qpn, PSN, ack=False) + deth(QKEY, GHOST)
                link.repeat(head + bytes(LARGE), count)


def fresh_counters():
    """What is read next is not older than this call: counters may be 10 ms old, see
    DEFAULT_LIFESPAN_MS in rust/rdma/verbs/ops/device.rs."""
    time.sleep(0.02)


class Counted:
    """Within it the named counters of x1 rise by count together."""

    def __init__(self, count, *names):
        self.count, self.names = count, names

    def value(self):
        # No others: on the debug kernel all of them take half a second, in which those who wait for
        # memory may give up.
        now = net.counters('x1', self.names)
        return sum(now[n] for n in self.names)

    def __enter__(self):
        fresh_counters()
        self.before = self.value()

    def __exit__(self, kind, _value, _trace):
        if kind is None:
            ktap.wait_for(
                f'{"+".join(self.names)} +{self.count}',
                10,
                lambda: self.value() - self.before >= self.count,
            )
            fresh_counters()
            expect_eq(self.value() - self.before, self.count, '+'.join(self.names))


def in_time(fn):
    """A case that counts only if those who wait for memory wait until it is over, which fn returns:
    on a slow machine it may take some attempts."""
    ktap.add(fn.__name__, lambda: attempts(fn), debug=False)
    return fn


def attempts(fn):
    """Call fn until it returns that they did."""
    for _ in range(5):
        if fn():
            return
    raise AssertionError('nobody waited long enough')


_in_turn = itertools.cycle((False, True))


def both(fn):
    """Register a case for RC and for XRC; the debug kernel, which is slow, sees one, in turn."""
    shown = next(_in_turn)
    for xrc in (False, True):
        name = f'{fn.__name__}_{"xrc" if xrc else "rc"}'
        ktap.add(name, lambda xrc=xrc: fn(xrc), debug=xrc == shown)
    return fn


@both
def truncated(xrc):
    t = Target(xrc)
    whole = (
        wire.bth(t.base | WRITE_ONLY, t.qp.qp_num, PSN)
        + t.headers()
        + reth(t.mr.buf, t.mr.rkey, 64)
        + b'x' * 64
    )
    headers = 12 + len(t.headers()) + 16
    # No ICRC, or four bytes of something else in its place.
    with Counted(4, 'rcvd_malformed'), Counted(61, 'rcvd_icrc_err'):
        for n in range(65):
            link.raw(whole[:n], covered=True)
    # A right ICRC over less than there must be, or over an odd number of bytes.
    cut = [n for n in range(65) if n < headers or n % 4]
    with Counted(len(cut), 'rcvd_malformed', 'rcvd_icrc_err'):
        for n in cut:
            link.raw(whole[:n])
    t.alive()
    t.close()


@both
def wrong_icrc(xrc):
    t = Target(xrc)

    def flip(bit):
        def spoil(packet):
            packet[28 + bit // 8] ^= 1 << bit % 8

        return spoil

    # Any bit but those of the BTH's reserved byte, which is masked.
    size = 8 * (12 + len(t.headers()) + 16 + 4 + 4)
    bits = random.Random(1).sample([b for b in range(size) if b // 8 != 4], 100)
    with Counted(len(bits), 'rcvd_icrc_err'):
        for bit in bits:
            t.write(spoil=flip(bit))
    t.alive()
    t.close()


@both
def wrong_version(xrc):
    t = Target(xrc)
    with Counted(15, 'rcvd_malformed'):
        for version in range(1, 16):
            t.write(version=version)
    t.alive()
    t.close()


@both
def wrong_pkey(xrc):
    t = Target(xrc)
    keys = (0, 1, 0x8000, 0x8001, 0xFFFE, 0x7FFE)
    with Counted(len(keys), 'rcvd_bad_pkey'):
        for pkey in keys:
            t.write(pkey=pkey)
    t.alive()
    t.close()


@both
def wrong_pad(xrc):
    t = Target(xrc)
    with Counted(3, 'rcvd_malformed'):
        for pad in (1, 2, 3):
            t.request(SEND_ONLY, pad=pad)
    t.alive()
    t.close()


@both
def too_long(xrc):
    """What is longer than any packet is refused at once; what may be one of another MTU is
    answered."""
    t = Target(xrc)
    headers = 8 + 12 + len(t.headers()) + 16 + 4
    longest = 4096 + 8 + 12 + 4 + 16 + 4 + 4 - headers
    with Counted(3, 'rcvd_malformed'):
        for length in (60000, 8192, longest + 4):
            link.raw_in_fragments(
                wire.bth(t.base | WRITE_ONLY, t.qp.qp_num, PSN)
                + t.headers()
                + reth(t.mr.buf, t.mr.rkey, length)
                + bytes(length)
            )
    t.alive()
    t.close()
    t = Target(xrc)
    link.raw_in_fragments(
        wire.bth(t.base | WRITE_ONLY, t.qp.qp_num, PSN)
        + t.headers()
        + reth(t.mr.buf, t.mr.rkey, longest)
        + bytes(longest)
    )
    t.refused(NAK_INVALID)
    t.close()


@both
def wrong_source(xrc):
    t = Target(xrc)
    with Counted(2, 'rcvd_unknown_qp'):
        t.write(src='10.7.0.77')
        t.write(src='10.8.0.2')
    t.alive()
    t.close()


@both
def every_opcode(xrc):
    """Whatever is no request of this transport is dropped."""
    t = Target(xrc)
    requests = {t.base | op for op in (*range(0x0D), 0x13, FETCH_ADD, 0x16, 0x17, 0x1C, 0x1D)}
    for opcode in range(256):
        if opcode not in requests:
            link.send(opcode, t.qp.qp_num, PSN, bytes(64))
    t.alive()
    t.close()


@case
def unknown_qp():
    """All operation codes, to a queue pair that there is not."""
    with Counted(256, 'rcvd_malformed', 'rcvd_unknown_qp'):
        for opcode in range(256):
            link.send(opcode, NOBODY, PSN, bytes(64))
    with Counted(3, 'rcvd_unknown_qp'):
        for qpn in (0, 2, 0xFFFFFF):
            link.send(SEND_ONLY, qpn, PSN)


@both
def wrong_state(xrc):
    for state in (QPS.IBV_QPS_RESET, QPS.IBV_QPS_INIT, QPS.IBV_QPS_ERR):
        t = Target(xrc, state=state)
        for op in (WRITE_ONLY, WRITE_FIRST, WRITE_LAST):
            t.write(op=op)
        t.read()
        t.atomic()
        t.request(SEND_ONLY)
        marker()
        expect_eq(t.state(), state, 'state')
        t.untouched()
        t.close()
    t = Target(xrc, state=QPS.IBV_QPS_RTR)
    t.write()
    t.acked()
    t.close()


@both
def wrong_order(xrc):
    """Middle and last packets of a message that did not begin."""
    for op in (SEND_MIDDLE, SEND_LAST, WRITE_MIDDLE, WRITE_LAST):
        t = Target(xrc)
        t.request(op, rest=bytes(MTU))
        t.refused(NAK_INVALID)
        t.untouched()
        t.close()
    t = Target(xrc)
    t.write(0, bytes(MTU), length=2 * MTU, op=WRITE_FIRST, ack=False)
    t.request(SEND_ONLY, 1, bytes(4))
    t.refused(NAK_INVALID, 1)
    t.close()


@both
def wrong_length(xrc):
    """RETH and payload that disagree; first packets that are not full."""
    for op, data, length in (
        (WRITE_ONLY, 8, 4),
        (WRITE_ONLY, 4, 8),
        (WRITE_ONLY, 0, 4),
        (WRITE_ONLY, 4, 0),
        (WRITE_ONLY, MTU + 4, MTU + 4),
        (WRITE_ONLY, 4, 0xFFFFFFFF),
        (WRITE_FIRST, MTU - 4, 2 * MTU),
        (WRITE_FIRST, MTU, 4),
        (WRITE_FIRST, MTU, 0x80000004),
    ):
        t = Target(xrc)
        t.write(0, b'x' * data, op=op, length=length)
        try:
            t.refused(NAK_INVALID)
        except AssertionError as ex:
            raise AssertionError(f'opcode {op:#x}, {data} bytes, RETH {length}: {ex}') from ex
        t.close()
    t = Target(xrc)
    t.read(length=0x80000001)
    t.refused(NAK_INVALID)
    t.close()


def denied(xrc, syndrome=NAK_ACCESS, ops=('write', 'read', 'atomic'), target=None, **changes):
    """Each operation of ops, changed like that, is refused."""
    for op in ops:
        t = Target(xrc, **(target or {}))
        if 'offset' in changes:
            where = {'va': t.mr.buf + changes['offset']}
        else:
            where = {k: v(t) for k, v in changes.items()}
        getattr(t, op)(**where)
        t.refused(syndrome)
        t.untouched()
        t.close()


@both
def wrong_key(xrc):
    denied(xrc, rkey=lambda t: t.mr.rkey ^ 1)
    denied(xrc, rkey=lambda t: t.mr.rkey ^ 0x1000000)
    denied(xrc, rkey=lambda _: 0)


@both
def wrong_pd(xrc):
    for op in ('write', 'read', 'atomic'):
        t = Target(xrc)
        pd = PD(t.node.ctx)
        mr = t.node.mr(4096, ALL, pd)
        getattr(t, op)(va=mr.buf, rkey=mr.rkey)
        t.refused(NAK_ACCESS)
        expect_eq(get(mr, 4096), bytes(4096), 'memory')
        t.close()


@both
def missing_flag(xrc):
    flags = {'write': WRITE_FLAG, 'read': READ_FLAG, 'atomic': ATOMIC_FLAG}
    for op, flag in flags.items():
        denied(xrc, ops=(op,), target={'mr_access': ALL & ~flag})
        # A queue pair that does not admit the operation calls it invalid.
        denied(xrc, NAK_INVALID, ops=(op,), target={'access': ALL & ~flag})


@both
def out_of_range(xrc):
    denied(xrc, offset=-8)
    denied(xrc, offset=4096)
    denied(xrc, offset=4096 - 2, ops=('write', 'read'))
    denied(xrc, va=lambda _: 0xFFFFFFFFFFFFFFF8)
    denied(xrc, NAK_INVALID, offset=4, ops=('atomic',))


@both
def nothing_needs_no_key(xrc):
    t = Target(xrc)
    t.write(0, b'', va=0x123, rkey=0x456)
    t.acked()
    t.read(1, va=0x123, rkey=0x456, length=0)
    opcode, at, _ = link.answer(GHOST)
    expect_eq((opcode, at), (t.base | READ_RESPONSE_ONLY, psn(1)), 'response')
    t.alive(2)
    t.close()


@both
def ahead(xrc):
    """A gap is reported once, however many packets follow it. They are kept, and one ACK covers
    them; but not what is too far ahead."""
    attempts(lambda: are_kept(xrc))


def are_kept(xrc):
    """False if what is kept was dropped after a second, before the gap was closed."""
    t = Target(xrc)
    t.write(1, b'1111')
    t.refused(NAK_PSN, 0, fatal=False)
    t.untouched()
    # It is dropped after a second, which may be over by now: then the ACK does not cover it.
    t.write(0, b'0000')
    link.answer(GHOST)
    t.write(1, b'1111')
    t.acked(1)

    def frame(n, data):
        head = bth(t.base | WRITE_ONLY, t.qp.qp_num, psn(n)) + t.headers()
        return link.packet(head + reth(t.mr.buf, t.mr.rkey, len(data)) + data)

    # In no order. Copies are neither kept nor reported. All of it at once, for the same reason.
    packets = [frame(n, b'%d' % n * 4) for n in (7, 3, 6, 4, 5)]
    packets += [frame(5, b'copy'), frame(2, b'2222')]
    start, got = time.monotonic(), []
    try:
        with Counted(6, 'out_of_seq_request'), Counted(5, 'early_requests'):
            link.send_all(packets)
            was_slow = time.monotonic() - start > 0.9
            ktap.wait_for('ACK', 10, lambda: got.extend(link.answers(GHOST)) or len(got) > 1)
        expect_eq(
            [(at, rest[0] & 0xE0) for _, at, rest in got],
            [(psn(2), NAK_PSN & 0xE0), (psn(7), 0)],
            'answers',
        )
    except AssertionError:
        if not was_slow:
            raise
        t.close()
        return False
    expect_eq(get(t.mr, 4), b'7777', 'what was written')
    with Counted(1, 'early_requests_dropped'):
        t.write(8 + 1024)
    t.refused(NAK_PSN, 8, fatal=False)
    t.write(8, b'good')
    t.acked(8)
    expect_eq(get(t.mr, 4), b'good', 'what was written')
    t.close()
    return True


@both
def behind(xrc):
    """A duplicate is acknowledged, and not executed again."""
    t = Target(xrc)
    t.write(0, b'once')
    t.acked()
    t.atomic(1)
    opcode, at, rest = link.answer(GHOST)
    expect_eq((opcode, at), (t.base | ATOMIC_ACK, psn(1)), 'atomic answer')
    before = get(t.mr, 8)
    with Counted(6, 'duplicate_request'):
        for _ in range(3):
            t.write(0, b'more')
            # Not for the atomic, which has an answer of its own.
            t.acked(0)
            t.atomic(1)
            expect_eq(link.answer(GHOST), (opcode, at, rest), 'atomic answer, again')
    expect_eq(get(t.mr, 8), before, 'memory')
    t.close()


@case
def reads_are_paced():
    """A peer asks for a long READ at once: what a slow link cannot take waits."""
    t = Target()
    # More than the queue of the link.
    length = (3 if ktap.DEBUG else 8) << 20
    mr = t.node.mr(length)
    try:
        paced = 'tc qdisc add dev e1 root tbf rate 50mbit burst 32kb limit 1500000'
        net.run_in('h1', *paced.split())
    except RuntimeError as ex:
        raise ktap.Skip('no tbf') from ex
    try:
        before = net.counters('x1')['send_err']
        t.read(va=mr.buf, rkey=mr.rkey, length=length)
        show = 'tc -s -j qdisc show dev e1'
        stats = lambda: json.loads(net.run_in('h1', *show.split()))[0]
        ktap.wait_for('all of the response', 60, lambda: stats()['bytes'] > length)
        expect_eq((stats()['drops'], net.counters('x1')['send_err'] - before), (0, 0), 'drops')
    finally:
        net.run_in('h1', 'tc', 'qdisc', 'del', 'dev', 'e1', 'root')
    link.answers(GHOST)
    t.close()


@both
def not_ready(xrc):
    """A SEND meets no receive, then one."""
    t = Target(xrc)
    with Counted(1, 'send_rnr_err'):
        t.request(SEND_ONLY, 0, b'send')
        opcode, at, rest = link.answer(GHOST)
        expect_eq((opcode, at, rest[0] & 0xE0), (t.base | ACK, psn(0), 0x20), 'RNR NAK')
    (t.srq if xrc else t.qp).post_recv(recv_wr([sge(t.mr)]))
    t.request(SEND_ONLY, 0, b'send')
    t.acked()
    (wc,) = verbs.ok(verbs.poll(t.node.cq))
    expect_eq((wc.byte_len, get(t.mr, 4)), (4, b'send'), 'receive')
    t.close()


@case
def srq_of_nobody():
    number = Target(True).srqn
    for srqn in (0, number + 1000, 0xFFFFFF):
        t = Target(True)
        with Counted(1, 'xrc_srq_err'):
            t.request(SEND_ONLY, rest=b'send', srqn=srqn)
            t.refused(NAK_INVALID)
        t.close()


@case
def srq_of_another_domain():
    other, t = Target(True), Target(True)
    other.srq.post_recv(recv_wr([sge(other.mr)]))
    with Counted(1, 'xrc_srq_err'):
        t.request(SEND_ONLY, rest=b'send', srqn=other.srqn)
        t.refused(NAK_INVALID)
    verbs.nothing(other.node.cq)
    other.untouched()
    t.close()
    # RDMA needs the SRQ for the protection domain: the number is what is wrong, whatever the key.
    for op in ('write', 'read', 'atomic'):
        t = Target(True)
        with Counted(1, 'xrc_srq_err'):
            getattr(t, op)(va=other.mr.buf, rkey=other.mr.rkey, srqn=other.srqn)
            t.refused(NAK_INVALID)
        other.untouched()
        t.close()
    other.close()


@case
def srq_changes_within_a_message():
    t = Target(True)
    second = t.domain.srq()
    for srq in (t.srq, second):
        srq.post_recv(recv_wr([sge(t.mr)]))
    t.request(SEND_FIRST, 0, b'x' * MTU, ack=False)
    t.request(SEND_LAST, 1, b'x' * 4, srqn=second.get_srq_num())
    t.refused(NAK_INVALID, 1)
    t.close()


@case
def srq_goes_within_a_message():
    """The message ends the connection; nobody hears of a receive of a queue that is gone."""
    t = Target(True)
    t.srq.post_recv(recv_wr([sge(t.mr)]))
    t.request(SEND_FIRST, 0, b'x' * MTU, ack=False)
    ktap.wait_for('the first packet', 10, lambda: get(t.mr, MTU) == b'x' * MTU)
    t.srq.close()
    t.request(SEND_LAST, 1, b'y' * 4)
    opcode, at, rest = link.answer(GHOST)
    expect_eq((opcode, at, rest[0] & 0xE0), (XRC | ACK, psn(1), NAK_PSN & 0xE0), 'NAK')
    ktap.wait_for('error state', 10, lambda: t.state() == QPS.IBV_QPS_ERR)
    verbs.nothing(t.node.cq)
    expect_eq(get(t.mr, 4, MTU), bytes(4), 'memory')
    t.close()


@case
def datagram_with_wrong_key():
    d = Datagrams()
    d.post()
    keys = (0, QKEY ^ 1, QKEY | 1 << 31, 0x80010000, 0xFFFFFFFF)
    with Counted(len(keys), 'rcvd_bad_qkey'):
        for key in keys:
            d.send(qkey=key)
    d.alive()
    d.close()


@case
def truncated_datagram():
    """The header of datagrams, or the immediate data behind it, is not whole."""
    d = Datagrams()
    d.post()
    only, imm = d.packet(b''), d.packet(b'', SEND_ONLY_IMM, immediate=b'imm.')
    with Counted(8 + 12, 'rcvd_malformed'):
        for whole in (only, imm):
            for n in range(12, len(whole)):
                link.raw(whole[:n])
    d.alive()
    d.post()
    d.send(b'', op=SEND_ONLY_IMM, immediate=b'imm.')
    d.got(b'')
    d.close()


@case
def datagram_with_wrong_opcode():
    """Datagrams are whole SENDs; packets of connections are not for this queue pair."""
    d = Datagrams()
    d.post()
    others = [op for op in range(0x20) if op not in (SEND_ONLY, SEND_ONLY_IMM)]
    with Counted(len(others), 'rcvd_malformed'):
        for op in others:
            d.send(bytes(64), op=op)
    with Counted(2, 'rcvd_unknown_qp'):
        for base in (RC, XRC):
            link.send(base | SEND_ONLY, d.qp.qp_num, PSN, bytes(64))
    d.alive()
    d.close()


@case
def datagram_beyond_mtu():
    """A receive that has room for it is not spent on it."""
    d = Datagrams()
    d.post()
    with Counted(3, 'rcvd_malformed'):
        for length in (MTU + 1, MTU + 4, 1400):
            # The pad is none of its bytes.
            link.raw(
                bth(UD | SEND_ONLY, d.qp.qp_num, PSN, ack=False, pad=-length % 4)
                + deth(QKEY, GHOST)
                + b'x' * (length + -length % 4)
            )
    d.alive()
    d.post()
    d.send(b'y' * MTU)
    d.got(b'y' * MTU)
    d.close()


@case
def datagram_beyond_receive():
    """Dropped silently (IBTA C9-92), and the receive is for the next; that of QP 1 as well."""
    d = Datagrams()
    for room, length in ((GRH + 60, 64), (GRH, 4), (GRH - 4, 0), (4, 64)):
        d.post(room)
        with Counted(2, 'rcvd_dropped'):
            d.send(b'x' * length)
            d.send(b'x' * (length + 900))
        verbs.nothing(d.node.cq)
        expect_eq(get(d.mr, 4096), bytes(4096), 'memory')
        # What is held goes with the next that fits, or is flushed.
        if room > GRH:
            d.send(b'good')
            d.got(b'good')
        else:
            d.qp.modify(QPAttr(qp_state=QPS.IBV_QPS_ERR), MASK.IBV_QP_STATE)
            d.got(b'', WCS.IBV_WC_WR_FLUSH_ERR)
            d.close()
            d = Datagrams()
        verbs.put(d.mr, bytes(4096))
    d.close()
    # More than QP 1 has receives.
    with Counted(600, 'rcvd_dropped'):
        for _ in range(600):
            link.raw(bth(UD | SEND_ONLY, 1, PSN, ack=False) + deth(0x80010000, 1) + bytes(512))


@case
def datagram_beyond_shared_receive():
    """Its receive goes back to the user with an error, since others may need it; the queue pair
    goes on."""
    d = Datagrams(shared=True)
    d.post(GRH + 100)
    with Counted(1, 'rcvd_dropped'):
        d.send(b'x' * 104)
    d.got(b'', WCS.IBV_WC_LOC_LEN_ERR)
    expect_eq(d.node.events(), [], 'events')
    d.post()
    d.alive()
    d.close()


@case
def datagram_with_bad_receive_key():
    """A fault of the receiver's own: its queue pair ends, and the completion says why."""
    d = Datagrams()
    d.qp.post_recv(recv_wr([verbs.SGE(d.mr.buf, 4096, d.mr.lkey ^ 0xFF)]))
    d.post()
    d.send()
    first, second = verbs.poll(d.node.cq, 2)
    expect_eq(
        [status_name(w.status) for w in (first, second)],
        [WCS.IBV_WC_LOC_PROT_ERR.name, WCS.IBV_WC_WR_FLUSH_ERR.name],
        'statuses',
    )
    expect_eq(d.qp.query(MASK.IBV_QP_STATE)[0].qp_state, QPS.IBV_QPS_ERR, 'state')
    expect_eq(d.node.events(), [], 'events')
    d.close()


@case
def datagram_without_receive():
    d = Datagrams()
    with Counted(3, 'rcvd_dropped'):
        for _ in range(3):
            d.send()
    d.post()
    d.alive()
    d.close()


@both
def others_take_no_room(xrc):
    """Packets with wrong addresses do not wait until somebody looks at them: they are dropped at
    once, though the receive side is busy."""

    def attempt():
        t = Busy(xrc)
        t.occupy()
        with Counted(0, 'rcvd_pkts'), Counted(3, 'rcvd_unknown_qp'):
            for src in ('10.7.0.77', '10.8.0.2', '10.7.0.77'):
                t.target.write(1, src=src)
        was_busy = t.is_busy()
        t.close()
        return was_busy

    attempts(attempt)


def jumbo(mtu):
    """The largest packets that there are pass the link, for which the kernel takes 8 KiB each and
    more."""
    for n in (1, 2):
        net.run_in(f'h{n}', 'ip', 'link', 'set', f'e{n}', 'mtu', str(mtu))


def dropped_packets():
    """How many x1 has dropped by now."""
    fresh_counters()
    return net.counters('x1', ['rcvd_dropped'])['rcvd_dropped']


LARGE = 4096
# A page with an sk_buff's own part behind it; the memory of each is twice as much, and its sk_buff.
TRUESIZE = 8192


@in_time
def backlog_bytes():
    """Packets that wait for a busy queue pair take 8 MiB at most, though 1024 may wait."""
    jumbo(9000)
    d = BusyDatagrams()
    d.occupy()
    before = dropped_packets()
    d.flood(1200)
    accepted = 1200 - (dropped_packets() - before)
    was_busy = d.is_busy()
    d.close()
    jumbo(1500)
    if was_busy:
        expect((8 << 20) // (TRUESIZE + 1024) <= accepted < 1024, f'{accepted} accepted')
    return was_busy


@in_time
def backlog_share():
    """A process whose queue pairs are flooded, all busy, leaves room to another: it gets no more
    than half of what waiting packets may take, a sixty-fourth of the memory."""
    jumbo(9000)
    limit = max(os.sysconf('SC_PHYS_PAGES') * 4096 // 64, 16 << 20)
    queues = limit // (8 << 20) + 1
    to_child, from_child = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        # Its own address space, hence another process: it is flooded.
        flooded = [BusyDatagrams() for _ in range(queues)]
        os.write(from_child[1], struct.pack(f'{queues}I', *(d.qp.qp_num for d in flooded)))
        os.read(to_child[0], 1)
        for d in flooded:
            d.occupy()
        os.write(from_child[1], b'x')
        os.read(to_child[0], 1)
        os._exit(not all(d.is_busy() for d in flooded))
    numbers = struct.unpack(f'{queues}I', os.read(from_child[0], 4 * queues))
    victim = BusyDatagrams()
    os.write(to_child[1], b'x')
    os.read(from_child[0], 1)
    victim.occupy()
    # Together more than half, and not so many that those who wait give up meanwhile.
    count = limit // 2 // TRUESIZE // queues + 100
    before = dropped_packets()
    victim.flood(count, *numbers)
    accepted = (queues * count - (dropped_packets() - before)) * TRUESIZE
    before = dropped_packets()
    victim.flood(100)
    dropped = dropped_packets() - before
    was_busy = victim.is_busy()
    os.write(to_child[1], b'x')
    was_busy = os.waitpid(child, 0)[1] == 0 and was_busy
    for fd in (*to_child, *from_child):
        os.close(fd)
    victim.close()
    jumbo(1500)
    if was_busy:
        expect_eq(dropped, 0, 'packets of the other that were dropped')
        expect(
            accepted <= limit // 2 + queues * (TRUESIZE + 1024),
            f'{accepted} bytes accepted, limit {limit}',
        )
    return was_busy


# End, no operation, router alert.
EOL, NOP, ALERT = b'\0', b'\1', b'\x94\x04\0\0'


@case
def ip_options():
    """RoCEv2 has none, whatever the ICRC covers."""
    t, d = Target(), Datagrams()
    d.post()
    lists = (NOP * 3 + EOL, ALERT, NOP * 8, ALERT + NOP * 16, NOP * 39 + EOL)
    with Counted(2 * len(lists), 'rcvd_malformed'):
        for options in lists:
            d.send(options=options)
            t.write(options=options)
    t.alive()
    d.alive()
    t.close()
    d.close()


HOPS, FRAGMENT, DESTINATION = 0, 44, 60


def padded(extra=0):
    """An extension header that says nothing, in front of UDP; with an option of `extra` bytes that
    may be skipped."""
    if not extra:
        return bytes((17, 0, 1, 4)) + bytes(4)
    size = 4 + extra
    return bytes((17, size // 8 - 1, 0x1E, extra)) + bytes(extra)


@case
def extension_headers():
    """RoCEv2 has none, either; one of 256 bytes least of all."""
    d = Datagrams()
    d.post()
    link.raw6(d.packet(b'over six'))
    d.got(b'over six')
    verbs.put(d.mr, bytes(4096))
    d.post()
    headers = (
        (HOPS, padded()),
        (DESTINATION, padded()),
        (FRAGMENT, bytes((17, 0, 0, 0, 0, 0, 0, 1))),
        (DESTINATION, padded(252)),
    )
    with Counted(2 * len(headers), 'rcvd_malformed'):
        for first, extension in headers:
            link.raw6(d.packet(), first, extension)
            link.raw6(d.packet(), first, extension, crc_over=48)
    d.alive()
    d.close()


# The connection manager passes on what the peer offers; rxe offers up to so many.
OFFERED = 128


@case
def reads_outstanding():
    """No more READs and atomics wait for an answer than the device says, however many the peer
    offers, and than the peer offers."""
    cap = QPCap(max_send_wr=512, max_recv_wr=1, max_send_sge=1, max_recv_sge=1)

    def reader(outstanding):
        qp = QP(node.pd, QPInitAttr(qp_type=QPT.IBV_QPT_RC, scq=node.cq, rcq=node.cq, cap=cap))
        # Without a timeout: one while they are posted, on a slow machine, would make the window
        # smaller than their number.
        attr = attributes(node, peer, NOBODY, mtu=3, peer_psn=PSN, timeout=0)
        attr.max_rd_atomic = outstanding
        qp.to_rts(attr)
        return qp

    def sends(offered, most):
        qp, mr, requests = reader(offered), node.mr(64), []

        def sent():
            requests.extend(op for op, _, _ in link.answers(NOBODY))
            return len(requests) >= most

        link.answers(NOBODY)
        for _ in range(most + 40):
            wr = verbs.SendWR(num_sge=1, sg=[sge(mr, 8)], opcode=verbs.WR.IBV_WR_RDMA_READ)
            wr.set_wr_rdma(1, 0)
            qp.post_send(wr)
        ktap.wait_for(f'{most} requests', 10, sent)
        # Which waits for its work.
        qp.close()
        sent()
        expect_eq(requests, [RC | READ] * most, 'requests')

    ktap.expect_errno(errno.EINVAL, 'too many', reader, OFFERED + 1)
    sends(OFFERED, node.attr.max_qp_init_rd_atom)
    # That many packets are also the window of a new connection, and 16 are less.
    sends(16, 16)


@case
def answers_to_nobody():
    """Responses that no request asked for change nothing."""
    for xrc in (False, True):
        if xrc:
            qp = verbs.initiator(node)
            qp.to_rts(attributes(node, peer, GHOST, mtu=3, peer_psn=PSN))
            base, cq = XRC, node.cq
        else:
            t = Target()
            qp, base, cq = t.qp, RC, t.node.cq
        for syndrome in (0x00, 0x1F, 0x21, NAK_PSN, NAK_INVALID, NAK_ACCESS, 0x63, 0x7F):
            for at in (0, 1, 0x7FFFFF, 0xFFFFFF):
                link.send(base | ACK, qp.qp_num, at, bytes([syndrome, 0, 0, 0]))
                link.send(
                    base | READ_RESPONSE_ONLY, qp.qp_num, at, bytes([syndrome, 0, 0, 0]) + b'data'
                )
                link.send(base | ATOMIC_ACK, qp.qp_num, at, bytes([syndrome, 0, 0, 0]) + bytes(8))
        marker()
        expect_eq(qp.query(MASK.IBV_QP_STATE)[0].qp_state, QPS.IBV_QPS_RTS, 'state')
        verbs.nothing(cq)
        qp.close()


@case
def answers_meanwhile():
    """Packets that wait are answered in portions: a sender without a window must not stand still
    for an answer to all of them. These come while the first of them waits for memory. If they are
    many, the sender is told of congestion."""
    attempts(lambda: are_answered_in_portions(130, False))
    attempts(lambda: are_answered_in_portions(600, True))


def are_answered_in_portions(count, is_told):
    """False if the first of them has given up waiting."""
    most = 64
    t = Target()
    before = net.counters('x1')
    memory = guard.Guarded(2)
    mr = MR(t.node.pd, 2 * guard.PAGE, ALL | int(ACC.IBV_ACCESS_ON_DEMAND), address=memory.address)
    start = time.monotonic()
    link.send_all(
        [
            link.packet(
                bth(RC | WRITE_ONLY, t.qp.qp_num, psn(n))
                + reth(memory.address + (guard.PAGE if n else 0), mr.rkey, 4)
                + b'data'
            )
            for n in range(count)
        ]
    )
    arrived = before['rcvd_pkts'] + count
    ktap.wait_for('all have arrived', 10, lambda: net.counters('x1')['rcvd_pkts'] >= arrived)
    early = link.answers(GHOST)
    # It waits for 4 s at least.
    was_slow = time.monotonic() - start > 3
    memory.give()
    got = list(early)

    def has_given_up():
        return got and got[0][1] == psn(0) and got[0][2][0] == NAK_ACCESS

    notices = []

    def is_answered():
        for answer in link.answers(GHOST):
            (notices if answer[0] == CNP else got).append(answer)
        return got and (has_given_up() or got[-1][1] == psn(count - 1))

    ktap.wait_for('the last answer', 20, is_answered)
    if has_given_up() and was_slow:
        mr.close()
        t.close()
        return False
    expect_eq(early, [], 'answers before there is memory')
    expect(
        all(opcode == RC | ACK and rest[0] & 0xE0 == 0 for opcode, _, rest in got),
        f'only ACKs: {got}',
    )
    ends = [-1] + [at - PSN & 0xFFFFFF for _, at, _ in got]
    expect(max(b - a for a, b in zip(ends, ends[1:])) <= most, f'the answers are for {ends[1:]}')
    after = net.counters('x1')
    told, marked = (
        after[name] - before[name] for name in ('np_cnp_sent', 'np_ecn_marked_roce_packets')
    )
    expect_eq((bool(notices), marked), (is_told, 0), 'told of congestion, without marks')
    expect_eq(told, len(notices), 'notifications sent')
    mr.close()
    t.close()
    return True


@case
def device_goes_on():
    """After all that: messages between x1 and x2, and no event of the device."""
    expect_eq(node.events(), [], 'events')
    for kind in (verbs.Rc, verbs.Xrc):
        conn = kind(peer, node)
        src, dst = peer.mr(5000), node.mr(5000)
        verbs.put(src, verbs.pattern(1, 5000))
        conn.post_recv(recv_wr([sge(dst)]))
        conn.post(conn.send_wr(verbs.WR.IBV_WR_SEND, [sge(src)]))
        verbs.ok(verbs.poll(conn.recv_cq))
        verbs.ok(verbs.poll(conn.send_cq))
        expect(get(dst, 5000) == verbs.pattern(1, 5000), 'payload')
        conn.close()
        src.close()
        dst.close()


if net.TYPE != 'xroce':
    ktap.skip_all('counters and some answers are those of xroce')
ktap.main(setup, net.clean)
