#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=60 debug xrc
"""Events of XRC targets and SRQs: their recipients, the sender's status that goes with
them, and the kernel log when there is no recipient."""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]

import ktap
import net
from ktap import expect, expect_eq
from puppet import (
    ACCESS_ERR,
    ALL,
    COMM_EST,
    EINVAL,
    ERR,
    HASTY,
    LAST_WQE,
    LEN_ERR,
    OPS,
    PATIENT,
    REM_ACCESS_ERR,
    REM_INV_REQ_ERR,
    RESET,
    RETRY_EXC_ERR,
    RNR_RETRY_EXC_ERR,
    RTR,
    SRQ_ERR,
    SRQ_LIMIT,
    SUCCESS,
    add_case,
    connect,
    message,
    send,
)

PORT_ACTIVE, PORT_ERR = 9, 10
UNKNOWN = 0xFFFFF0


class KernelLog:
    """What the kernel says from now on."""

    def __init__(self):
        self.fd = os.open('/dev/kmsg', os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.fd, 0, os.SEEK_END)

    def lines(self, pattern):
        """Those that have come and match."""
        got = []
        while True:
            try:
                line = os.read(self.fd, 8192).decode(errors='replace')
            except BlockingIOError:
                return got
            if re.search(pattern, line):
                got.append(line.split(';', 1)[1].split('\n')[0])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)


def all_openers(stage, place):
    """Everybody who has it open is told, each through its own handle, those that came late, too."""
    a, b, c = (stage.puppet('x1', domain=True) for _ in range(3))
    outsider = stage.puppet('x1', domain=True)
    client = stage.puppet('x2' if place == 'wire' else 'x1')
    (srqn,) = c('srq', 0, 0, 0, 0, 16)
    qpn = connect(client, 0, a, 0)
    b('view', 3, 0, 0, qpn)
    b('view', 4, 0, 0, qpn)
    message(client, 0, c, 0, srqn)
    # It waits in RTR, so the first packet is news.
    for p, slots in ((a, [0]), (b, [3, 4])):
        expect_eq(
            sorted(p.events(len(slots), but=())),
            [(COMM_EST, s) for s in slots],
            'events of the first packet',
        )
    # The maker goes, another comes, and one that gives its handle back.
    a.kill()
    late = stage.puppet('x1', domain=True)
    late('view', 7, 0, 0, qpn)
    c('view', 2, 0, 0, qpn)
    c('unqp', 2)
    expect_eq(send(client, 0, UNKNOWN), REM_INV_REQ_ERR, 'status')
    wanted = [(kind, s) for kind in (ACCESS_ERR, LAST_WQE) for s in (3, 4)]
    expect_eq(sorted(b.events(4)), wanted, 'events')
    expect_eq(late.events(2), [(ACCESS_ERR, 7), (LAST_WQE, 7)], 'events of the late one')
    for p in (c, outsider):
        expect_eq(p.events(), [], "an outsider's events")
    # It happened: who comes now finds the state, not the event.
    outsider('view', 0, 0, 0, qpn)
    expect_eq((outsider.events(), outsider.state(0)), ([], ERR), 'events afterwards')


def nobody(stage):
    """With nobody there, the kernel says it: once, however many there are."""
    maker, living = stage.puppet('x1', domain=True), stage.puppet('x1', domain=True)
    client = stage.puppet('x2')
    (srqn,) = living('srq', 0, 0, 0, 0, 16)
    count = 6
    numbers = [connect(client, slot, maker, slot) for slot in range(count)]
    for slot in range(count):
        message(client, slot, living, 0, srqn)
    maker.kill()
    with KernelLog() as log:
        for slot in range(count):
            client('send', slot, OPS['send'], UNKNOWN, 8, slot)
        expect_eq([w.status for w in client.poll(count)], [REM_INV_REQ_ERR] * count, 'statuses')
        line = ktap.wait_for('a line in the log', 5, lambda: log.lines('XRC target'))
        ktap.note(line[0])
        expect(len(line) <= 2, f'not limited: {line}')
        found = re.search(
            r'x1: XRC target (0x[0-9a-f]+) of domain [1-9]\d* .* AccessError', line[0]
        )
        expect(found and int(found[1], 16) in numbers, f'does not say who: {line[0]}')
    expect_eq(living.events(), [], 'events of one who has none open')
    # With somebody there, the log has nothing.
    connect(client, 0, living, 0)
    with KernelLog() as log:
        send(client, 0, UNKNOWN)
        living.events(2)
        expect_eq(log.lines('XRC target'), [], 'lines')


