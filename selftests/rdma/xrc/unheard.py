#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=60 debug=long xrc
"""An event of a target that nobody has open makes a line in the kernel log, even if
another object logs a line at the same moment."""
import os
import re
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


def beside_another(stage):
    """A broken SRQ is said first; a request that a key does not admit ends a target in the same moment."""
    maker, owner, client = (stage.puppet('x1', domain=True) for _ in range(3))
    srqn, = owner('srq', 0, 0, 0, 0, 16)
    connect(client, 0, maker, 0, rnr=1)
    qpn = connect(client, 1, maker, 1)
    for ini in range(2):
        message(client, ini, owner, 0, srqn)
    maker.kill()
    owner('spoil', 0)
    fd = os.open('/dev/kmsg', os.O_RDONLY | os.O_NONBLOCK)
    try:
        os.lseek(fd, 0, os.SEEK_END)
        expect_eq(send(client, 0, srqn), RNR_RETRY_EXC_ERR, 'status')
        expect_eq(send(client, 1, srqn, op='write', key=0x7fffff00, address=0), REM_ACCESS_ERR, 'status')
        expect_eq(owner.events(1)[0], (SRQ_ERR, 0), 'event')
        said = []

        def both():
            said.extend(lines(fd, 'xroce'))
            return all(any(re.search(p, s) for s in said) for p in
                       (r'shared receive queue \d+ is corrupt', rf'XRC target {qpn:#08x} .* event AccessError'))
        ktap.wait_for('both lines', 5, both)
    finally:
        os.close(fd)


def main():
    add_case('beside_another', beside_another)
    ktap.main(lambda: net.hosts_up())


main()
