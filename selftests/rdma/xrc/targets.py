#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=180 debug xrc
"""XRC target QPs: what ends them and what does not, what they do at that time, and
several processes that modify one. Killed creators and the last process of a domain are
tested in xrc.c, too; here are the other cases."""
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]

import ktap
import net
from ktap import expect, expect_eq
from puppet import (
    ALL,
    EBUSY,
    EINVAL,
    ERR,
    INIT,
    OPS,
    PATIENT,
    RESET,
    RTR,
    RTS,
    SUCCESS,
    add_case,
    connect,
    message,
    send,
    targets,
    unanswered,
)

BURST = 24


def creator_goes(stage, place, how):
    """The creator goes in the middle of a burst: every message of it arrives."""
    creator = stage.puppet('x1', domain=True)
    living = stage.puppet('x1', domain=True)
    client = stage.puppet('x2' if place == 'wire' else 'x1')
    qpn = connect(client, 0, creator, 0)
    (srqn,) = living('srq', 0, 0, 0, 0, 64)
    living('post', 0, BURST, 4096)
    for n in range(BURST // 2):
        client('send', 0, OPS['send_imm'], srqn, 3000, n)
    {'exit': creator.exit, 'kill': creator.kill, 'close': lambda: creator('close', 0)}[how]()
    for n in range(BURST // 2, BURST):
        client('send', 0, OPS['send_imm'], srqn, 3000, n)
    expect_eq(
        [(w.status, w.id) for w in client.poll(BURST)],
        [(SUCCESS, n) for n in range(BURST)],
        'sends',
    )
    expect_eq(
        [(w.status, w.imm, w.qpn) for w in living.poll(BURST)],
        [(SUCCESS, n, qpn) for n in range(BURST)],
        'receives',
    )
    expect_eq(targets(), [qpn], 'targets')
    # One that starts later finds it, has it go on, and ends it.
    late = stage.puppet('x1', domain=True)
    late('view', 0, 0, 0, qpn)
    expect_eq(late.state(0), RTR, 'state')
    message(client, 0, living, 0, srqn)
    late('unqp', 0)
    expect_eq(targets(), [], 'targets')
    unanswered(client, 0, srqn)


def destroyed_but_open(stage):
    """A destroyed target goes with the last who has it open, and works until then."""
    a, b, c, client = (stage.puppet('x1', domain=True) for _ in range(4))
    (srqn,) = c('srq', 0, 0, 0, 0, 16)
    qpn = connect(client, 0, a, 0)
    b('view', 0, 0, 0, qpn)
    a('unqp', 0)
    expect_eq(targets(), [qpn], 'targets')
    message(client, 0, c, 0, srqn)
    # It may still be opened.
    c('view', 1, 0, 0, qpn)
    a('view', 0, 0, 0, qpn)
    b.kill()
    a.exit()
    message(client, 0, c, 0, srqn)
    expect_eq(targets(), [qpn], 'targets')
    # The last one is killed: somebody has destroyed it, so it does not stay.
    c.refused(EBUSY, 'unxrcd', 0)
    last = stage.puppet('x1', domain=True)
    last('view', 0, 0, 0, qpn)
    c('unqp', 1)
    last.kill()
    expect_eq(targets(), [], 'targets')
    c.refused(EINVAL, 'view', 1, 0, 0, qpn)


def with_the_domain(stage, how):
    """Targets that nobody has open go with the domain, all of them."""
    count = 10 if ktap.DEBUG else 60
    maker, last = stage.puppet('x1', domain=True), stage.puppet('x1', domain=True)
    client = stage.puppet('x2')
    connect(client, 0, maker, 0)
    for slot in range(1, count):
        maker('tgt', slot, 0, 0)
        if slot % 2:
            maker('init', slot, ALL)
    (mine,) = last('tgt', 0, 0, 0)
    maker.kill()
    expect_eq(len(targets()), count + 1, 'targets')
    last('unqp', 0)
    expect(mine not in targets(), 'a destroyed target is shown')
    expect_eq(len(targets()), count, 'targets')
    {
        'close': lambda: last('unxrcd', 0),
        'exit': last.exit,
        'kill': last.kill,
        'device': lambda: last('close', 0),
    }[how]()
    expect_eq(targets(), [], 'targets')
    unanswered(client, 0, 1)


def shown(stage):
    """`rdma res show qp`: one line, with its state, however many have it open."""
    a, b, client = (stage.puppet('x1', domain=True) for _ in range(3))
    (srqn,) = b('srq', 0, 0, 0, 0, 16)

    def lines():
        return [
            (q['lqpn'], q['state'], q.get('rqpn', 0))
            for q in net.rdma('qp')
            if q['type'] == 'XRC_TGT'
        ]

    (qpn,) = a('tgt', 0, 0, 0)
    expect_eq(lines(), [(qpn, 'RESET', 0)], 'shown')
    a('unqp', 0)
    expect_eq(lines(), [], 'shown')
    qpn = connect(client, 0, a, 0)
    peer = client('state', 0)[1], lines()[0]
    expect_eq(peer[0], qpn, "the initiator's peer")
    expect_eq([l[:2] for l in lines()], [(qpn, 'RTR')], 'shown')
    for slot in range(1, 20):
        b('view', slot, 0, 0, qpn)
    expect_eq([l[:2] for l in lines()], [(qpn, 'RTR')], 'shown')
    a.kill()
    send(client, 0, 0xFFFFF0)
    b.events(1)
    ktap.wait_for('the error state', 5, lambda: [l[:2] for l in lines()] == [(qpn, 'ERR')])
    for slot in range(1, 20):
        expect_eq(b.state(slot), ERR, 'state')
        b('unqp', slot)
    expect_eq(lines(), [], 'shown')
    # With its domain: the file's is the same for all, a private one is another.
    b('xrcd', 1, 0, -1, os.O_CREAT)
    (one,), (two,), (other,) = b('tgt', 0, 0, 0), client('tgt', 1, 0, 0), b('tgt', 2, 0, 1)
    out = subprocess.run(
        ['rdma', '-dd', 'res', 'show', 'qp'], stdout=subprocess.PIPE, check=True, text=True
    ).stdout
    found = [re.search(r'lqpn (\d+) .*XRC_TGT.*xrcd (\d+)', q, re.S) for q in out.split('link ')]
    domain = {int(m[1]): m[2] for m in found if m}
    expect_eq(sorted(domain), sorted((one, two, other)), 'targets with a domain')
    expect(domain[one] == domain[two] != domain[other], f'domains: {domain}')


def modified_by_all(stage):
    """Each step by another process; each sees what the others did."""
    a, b, c, client = (stage.puppet('x1', domain=True) for _ in range(4))
    (srqn,) = c('srq', 0, 0, 0, 0, 16)
    for _ in range(2):
        (qpn,) = a('tgt', 0, 0, 0)
        for p in (b, c):
            p('view', 1, 0, 0, qpn)
        (ini,) = client('ini', 0, 0)
        b('init', 1, ALL)
        expect_eq([a.state(0), c.state(1)], [INIT, INIT], 'states')
        c('rtr', 1, ini, client.gid, 5)
        expect_eq([a('state', 0), b('state', 1)], [[RTR, ini, 5]] * 2, 'states')
        a('rts', 0, 14, 0, 0)
        b('timer', 1, 9)
        expect_eq([a('state', 0), c('state', 1)], [[RTS, ini, 9]] * 2, 'states')
        b.refused(EINVAL, 'init', 1, ALL)
        client('init', 0, 0)
        client('rtr', 0, qpn, a.gid, 1)
        client('rts', 0, *PATIENT.values(), 7)
        message(client, 0, c, 0, srqn)
        # Back to the start by one, up again by the others, for another peer.
        b('to', 1, ERR)
        expect_eq([a.state(0), c.state(1)], [ERR, ERR], 'states')
        c('to', 1, RESET)
        expect_eq([a.state(0), b.state(1)], [RESET, RESET], 'states')
        (ini,) = client('ini', 1, 0)
        a('init', 0, ALL)
        b('rtr', 1, ini, client.gid, 1)
        client('init', 1, 0)
        client('rtr', 1, qpn, a.gid, 1)
        client('rts', 1, *PATIENT.values(), 7)
        message(client, 1, c, 0, srqn)
        for p, slot in ((a, 0), (b, 1), (c, 1)):
            p('unqp', slot)
        for slot in (0, 1):
            client('unqp', slot)
        expect_eq(targets(), [], 'targets')


def modified_at_once(stage):
    """Several move it to RTR at the same time: one does."""
    procs = [stage.puppet('x1', domain=True) for _ in range(4)]
    for _ in range(3 if ktap.DEBUG else 5):
        (qpn,) = procs[0]('tgt', 0, 0, 0)
        for p in procs[1:]:
            p('view', 0, 0, 0, qpn)
        procs[0]('init', 0, ALL)
        for n, p in enumerate(procs):
            p.start('rtr', 0, 100 + n, p.gid, 1)
        won = []
        for n, p in enumerate(procs):
            try:
                p.finish()
                won.append(n)
            except OSError as e:
                expect_eq(e.errno, EINVAL, 'errno')
        expect_eq(len(won), 1, 'winners')
        for p in procs:
            expect_eq(p('state', 0)[:2], [RTR, 100 + won[0]], 'state')
        # And all destroy it at once.
        for p in procs:
            p.start('unqp', 0)
        for p in procs:
            p.finish()
        expect_eq(targets(), [], 'targets')


def opened_while_it_goes(stage):
    """Opens race with the destroy of the last handle: each has it, or is told that it is gone."""
    keeper, a, b = (stage.puppet('x1', domain=True) for _ in range(3))
    rounds = 10 if ktap.DEBUG else 25
    opened = n = 0
    # Whoever is told first comes first, mostly. Until both were, there are more rounds, and the
    # second is told ever later.
    while n < rounds or (n < 8 * rounds and opened in (0, n)):
        (qpn,) = a('tgt', 0, 0, 0)
        told = [lambda: a.start('unqp', 0), lambda: b.start('view', 0, 0, 0, qpn)]
        for start in told[::-1] if n % 2 else told:
            start()
            time.sleep(0.004 * max(0, n - rounds))
        n += 1
        a.finish()
        try:
            b.finish()
        except OSError as e:
            expect_eq(e.errno, EINVAL, 'errno')
        else:
            opened += 1
            expect_eq(b.state(0), RESET, 'state')
            b('unqp', 0)
        expect_eq(targets(), [], 'targets')
        keeper.refused(EINVAL, 'view', 0, 0, 0, qpn)
    ktap.note(f'opened in time: {opened} of {n}')
    expect(0 < opened < n, 'one was always the first')


def main():
    for place in ('wire', 'local'):
        for how in ('exit', 'kill', 'close'):
            add_case(
                f'creator-{how}-{place}',
                creator_goes,
                place,
                how,
                debug=(how, place) in (('kill', 'wire'), ('close', 'local')),
            )
    for how in ('close', 'exit', 'kill', 'device'):
        add_case(f'with-the-domain-{how}', with_the_domain, how, debug=how in ('kill', 'device'))
    for fn in (shown, destroyed_but_open, modified_by_all, modified_at_once, opened_while_it_goes):
        add_case(fn.__name__, fn)
    ktap.main(lambda: net.hosts_up())


main()
