#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=180 debug=long xrc
"""A target keeps the place of its source address in the GID table, whichever process
set it, even if this process has ended."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]

import ktap
import net
from ktap import expect, expect_eq
from puppet import ALL, RTR, add_case, gid_index

OLD, NEW, NEXT = '10.7.0.71', '10.7.0.72', '10.7.0.73'


def index(address):
    """Its index in the table of x1, or None."""
    got = net.sh(f'gid_index x1 {address}', check=False).strip()
    return int(got) if got else None


def add(address):
    """Gives x1's host one more address; its index."""
    net.sh(f'ip -n h1 addr add {address}/24 dev e1 && wait_gid x1 {address}')
    return index(address)


def remove(address):
    """Takes it away, from the table, too."""
    net.sh(f'ip -n h1 addr del {address}/24 dev e1')
    ktap.wait_for(f'no GID for {address}', 10, lambda: index(address) is None)


def is_free(place):
    """Does a new address get this place? The table frees places by and by."""
    try:
        return add(NEXT) == place
    finally:
        remove(NEXT)


def leaving_none(fn, *args):
    """Runs fn; none of the addresses stays, whatever happens."""
    try:
        fn(*args)
    finally:
        for address in (OLD, NEW, NEXT):
            net.sh(f'ip -n h1 addr del {address}/24 dev e1', check=False)


def kept(stage, by_view):
    """The address goes while the target lives: its place stays empty until the target goes."""
    keeper = stage.puppet('x1', domain=True)
    peer = stage.puppet('x2')
    place = add(OLD)
    maker = stage.puppet()
    maker('device', 0, 'x1', place)
    maker.domain(stage.path)
    (qpn,) = maker('tgt', 0, 0, 0)
    if by_view:
        # The first to see it is not the one that gives it the address.
        keeper('view', 0, 0, 0, qpn)
        keeper('init', 0, ALL)
    else:
        maker('init', 0, ALL)
    (dest,) = peer('ini', 0, 0)
    maker('rtr', 0, dest, peer.gid, 1)
    maker.kill()
    remove(OLD)
    expect(add(NEW) != place, 'another address has its place')
    if not by_view:
        keeper('view', 0, 0, 0, qpn)
    expect_eq(
        (keeper.state(0), keeper('source', 0)), (RTR, [place]), 'state and source of the target'
    )
    expect(not is_free(place), 'the place is free')
    keeper('unqp', 0)
    ktap.wait_for('a free place', 10, lambda: is_free(place))


def replaced(stage):
    """Another address later: the first one's place is free then."""
    keeper, peer = stage.puppet('x1', domain=True), stage.puppet('x2')
    place = add(OLD)
    maker = stage.puppet()
    maker('device', 0, 'x1', place)
    maker.domain(stage.path)
    (qpn,) = maker('tgt', 0, 0, 0)
    (dest,) = peer('ini', 0, 0)
    maker('init', 0, ALL)
    maker('rtr', 0, dest, peer.gid, 1)
    maker.kill()
    remove(OLD)
    keeper('view', 0, 0, 0, qpn)
    keeper('to', 0, 0)
    keeper('init', 0, ALL)
    keeper('rtr', 0, dest, peer.gid, 1)
    expect_eq(keeper('source', 0), [gid_index('x1')], 'source of the target')
    ktap.wait_for('a free place', 10, lambda: is_free(place))


def main():
    for name, fn, *args in (
        ('kept', kept, False),
        ('kept-by-a-view', kept, True),
        ('replaced', replaced),
    ):
        add_case(name, lambda stage, fn=fn, args=args: leaving_none(fn, stage, *args))
    ktap.main(lambda: net.hosts_up())


main()
