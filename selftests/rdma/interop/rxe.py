#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=150
"""xroce on one host, the kernel's rxe on the other: RC in both directions, over
IPv4 and IPv6, with --long also when packets get lost."""
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../lib'))

import ktap
import net
import traffic


def main():
    if net.TYPE != 'xroce':
        ktap.skip_all('rxe against rxe is not ours to test')
    work = [('opcodes', traffic.every_opcode), ('atomics', traffic.atomics),
            ('inline', traffic.inline), ('order', traffic.in_order),
            ('fence', traffic.read_after_write), ('reads', traffic.many_reads)]
    ways = [('to-rxe', ('x1', 'x2')), ('from-rxe', ('x2', 'x1'))]
    for version in (4, 6):
        for way, (a, b) in ways:
            for name, fn in work:
                if version == 6 and name != 'opcodes':
                    continue

                def one(fn=fn, a=a, b=b, version=version):
                    fn(traffic.connection('rc', a, b, version), False)
                ktap.add(f'ipv{version}-{way}-{name}', one)
            if version == 4:
                ktap.add(f'{way}-uc', lambda a=a, b=b: traffic.unreliable(
                    traffic.connection('uc', a, b, 4), False))
    for way, (a, b) in ways:
        # KNOWN FAILURES, causes not found: RETRY_EXC towards rxe, and atomics of
        # rxe that complete without their result.
        ktap.add(f'{way}-lossy', lambda a=a, b=b: lossy(a, b), long=True)

    def setup():
        net.sh('modprobe rdma_rxe')
        net.hosts_up(1500, 'xroce', 'rxe')
    # No clean-up here: rxe's device waits for the programs that have it open, and this is one.
    ktap.main(setup)


def lossy(a, b):
    """One per cent of the packets lost in each direction, and some in disorder."""
    for host, dev in (('h1', 'e1'), ('h2', 'e2')):
        net.sh(f'plain_link {host} {dev}; netem {host} {dev} loss 1% duplicate 1% delay 1ms reorder 2%')
    try:
        traffic.exactly_once(traffic.connection('rc', a, b, 4), 60)
    finally:
        for host, dev in (('h1', 'e1'), ('h2', 'e2')):
            net.sh(f'in_host {host} tc qdisc del dev {dev} root')


main()
