#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=240 debug=long
"""xroce on one host, the kernel's rxe on the other: RC in both directions, over IPv4
and IPv6, also on a network that loses, duplicates and reorders packets.

Some errors occur when rxe is alone on a lossy network, without xroce (TYPE=rxe
selftests/run loss). They are not tested with xroce (lines of drivers/infiniband/sw/rxe
in Linux 7.2):

- Reordering can put an old ACK between the first and the second packet of a READ
  response. check_psn() accepts it because of NAKs (rxe_comp.c:205), and it resets
  comp.opcode (rxe_comp.c:726). The second packet then counts as out of order
  (rxe_comp.c:230), and the READ completes "successfully" without its data, with a WARN
  (rxe_comp.c:827). Therefore rxe's READs use a connection without SENDs and WRITEs, the
  requests that are answered with ACKs.
- A late copy of a READ request whose memory has been deregistered ends rxe's responder
  (rxe_resp.c:959). Therefore its memory outlives the traffic.

xroce avoids two more errors. rxe takes an ACK with the number of an atomic or a READ
for its response (rxe_comp.c:302), so xroce's responder sends no such ACK. Once rxe has
repeated a part of a READ, it repeats nothing before that part (rxe_resp.c:1390, 1410),
so xroce's requester always requests all the rest."""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]

import ktap
import net
import traffic
import verbs


def main():
    if net.TYPE != 'xroce':
        ktap.skip_all('rxe against rxe is not ours to test')
    work = [
        ('opcodes', traffic.every_opcode),
        ('atomics', traffic.atomics),
        ('inline', traffic.inline),
        ('order', traffic.in_order),
        ('fence', traffic.read_after_write),
        ('reads', traffic.many_reads),
    ]
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
                ktap.add(
                    f'{way}-uc',
                    lambda a=a, b=b: traffic.unreliable(traffic.connection('uc', a, b, 4), False),
                )
    for version in (4, 6):
        ktap.add(
            f'ipv{version}-to-rxe-lossy',
            lambda v=version: lossy(
                'x1', 'x2', v, lambda c: traffic.exactly_once(c, 120, close_early=False)
            ),
        )
        ktap.add(
            f'ipv{version}-from-rxe-lossy',
            lambda v=version: lossy(
                'x2', 'x1', v, lambda c: traffic.exactly_once(c, 160, read_back=False)
            ),
        )
        ktap.add(
            f'ipv{version}-from-rxe-lossy-reads',
            lambda v=version: lossy(
                'x2', 'x1', v, lambda c: [traffic.many_reads(c, False) for _ in range(4)]
            ),
        )

    def setup():
        net.sh('modprobe rdma_rxe')
        net.hosts_up(1500, 'xroce', 'rxe')

    # No clean-up here: rxe's device waits for the programs that have it open, and this is one.
    ktap.main(setup)


ENDS = (('h1', 'e1'), ('h2', 'e2'))


def lossy(a, b, version, fn):
    """A connection of its own over a wire that loses, repeats and reorders packets."""
    conn = traffic.connect('rc', a, b, version, timeout=verbs.LOSSY)
    for host, dev in ENDS:
        net.sh(
            f'plain_link {host} {dev}; netem {host} {dev} loss 3% duplicate 1% delay 1ms reorder 2%'
        )
    try:
        fn(conn)
        lost = sum(
            q['drops']
            for host, dev in ENDS
            for q in json.loads(net.sh(f'tc -j -s qdisc show dev {dev}', host=host))
        )
    finally:
        for host, dev in ENDS:
            net.sh(f'in_host {host} tc qdisc del dev {dev} root')
    ktap.expect(lost > 0, 'the wire lost nothing')
    conn.close()


main()
