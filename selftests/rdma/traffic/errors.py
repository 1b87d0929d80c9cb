#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=200 debug
"""Errors between two ends (lib/failures.py), which must not disturb anything else. RC
and XRC, on the wire and within one device."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]

import failures
import ktap
import net
from failures import OPS


def main():
    for place in ('wire', 'local'):
        for kind in ('rc', 'xrc'):
            if kind == 'xrc' and net.TYPE == 'rxe':
                continue

            # The debug kernel sees each kind once: it is slow.
            slow = (place, kind) not in (('wire', 'xrc'), ('local', 'rc'))

            def case(name, fn, *args, debug=True, slow=slow):
                debug = debug and not slow
                ktap.add(
                    f'{place}-{kind}-{name}', lambda p=place, k=kind: fn(k, p, *args), debug=debug
                )

            for op in OPS:
                hows = ('key', 'no-such-key', 'pd', 'flags', 'beyond', 'before', 'wrap', 'gone')
                for how in hows:
                    case(
                        f'{op}-{how}', failures.remote, op, how, debug=how in ('key', 'pd', 'wrap')
                    )
            case('write-long', failures.remote, 'write', 'long')
            for op in ('write', 'read', 'atomic'):
                case(f'qp-access-{op}', failures.qp_access, op)
            for how in ('key', 'pd', 'beyond', 'gone'):
                case(f'lkey-{how}', failures.local_key, how)
            for how in ('key', 'pd', 'flags', 'gone'):
                case(f'receive-lkey-{how}', failures.bad_receive, how)
            for fn in (
                failures.misaligned,
                failures.zero_length,
                failures.read_into_readonly,
                failures.too_long_for_receive,
                failures.rnr_then_receive,
                failures.rnr_exceeded,
                failures.rnr_imm,
                failures.retry_exceeded,
                failures.destroyed_peer,
                failures.flush,
                failures.reset_and_again,
                failures.sqd,
                failures.cq_overflow,
                failures.others_go_on,
            ):
                case(fn.__name__, fn)
            if net.TYPE != 'rxe':
                case('sqd_quietly', failures.sqd_quietly)
                case('receives_overflow', failures.receives_overflow)
            if kind == 'rc':
                case('fewer_reads_in_sqd', failures.fewer_reads_in_sqd)
        if net.TYPE != 'rxe':
            for kind in ('uc', 'ud'):
                for fn in (failures.cq_overflow, failures.receives_overflow):
                    ktap.add(
                        f'{place}-{kind}-{fn.__name__}',
                        lambda p=place, k=kind, f=fn: f(k, p),
                        debug=place == 'wire',
                    )
            for how in ('unknown', 'foreign', 'basic'):
                ktap.add(
                    f'{place}-xrc-srqn-{how}', lambda p=place, h=how: failures.xrc_number(p, h)
                )
            ktap.add(f'{place}-xrc-srqn-write', lambda p=place: failures.xrc_number_write(p))
            ktap.add(f'{place}-xrc-pd-of-srq', lambda p=place: failures.xrc_pd_of_srq(p))
    ktap.main(lambda: net.hosts_up())


main()
