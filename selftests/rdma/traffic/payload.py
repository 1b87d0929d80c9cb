#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=400 debug
"""Every opcode on RC and XRC, at lengths around the packet borders, with
checked payloads: on the wire between two namespaces (IPv4 and IPv6), from a
device to itself, and between two devices of one namespace."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]

import huge
import ktap
import net
import verbs
from traffic import (
    atomics,
    connection,
    elements,
    every_opcode,
    in_order,
    inline,
    many_reads,
    read_after_write,
    unreliable,
)
from verbs import WR

# Of the path, unless a case says another one.
MTU = 3


def main():
    wire, here, pair = ('x1', 'x2'), ('x1', 'x1'), ('y1', 'y2')
    places = [('wire4', wire, 4), ('wire6', wire, 6), ('local', here, 4), ('pair', pair, 4)]
    work = [
        ('opcodes', every_opcode),
        ('atomics', atomics),
        ('inline', inline),
        ('sges', elements),
        ('order', in_order),
        ('fence', read_after_write),
        ('reads', many_reads),
    ]
    for place, (a, b), version in places:
        for kind in ('rc', 'xrc'):
            for name, fn in work:
                # IPv6 differs in the headers only.
                if version == 6 and name in ('sges', 'order', 'fence', 'reads'):
                    continue
                big = place in ('wire4', 'local')
                if kind == 'xrc' and net.TYPE == 'rxe' or place == 'pair' and net.TYPE == 'rxe':
                    continue

                def one(fn=fn, kind=kind, a=a, b=b, version=version, big=big):
                    fn(connection(kind, a, b, version, MTU), big)

                # The debug kernel is slow: it sees all of it once with each kind.
                whole = (place, kind) in (('wire4', 'xrc'), ('local', 'rc'))
                part = (place, kind) in (('wire6', 'rc'), ('pair', 'xrc')) and name == 'opcodes'
                ktap.add(f'{place}-{kind}-{name}', one, debug=whole or part)
    for mtu, size in verbs.MTU_BYTES.items():
        if mtu != MTU:
            ktap.add(
                f'wire4-mtu{size}',
                lambda mtu=mtu: every_opcode(connection('rc', *wire, 4, mtu), False),
                debug=mtu == 5,
            )
    ktap.add('wire4-uc', lambda: unreliable(connection('uc', *wire, 4), False))
    ktap.add('local-uc', lambda: unreliable(connection('uc', *here, 4), False))

    def longest(place, kind, opcode):
        if net.TYPE == 'rxe' or ktap.DEBUG:
            # rxe's messages end at 8 MiB; under KASAN 2 GiB of pages are too much for a guest's
            # memory.
            return
        name = opcode.name.removeprefix('IBV_WR_').removeprefix('RDMA_').lower()
        a, b = wire if place == 'wire4' else here
        ktap.add(
            f'{place}-{kind}-2GiB-{name}',
            lambda: huge.message(connection(kind, a, b, 4), opcode),
            long=True,
        )

    # These take up to a minute in an emulated guest, and three if the machine is busy.
    for place, kind, opcode in (
        ('local', 'rc', WR.IBV_WR_RDMA_WRITE),
        ('local', 'rc', WR.IBV_WR_RDMA_READ),
        ('wire4', 'rc', WR.IBV_WR_RDMA_WRITE),
        ('wire4', 'xrc', WR.IBV_WR_SEND),
    ):
        longest(place, kind, opcode)

    def setup():
        net.hosts_up(4300)
        if net.TYPE != 'rxe':
            net.pair_up()

    ktap.main(setup)


main()
