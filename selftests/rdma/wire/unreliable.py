#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=60 debug=long
"""Unreliable connections, packet by packet: a message of which a packet is lost, late
or not permitted is dropped silently, and the next one arrives complete (IBTA 9.8.2,
9.9.3). An error of the receiver's own buffers ends the queue pair."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]

import ktap
import net
import verbs
import wire
from ktap import case, expect_eq
from pyverbs.libibverbs_enums import ibv_qp_attr_mask as MASK
from pyverbs.pd import PD
from verbs import (
    ACC,
    ALL,
    LOCAL,
    QP,
    QPS,
    QPT,
    WCO,
    WCS,
    QPCap,
    QPInitAttr,
    attributes,
    get,
    pattern,
    put,
    recv_wr,
    sge,
    status_name,
)
from wire import (
    FETCH_ADD,
    READ,
    SEND_FIRST,
    SEND_LAST,
    SEND_MIDDLE,
    SEND_ONLY,
    UC,
    WRITE_FIRST,
    WRITE_LAST,
    WRITE_LAST_IMM,
    WRITE_MIDDLE,
    WRITE_ONLY,
    WRITE_ONLY_IMM,
    atomiceth,
    reth,
)

# The peer's queue pair, which does not exist, and the first PSN that it uses.
GHOST, PSN = 0xABCDEF, 0xFFFFFE
MTU = 1024
ROOM = 4096
# As it stands in the packet, and as pyverbs shows it.
IMM, IMM_DATA = b'\x11\x22\x33\x44', 0x44332211

link = peer = None


def setup():
    global link, peer
    net.hosts_up()
    link = wire.Wire()
    peer = verbs.Node('x2')


class Target:
    """A queue pair of x1 that is connected to the ghost; memory for messages and for WRITEs."""

    def __init__(self, access=ALL, mr_access=ALL):
        self.node = verbs.Node('x1')
        self.land = self.node.mr(8 * ROOM)
        self.mr = self.node.mr(ROOM, mr_access)
        cap = QPCap(max_send_wr=8, max_recv_wr=8, max_send_sge=1, max_recv_sge=1)
        self.qp = QP(
            self.node.pd,
            QPInitAttr(qp_type=QPT.IBV_QPT_UC, scq=self.node.cq, rcq=self.node.cq, cap=cap),
        )
        self.qp.to_rts(attributes(self.node, peer, GHOST, mtu=3, access=access, peer_psn=PSN))
        self.posted = self.at = self.seed = 0
        link.answers(GHOST)

    def post(self, count=1):
        """Receives, of ROOM bytes each."""
        for _ in range(count):
            at = self.posted % 8
            self.qp.post_recv(recv_wr([sge(self.land, ROOM, at * ROOM)], wr_id=self.posted))
            self.posted += 1

    def packet(self, op, data=b'', late=None):
        """The ghost's next packet; late: the one so many before the next, again or for the first
        time."""
        n = self.at if late is None else self.at - late
        pad = -len(data) % 4
        link.send(
            UC | op, self.qp.qp_num, PSN + n & 0xFFFFFF, data + bytes(pad), ack=False, pad=pad
        )
        if late is None:
            self.at += 1

    def lose(self, count=1):
        """That many packets do not arrive."""
        self.at += count

    def message(self, *ops, size=MTU):
        """Packets of a SEND with those operations; returns its bytes."""
        self.seed += 1
        data = pattern(self.seed, (len(ops) - 1) * MTU + size)
        for i, op in enumerate(ops):
            self.packet(op, data[i * MTU : (i + 1) * MTU])
        return data

    def write(self, op=WRITE_ONLY, data=b'data', va=None, rkey=None, length=None, imm=b''):
        """A packet of a WRITE that begins one."""
        self.packet(
            op,
            reth(
                self.mr.buf if va is None else va,
                self.mr.rkey if rkey is None else rkey,
                len(data) if length is None else length,
            )
            + imm
            + data,
        )

    def got(self, data, wr_id, opcode=WCO.IBV_WC_RECV):
        """The next completion is that receive's, with that message."""
        (wc,) = verbs.poll(self.node.cq)
        expect_eq(status_name(wc.status), WCS.IBV_WC_SUCCESS.name, 'status')
        expect_eq((wc.wr_id, wc.opcode, wc.byte_len), (wr_id, opcode, len(data)), 'receive')
        if opcode == WCO.IBV_WC_RECV:
            ktap.expect(get(self.land, len(data), wr_id % 8 * ROOM) == data, 'payload')

    def failed(self, status):
        """The receive that was posted has that status, and the queue pair is in error."""
        (wc,) = verbs.poll(self.node.cq)
        expect_eq(status_name(wc.status), status.name, 'status')
        ktap.wait_for('error state', 10, lambda: self.state() == QPS.IBV_QPS_ERR)
        expect_eq(link.answers(GHOST), [], 'answers')

    def state(self):
        return self.qp.query(MASK.IBV_QP_STATE)[0].qp_state

    def alive(self, wr_id=None):
        """Nobody was told anything, and a message arrives: in the receive wr_id, if given, else in
        a new one."""
        if wr_id is None:
            wr_id = self.posted
            self.post()
        data = self.message(SEND_FIRST, SEND_LAST, size=77)
        self.got(data, wr_id)
        verbs.nothing(self.node.cq)
        expect_eq(link.answers(GHOST), [], 'answers')
        expect_eq(self.state(), QPS.IBV_QPS_RTS, 'state')
        # IBV_EVENT_COMM_EST is for who waits in RTR.
        expect_eq(self.node.events(), [], 'events')

    def close(self):
        self.node.close()


