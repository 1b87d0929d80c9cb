#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=180 debug xrc
"""Accesses that are not permitted to an XRC request, by each operation: the sender's
status, the target's state and events, memory; and the other connections of the domain.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]

import ktap
import net
from ktap import expect, expect_eq
from puppet import (
    ACCESS_ERR,
    ALL,
    ATOMIC,
    ERR,
    FLUSH_ERR,
    LAST_WQE,
    LOC_PROT_ERR,
    LOCAL,
    OPS,
    READ,
    REM_ACCESS_ERR,
    REM_INV_REQ_ERR,
    REM_OP_ERR,
    REQ_ERR,
    RTR,
    WRITE,
    Stage,
    connect,
    message,
    send,
)

RIGHT = {'write': WRITE, 'write_imm': WRITE, 'read': READ, 'cas': ATOMIC, 'add': ATOMIC}
# The number of an SRQ that was never made.
UNKNOWN = 0xFFFFF0


class Ground:
    """A domain of two processes, one of them with a healthy connection."""

    def __init__(self, stage, place):
        self.stage = stage
        self.a, self.b = stage.puppet('x1', domain=True), stage.puppet('x1', domain=True)
        self.client = stage.puppet('x2' if place == 'wire' else 'x1')
        (self.srqn,) = self.a('srq', 0, 0, 0, 0, 64)
        self.healthy = connect(self.client, 0, self.b, 0)
        self.good()

    def good(self):
        """The healthy connection is."""
        message(self.client, 0, self.a, 0, self.srqn)
        expect_eq(self.b.state(0), RTR, "the healthy target's state")

    def refused(self, op, srqn, status, events, access=ALL, key=None, address=None):
        """A request over a new connection that fails, and ends that connection at both ends."""
        connect(self.client, 1, self.a, 1, access)
        if RIGHT.get(op) and key is None:
            key, address = 0, 0
        expect_eq(
            send(self.client, 1, srqn, op, key=key, address=address), status, f'status of {op}'
        )
        expect_eq(self.client.state(1), ERR, "the initiator's state")
        got = self.a.events(len(events))
        expect_eq([e.type for e in got], events, f"the target's events after {op}")
        expect(all(e.slot == 1 for e in got), f'events of something else: {got}')
        expect_eq(self.a.state(1), ERR, "the target's state")
        # What is sent behind it is flushed.
        self.client('send', 1, OPS['send'], self.srqn, 8, 5)
        expect_eq(self.client.poll()[0].status, FLUSH_ERR, 'status of what comes behind')
        self.client('unqp', 1)
        self.a('unqp', 1)


def wrong_srq(ground, how):
    """A number that is not an SRQ of the domain."""
    stage, a = ground.stage, ground.a
    srqn = UNKNOWN
    if how == 'foreign':
        other = stage.puppet('x1')
        other('xrcd', 0, 0, -1, 0)
        (srqn,) = other('srq', 0, 0, 0, 0, 16)
        other('post', 0, 8, 4096)
    elif how == 'foreign-device':
        other = stage.puppet('x2', domain=True)
        (srqn,) = other('srq', 0, 0, 0, 0, 16)
        other('post', 0, 8, 4096)
    elif how == 'basic':
        # The number of a basic SRQ is not told: it is the one between its neighbours'.
        for slot in range(10, 40, 3):
            (before,) = a('srq', slot, 0, 0, 0, 16)
            a('basic', slot + 1, 0)
            (after,) = a('srq', slot + 2, 0, 0, 0, 16)
            if after == before + 2:
                break
        expect_eq(after, before + 2, 'numbers in a row')
        srqn = before + 1
        a('post', slot + 1, 8, 4096)
    elif how == 'destroyed':
        (srqn,) = a('srq', 10, 0, 0, 0, 16)
        a('post', 10, 8, 4096)
        message(ground.client, 0, a, 10, srqn)
        a('unsrq', 10)
    elif how == 'owner-killed':
        owner = stage.puppet('x1', domain=True)
        (srqn,) = owner('srq', 0, 0, 0, 0, 16)
        message(ground.client, 0, owner, 0, srqn)
        owner.kill()
    # The keys are good: it is the number that does not do.
    address, _, rkey = a('mr', 0, 0, 0, ALL)
    before = a('bytes', 0, 0, 64)
    for op in OPS:
        rdma = {'key': rkey, 'address': address} if op in RIGHT else {}
        ground.refused(op, srqn, REM_INV_REQ_ERR, [ACCESS_ERR, LAST_WQE], **rdma)
        expect_eq(a('bytes', 0, 0, 64), before, 'memory')
        ground.good()


def wrong_pd(ground):
    """Keys of another PD than the SRQ's: remote ones for RDMA, local ones for messages."""
    a = ground.a
    (second,) = a('srq', 1, 0, 0, 1, 16)
    address, _, rkey = a('mr', 0, 0, 1, ALL)
    for op in RIGHT:
        if op == 'write_imm':
            a('post', 0, 1, 64)
        ground.refused(
            op, ground.srqn, REM_ACCESS_ERR, [ACCESS_ERR, LAST_WQE], key=rkey, address=address
        )
        expect_eq(a('bytes', 0, 0, 64), ['00' * 64], 'memory')
        if op == 'write_imm':
            # It was not used up.
            expect_eq(send(ground.client, 0, ground.srqn), 0, 'status')
            a.poll()
        ground.good()
    # Naming the SRQ of that PD, the same key does.
    expect_eq(send(ground.client, 0, second, 'write', key=rkey, address=address), 0, 'status')
    expect_eq(a('bytes', 0, 0, 64), ['a5' * 64], 'memory')
    for op in ('send', 'send_imm'):
        a('post', 0, 1, 64, 0)
        ground.refused(op, ground.srqn, REM_OP_ERR, [LAST_WQE])
        wc = a.poll()[0]
        expect_eq((wc.status, wc.id), (LOC_PROT_ERR, 0), 'the receive')
        ground.good()


