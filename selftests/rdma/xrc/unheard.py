#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=60 debug=long xrc
"""An event of a target that nobody has open makes a line in the kernel log, even if
another object logs a line at the same moment, and is counted for the device and the domain. So
are the SRQs of a domain."""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]

import ktap
import net
from ktap import expect_eq
from puppet import REM_ACCESS_ERR, RNR_RETRY_EXC_ERR, SRQ_ERR, add_case, connect, message, send


def lines(fd, pattern):
    """What the kernel has said since the last call and matches."""
    got = []
    while True:
        try:
            got.append(os.read(fd, 8192).decode(errors='replace'))
        except BlockingIOError:
            return [line for line in got if re.search(pattern, line)]


def counted(qpn, name):
    """What the domain of a target has counted, as `rdma res` shows it at the target."""
    out = subprocess.run(
        ['rdma', '-dd', 'res', 'show', 'qp', 'lqpn', str(qpn)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    return int(re.search(rf'{name} (\d+)', out)[1])


def unheard(qpn):
    return counted(qpn, 'unheard')


def beside_another(stage):
    """A broken SRQ is said first; a request that a key does not admit ends a target in the same
    moment."""
    maker, owner, client = (stage.puppet('x1', domain=True) for _ in range(3))
    (srqn,) = owner('srq', 0, 0, 0, 0, 16)
    other = connect(client, 0, maker, 0, rnr=1)
    qpn = connect(client, 1, maker, 1)
    for ini in range(2):
        message(client, ini, owner, 0, srqn)
    maker.kill()
    before = net.counters('x1')['xrc_unheard_events']
    expect_eq(unheard(qpn), 0, 'events of the domain without a recipient')
    owner('spoil', 0)
    fd = os.open('/dev/kmsg', os.O_RDONLY | os.O_NONBLOCK)
    try:
        os.lseek(fd, 0, os.SEEK_END)
        expect_eq(send(client, 0, srqn), RNR_RETRY_EXC_ERR, 'status')
        expect_eq(
            send(client, 1, srqn, op='write', key=0x7FFFFF00, address=0), REM_ACCESS_ERR, 'status'
        )
        expect_eq(owner.events(1)[0], (SRQ_ERR, 0), 'event')
        said = []

        def both():
            said.extend(lines(fd, 'xroce'))
            return all(
                any(re.search(p, s) for s in said)
                for p in (
                    r'shared receive queue \d+ is corrupt',
                    rf'XRC target {qpn:#08x} .* event AccessError',
                )
            )

        ktap.wait_for('both lines', 5, both)
        # The error, and that no receive is taken any more: of the domain, so each of its targets
        # shows it.
        ktap.wait_for('the count', 5, lambda: unheard(qpn) == 2)
        expect_eq(unheard(other), 2, 'events of the domain without a recipient')
        expect_eq(
            net.counters('x1')['xrc_unheard_events'] - before,
            2,
            'events of the device without a recipient',
        )
    finally:
        os.close(fd)


def srqs_of_a_domain(stage):
    """Each SRQ counts in the domain that it was created in, until its owner destroys it or is gone,
    or its creation fails."""
    owner, member = (stage.puppet('x1', domain=True) for _ in range(2))
    client = stage.puppet('x1', domain=True)
    qpn = connect(client, 0, owner, 0)
    expect_eq(counted(qpn, 'srqs'), 0, 'SRQs of a new domain')
    owner('srq', 0, 0, 0, 0, 16)
    member('srq', 0, 0, 0, 0, 16)
    member('srq', 1, 0, 0, 0, 16)
    expect_eq(counted(qpn, 'srqs'), 3, 'SRQs of two processes')
    member('unsrq', 1)
    expect_eq(counted(qpn, 'srqs'), 2, 'SRQs after one was destroyed')
    member.kill()
    expect_eq(counted(qpn, 'srqs'), 1, 'SRQs after their owner was killed')


def main():
    add_case('beside_another', beside_another)
    add_case('srqs_of_a_domain', srqs_of_a_domain)
    ktap.main(lambda: net.hosts_up())


main()