def with_target(fn):
    """A case that gets a target."""

    def run():
        t = Target()
        fn(t)
        t.close()

    ktap.add(fn.__name__, run)
    return fn


@with_target
def whole_messages(t):
    t.post(3)
    for i, ops in enumerate(
        ((SEND_ONLY,), (SEND_FIRST, SEND_LAST), (SEND_FIRST, SEND_MIDDLE, SEND_MIDDLE, SEND_LAST))
    ):
        t.got(t.message(*ops, size=100), i)
    t.alive()


@with_target
def middle_lost(t):
    t.post(2)
    t.packet(SEND_FIRST, b'1' * MTU)
    t.lose()
    t.packet(SEND_MIDDLE, b'3' * MTU)
    t.packet(SEND_LAST, b'4' * 100)
    # Its receive is the next one's.
    t.alive(0)
    t.alive(1)


@with_target
def first_lost(t):
    t.post()
    t.lose()
    t.packet(SEND_MIDDLE, b'2' * MTU)
    t.packet(SEND_LAST, b'3' * 100)
    t.alive(0)


@with_target
def last_lost(t):
    """The next message shows it."""
    t.post()
    t.packet(SEND_FIRST, b'1' * MTU)
    t.packet(SEND_MIDDLE, b'2' * MTU)
    t.lose()
    t.alive(0)


@with_target
def many_lost(t):
    t.post(2)
    for i, count in enumerate((2, 5000)):
        t.packet(SEND_FIRST, b'1' * MTU)
        t.lose(count)
        t.alive(i)


@with_target
def broken_off(t):
    """A message that its sender gives up, and another right behind it."""
    t.post()
    t.packet(SEND_FIRST, b'1' * MTU)
    t.alive(0)
    t.post()
    t.packet(WRITE_FIRST, reth(t.mr.buf, t.mr.rkey, 2 * MTU) + b'1' * MTU)
    t.alive(1)


@with_target
def middle_of_write_lost(t):
    """What came before the gap may be written, what comes behind it not; no receive is used."""
    t.post(2)
    t.write(WRITE_FIRST, b'1' * MTU, length=3 * MTU + 4)
    t.lose()
    t.packet(WRITE_MIDDLE, b'3' * MTU)
    t.packet(WRITE_LAST_IMM, IMM + b'4' * 4)
    t.alive(0)
    ktap.expect(
        get(t.mr, ROOM - MTU, MTU) == bytes(ROOM - MTU), 'memory behind the gap was written'
    )
    put(t.mr, bytes(ROOM))
    # The next WRITE is as whole as ever.
    data = pattern(99, 3 * MTU + 4)
    t.write(WRITE_FIRST, data[:MTU], length=len(data))
    t.packet(WRITE_MIDDLE, data[MTU : 2 * MTU])
    t.packet(WRITE_MIDDLE, data[2 * MTU : 3 * MTU])
    t.packet(WRITE_LAST_IMM, IMM + data[3 * MTU :])
    t.got(data, 1, WCO.IBV_WC_RECV_RDMA_WITH_IMM)
    ktap.expect(get(t.mr, len(data)) == data, 'what was written')


@with_target
def repeated(t):
    """A copy is not a message, nor part of one."""
    t.post(2)
    data = t.message(SEND_ONLY, size=40)
    for _ in range(3):
        t.packet(SEND_ONLY, data, late=1)
    t.got(data, 0)
    t.packet(SEND_FIRST, b'1' * MTU)
    t.packet(SEND_FIRST, b'1' * MTU, late=1)
    t.packet(SEND_MIDDLE, b'2' * MTU)
    t.packet(SEND_MIDDLE, b'2' * MTU, late=1)
    t.packet(SEND_LAST, b'3' * 8)
    t.packet(SEND_LAST, b'3' * 8, late=1)
    t.got(b'1' * MTU + b'2' * MTU + b'3' * 8, 1)
    t.alive()


@with_target
def overtaken(t):
    """What comes late is dropped, and the message of which it is."""
    t.post()
    t.packet(SEND_FIRST, b'1' * MTU)
    t.lose()
    t.packet(SEND_LAST, b'3' * 8)
    t.packet(SEND_MIDDLE, b'2' * MTU, late=2)
    t.alive(0)
    t.post()
    t.lose()
    data = t.message(SEND_ONLY, size=12)
    t.packet(SEND_ONLY, b'late', late=2)
    t.got(data, 1)
    t.alive()


