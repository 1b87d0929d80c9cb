#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=200
"""Errors between xroce and the kernel's rxe, in both directions: a request that one
side refuses makes the other side report the right error, and both ends are in the right
state (lib/failures.py).

In these points rxe differs from IBTA and xroce (drivers/infiniband/sw/rxe in Linux
7.2), so they are not tested on it:

- A refused WRITE with immediate ends in the receive, not in an event
  (get_rkey_violation_state(), rxe_resp.c).
- A receive with a wrong key, and one that is too short, end with IBV_WC_LOC_QP_OP_ERR.
  A sender of a message that is too long gets an operation error (copy_data(), rxe_mr.c,
  returns -EINVAL for either case, and send_data_in(), rxe_resp.c, treats this as a
  malformed receive).
- Its plug-in in rdma-core posts no atomic operation whose address is not aligned."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]

import failures
import ktap
import net

WAYS = {'to-rxe': 'wire', 'from-rxe': 'back'}


def main():
    if net.TYPE != 'xroce':
        ktap.skip_all('rxe against rxe is not ours to test')
    for way, place in WAYS.items():

        def case(name, fn, *args, place=place, way=way):
            ktap.add(f'{way}-{name}', lambda: fn('rc', place, *args))

        for op in failures.OPS if way == 'from-rxe' else ('write', 'read', 'atomic'):
            for how in ('key', 'no-such-key', 'pd', 'flags', 'beyond', 'gone'):
                case(f'{op}-{how}', failures.remote, op, how)
        for op in ('write', 'read', 'atomic'):
            case(f'qp-access-{op}', failures.qp_access, op)
        for fn in (
            failures.zero_length,
            failures.rnr_then_receive,
            failures.rnr_exceeded,
            failures.rnr_imm,
            failures.retry_exceeded,
            failures.destroyed_peer,
            failures.reset_and_again,
            failures.others_go_on,
        ):
            case(fn.__name__, fn)
        if way == 'to-rxe':
            case('misaligned', failures.misaligned)
        else:
            for how in ('key', 'pd', 'flags', 'gone'):
                case(f'receive-lkey-{how}', failures.bad_receive, how)
            case('too_long_for_receive', failures.too_long_for_receive)

    def setup():
        net.sh('modprobe rdma_rxe')
        net.hosts_up(1500, 'xroce', 'rxe')

    # No clean-up here: rxe's device waits for the programs that have it open, and this is one.
    ktap.main(setup)


main()