def outcomes(stage, place):
    """What went wrong, as the sender, the receiver and the target's openers see it."""
    a, b = stage.puppet('x1', domain=True), stage.puppet('x1', domain=True)
    client = stage.puppet('x2' if place == 'wire' else 'x1')
    (srqn,) = b('srq', 0, 0, 0, 0, 16)

    def one(what, status, events, state, before=lambda: None, receive=None, srqn=srqn, **how):
        options = {k: how.pop(k) for k in ('rnr', 'timeout', 'retry') if k in how}
        connect(client, 0, a, 0, **options)
        before()
        expect_eq(send(client, 0, srqn, **how), status, f'{what}: status')
        expect_eq([e.type for e in a.events(len(events))], events, f'{what}: events')
        expect_eq(a.state(0), state, f'{what}: state')
        if receive is not None:
            expect_eq(b.poll()[0].status, receive, f'{what}: the receive')
        expect_eq(b.events(), [], f"{what}: the SRQ owner's events")
        client('unqp', 0)
        a('unqp', 0)

    one('unknown SRQ', REM_INV_REQ_ERR, [ACCESS_ERR, LAST_WQE], ERR, srqn=UNKNOWN)
    one(
        'no such key',
        REM_ACCESS_ERR,
        [ACCESS_ERR, LAST_WQE],
        ERR,
        op='write',
        key=0x7FFFFF00,
        address=0,
    )
    one('too long', REM_INV_REQ_ERR, [LAST_WQE], ERR, lambda: b('post', 0, 1, 16), LEN_ERR)
    one('RNR', RNR_RETRY_EXC_ERR, [], RTR, rnr=1)
    one('in RESET', RETRY_EXC_ERR, [], RESET, lambda: a('to', 0, RESET), **HASTY)
    one('in ERR', RETRY_EXC_ERR, [LAST_WQE], ERR, lambda: a('to', 0, ERR), **HASTY)

    def swap():
        a('unqp', 0)
        a('tgt', 0, 0, 0)

    one('destroyed', RETRY_EXC_ERR, [], RESET, swap, **HASTY)
    connect(client, 1, a, 1)
    message(client, 1, b, 0, srqn)


def limit(stage):
    """The limit of an SRQ: told to its owner, once for each time that it is armed."""
    a, b, client = (stage.puppet('x1', domain=True) for _ in range(3))
    (srqn,) = b('srq', 0, 0, 0, 0, 32)
    connect(client, 0, a, 0)
    for _ in range(2):
        b('post', 0, 8, 4096)
        b('limit', 0, 6)
        for n in range(2):
            expect_eq(send(client, 0, srqn, number=n), SUCCESS, 'status')
        expect_eq(b.events(), [], 'events above the limit')
        for n in range(3):
            expect_eq(send(client, 0, srqn, number=n), SUCCESS, 'status')
        expect_eq(b.events(1), [(SRQ_LIMIT, 0)], 'events')
        expect_eq(b('getlimit', 0), [0], 'the limit afterwards')
        expect_eq(a.events(), [], "the target's events")
        for n in range(3):
            send(client, 0, srqn, number=n)
        b.poll(8)


def broken_srq(stage, place):
    """A ring that makes no sense ends its SRQ, not the target of the others: who sends to that SRQ
    is told to wait, as for one that is empty."""
    a, b = (stage.puppet('x1', domain=True) for _ in range(2))
    client = stage.puppet('x2' if place == 'wire' else 'x1')
    (bad,) = b('srq', 0, 0, 0, 0, 16)
    (good,) = b('srq', 1, 0, 0, 0, 16)
    address, _, rkey = b('mr', 0, 0, 0, ALL)
    qpn = connect(client, 0, a, 0, rnr=2)
    message(client, 0, b, 0, bad)
    message(client, 0, b, 1, good)
    b('spoil', 0)
    expect_eq(send(client, 0, bad), RNR_RETRY_EXC_ERR, 'status')
    expect_eq(b.events(1), [(SRQ_ERR, 0)], 'events of the owner')
    expect_eq((a.events(), a.state(0)), ([], RTR), 'the target')
    # The sender goes on where it stopped. The number still stands for a protection domain.
    client('to', 0, RESET)
    client('init', 0, ALL)
    client('rtr', 0, qpn, a.gid, 1)
    client('rts', 0, PATIENT['timeout'], PATIENT['retry'], 2, 2)
    expect_eq(
        send(client, 0, bad, op='write', key=rkey, address=address), SUCCESS, 'status of a write'
    )
    message(client, 0, b, 1, good)
    expect_eq(send(client, 0, bad), RNR_RETRY_EXC_ERR, 'status once more')
    expect_eq((a.events(), a.state(0), b.events()), ([], RTR, []), 'the target afterwards')
    # Whoever names one that is gone is told of it.
    b('unsrq', 0)
    connect(client, 1, a, 1)
    message(client, 1, b, 1, good)
    expect_eq(send(client, 1, bad), REM_INV_REQ_ERR, 'status')


def path(stage):
    """No path migrates on RoCE; a link that goes down and up is the device's news only."""
    a, b, client = (
        stage.puppet('x1', domain=True),
        stage.puppet('x1', domain=True),
        stage.puppet('x2'),
    )
    (srqn,) = b('srq', 0, 0, 0, 0, 16)
    qpn = connect(client, 0, a, 0)
    b('view', 0, 0, 0, qpn)
    message(client, 0, b, 0, srqn)
    for p in (a, b):
        p.refused(EINVAL, 'alternate', 0)
    net.run_in('h1', 'ip', 'link', 'set', 'e1', 'down')
    for p in (a, b):
        expect(PORT_ERR in [e.type for e in p.events(1)], 'no IBV_EVENT_PORT_ERR')
    net.run_in('h1', 'ip', 'link', 'set', 'e1', 'up')
    for p in (a, b):
        got = []
        ktap.wait_for(
            'IBV_EVENT_PORT_ACTIVE',
            10,
            lambda p=p, got=got: got.extend(p.events()) or PORT_ACTIVE in [e.type for e in got],
        )
        expect(all(e.slot == -1 for e in got), f'events of a QP: {got}')
    expect_eq(a.state(0), RTR, 'state')


def main():
    for place in ('wire', 'local'):
        add_case(f'all_openers-{place}', all_openers, place, debug=place == 'wire')
        add_case(f'outcomes-{place}', outcomes, place, debug=place == 'wire')
        add_case(f'broken_srq-{place}', broken_srq, place)
    for fn in (nobody, limit):
        add_case(fn.__name__, fn)
    add_case('path', path, debug=False)
    ktap.main(lambda: net.hosts_up())


main()