@with_target
def without_receive(t):
    """Dropped; a receive that comes in the middle of a message is for the next."""
    for _ in range(3):
        t.packet(SEND_ONLY, b'gone')
    t.packet(WRITE_ONLY_IMM, reth(t.mr.buf, t.mr.rkey, 4) + IMM + b'here')
    t.alive()
    t.packet(SEND_FIRST, b'1' * MTU)
    # A packet that shows that the last one was handled.
    other = Target()
    other.alive()
    other.close()
    t.post()
    t.packet(SEND_MIDDLE, b'2' * MTU)
    t.packet(SEND_LAST, b'3' * 8)
    t.alive(1)


@with_target
def write_with_immediate(t):
    t.post(3)
    for i, length in enumerate((0, 4, MTU)):
        data = pattern(i, length)
        t.write(WRITE_ONLY_IMM, data, imm=IMM)
        (wc,) = verbs.poll(t.node.cq)
        expect_eq(
            (status_name(wc.status), wc.wr_id, wc.opcode, wc.byte_len, wc.imm_data),
            (WCS.IBV_WC_SUCCESS.name, i, WCO.IBV_WC_RECV_RDMA_WITH_IMM, length, IMM_DATA),
            'receive',
        )
        ktap.expect(get(t.mr, length) == data, 'what was written')
    t.alive()


@case
def not_admitted():
    """Keys, rights and ranges that are wrong: nothing is written, answered or told."""
    write = int(ACC.IBV_ACCESS_REMOTE_WRITE)
    for options in ({}, {'mr_access': ALL & ~write}, {'access': ALL & ~write}):
        t = Target(**options)
        pd = PD(t.node.ctx)
        foreign = t.node.mr(ROOM, ALL, pd)
        wrong = (
            [{}]
            if options
            else [
                {'rkey': t.mr.rkey ^ 1},
                {'rkey': 0},
                {'va': t.mr.buf - 8},
                {'va': t.mr.buf + ROOM - 2},
                {'va': 0xFFFFFFFFFFFFFFF8},
                {'va': foreign.buf, 'rkey': foreign.rkey},
            ]
        )
        t.post()
        for where in wrong:
            t.write(**where)
            t.write(WRITE_ONLY_IMM, imm=IMM, **where)
            t.write(WRITE_FIRST, b'1' * MTU, length=MTU + 4, **where)
            t.packet(WRITE_LAST, b'last')
        # RETH and payload that disagree; packets that are not full.
        for op, size, length in (
            (WRITE_ONLY, 8, 4),
            (WRITE_ONLY, 4, 8),
            (WRITE_FIRST, MTU - 4, 2 * MTU),
            (WRITE_FIRST, MTU, 4),
        ):
            t.write(op, b'x' * size, length=length)
        t.alive(0)
        ktap.expect(get(t.mr, ROOM) + get(foreign, ROOM) == bytes(2 * ROOM), 'memory was written')
        t.close()


@with_target
def not_of_this_service(t):
    t.post()
    for op, rest in (
        (READ, reth(t.mr.buf, t.mr.rkey, 8)),
        (FETCH_ADD, atomiceth(t.mr.buf, t.mr.rkey, 1)),
        (0x16, bytes(8)),
        (0x17, bytes(8)),
        (0x11, bytes(4)),
    ):
        t.packet(op, rest)
    for base in (0x00, 0x60, 0xA0):
        link.send(base | SEND_ONLY, t.qp.qp_num, PSN + t.at & 0xFFFFFF, bytes(64))
    t.alive(0)
    ktap.expect(get(t.mr, ROOM) == bytes(ROOM), 'memory was written')


@case
def own_fault():
    """The message is longer than the receive, or the receive's key is wrong: that is this side's
    error."""
    t = Target()
    t.qp.post_recv(recv_wr([sge(t.land, 100)]))
    t.message(SEND_ONLY, size=101)
    t.failed(WCS.IBV_WC_LOC_LEN_ERR)
    t.close()
    t = Target()
    t.qp.post_recv(recv_wr([sge(t.land, MTU)]))
    t.message(SEND_FIRST, SEND_LAST, size=1)
    t.failed(WCS.IBV_WC_LOC_LEN_ERR)
    t.close()
    t = Target()
    pd = PD(t.node.ctx)
    t.qp.post_recv(recv_wr([sge(t.node.mr(64, LOCAL, pd))]))
    t.message(SEND_ONLY, size=4)
    t.failed(WCS.IBV_WC_LOC_PROT_ERR)
    t.close()


if net.TYPE != 'xroce':
    ktap.skip_all('some of it is up to the device')
ktap.main(setup, net.clean)
