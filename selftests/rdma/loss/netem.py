#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=400 debug
"""A network that loses, duplicates and reorders packets: no data is lost, duplicated,
reordered or changed, on RC and XRC, over IPv4 and IPv6.

With segmentation offload of the link turned off, netem sees single packets; with it
turned on, netem sees whole bursts. Both are tested."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]

import ktap
import net
import traffic
import verbs

ENDS = (('h1', 'e1'), ('h2', 'e2'))
WIRES = {
    'loss': 'loss 1%',
    'duplicates': 'duplicate 1%',
    'disorder': 'delay 2ms reorder 75% 50%',
    'all': 'loss 1% duplicate 1% delay 1ms reorder 2%',
}
CASES = tuple(WIRES)
# Of the 300 packets that a debug kernel is given, 1 % would be none in 20 runs once.
WIRES['much loss'] = 'loss 5%'


def wire(arguments, segmentation):
    """Give both ends of the wire a discipline."""
    on = 'on' if segmentation else 'off'
    for host, dev in ENDS:
        features = ('tso', on, 'gso', on, 'gro', on)
        net.run_in(host, 'ethtool', '-K', dev, *features, check=False)
        discipline = ('root', 'netem', 'limit', '100000', *arguments.split())
        net.run_in(host, 'tc', 'qdisc', 'replace', 'dev', dev, *discipline)


def one(kind, version, what, segmentation):
    """Traffic over such a wire, and afterwards over a good one."""
    # A new connection each time: the retry counts are its own.
    conn = traffic.connect(kind, 'x1', 'x2', version, timeout=verbs.LOSSY)
    messages = 20 if ktap.DEBUG else 60
    wire(WIRES[what], segmentation)
    try:
        traffic.exactly_once(conn, messages)
    finally:
        for host, dev in ENDS:
            net.run_in(host, 'tc', 'qdisc', 'del', 'dev', dev, 'root')
    traffic.exactly_once(conn, 5)
    conn.close()


def lossless(kind):
    """The counters say that the wire was bad: the test has tested something."""
    before = net.counters('x1')
    one(kind, 4, 'much loss', False)
    after = net.counters('x1')
    moved = [n for n in after if after[n] > before.get(n, 0)]
    ktap.note('counters that moved: ' + ' '.join(sorted(moved)))
    if net.TYPE == 'xroce':
        ktap.expect(any('retr' in n or 'seq' in n for n in moved), 'no retransmission was counted')


def main():
    kinds = ('rc',) if net.TYPE == 'rxe' else ('rc', 'xrc')
    for kind in kinds:
        ktap.add(f'{kind}-counted', lambda kind=kind: lossless(kind), debug=kind == 'rc')
        for version in (4, 6):
            for n, what in enumerate(CASES):
                for segmentation in (False, True):
                    # IPv6 differs in the headers only.
                    if version == 6 and (what != 'all' or segmentation):
                        continue
                    name = f'{kind}-ipv{version}-{what}-gso-{"on" if segmentation else "off"}'
                    ktap.add(
                        name,
                        lambda k=kind, v=version, w=what, s=segmentation: one(k, v, w, s),
                        debug=what == 'all' and version == 4 and segmentation == (kind == 'rc'),
                        # XRC differs in little: each wire with one of the two will do.
                        long=kind == 'xrc' and version == 4 and segmentation == bool(n % 2),
                    )
    ktap.main(lambda: net.hosts_up(1500))


main()