def region_flag(ground):
    """The region does not allow what is asked."""
    a = ground.a
    for slot, (op, right) in enumerate(RIGHT.items()):
        address, _, rkey = a(
            'mr', slot, 0, 0, ALL & ~right if right == READ else LOCAL | (ALL & ~right)
        )
        ground.refused(
            op, ground.srqn, REM_ACCESS_ERR, [ACCESS_ERR, LAST_WQE], key=rkey, address=address
        )
        expect_eq(a('bytes', slot, 0, 64), ['00' * 64], 'memory')
        ground.good()
    # A receive into a region that may not be written.
    a('mr', 20, 0, 0, 0)
    for op in ('send', 'send_imm'):
        a('post', 0, 1, 64, 20)
        ground.refused(op, ground.srqn, REM_OP_ERR, [LAST_WQE])
        expect_eq(a.poll()[0].status, LOC_PROT_ERR, 'the receive')
        ground.good()


def target_flag(ground):
    """The target does not allow what the region does."""
    a = ground.a
    address, _, rkey = a('mr', 0, 0, 0, ALL)
    for op, right in RIGHT.items():
        ground.refused(
            op,
            ground.srqn,
            REM_INV_REQ_ERR,
            [REQ_ERR, LAST_WQE],
            access=ALL & ~right,
            key=rkey,
            address=address,
        )
        expect_eq(a('bytes', 0, 0, 64), ['00' * 64], 'memory')
        ground.good()
    # Messages need no right.
    connect(ground.client, 1, a, 1, 0)
    message(ground.client, 1, a, 0, ground.srqn)


def main():
    def add(name, fn, *args, debug=True, places=('wire', 'local')):
        for place in places:

            def run(place=place):
                with Stage() as stage:
                    fn(Ground(stage, place), *args)

            ktap.add(f'{place}-{name}', run, debug=debug and place == 'wire')

    for how in ('unknown', 'foreign', 'foreign-device', 'basic', 'destroyed', 'owner-killed'):
        add(
            f'srq-{how}',
            wrong_srq,
            how,
            debug=how in ('foreign', 'destroyed'),
            places=('wire', 'local') if how in ('foreign', 'destroyed') else ('wire',),
        )
    for fn in (wrong_pd, region_flag, target_flag):
        add(fn.__name__, fn)
    ktap.main(lambda: net.hosts_up())


main()
