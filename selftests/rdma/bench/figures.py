#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=300
"""The measurements of events and of tags, in a short form: they run to their end and
print every figure. The values of the figures are not checked."""
import json
import os
import subprocess
import sys
import tempfile
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]
TOOLS = os.path.join(HERE, '../../../tools/bench')

import ktap
import net
from ktap import case, expect, expect_eq


def run(tool, *args):
    """What the measurement wrote."""
    with tempfile.NamedTemporaryFile() as out:
        done = subprocess.run([os.path.join(TOOLS, tool), '--rounds', '1', *args, '--json', out.name],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        ktap.note(done.stdout)
        expect_eq(done.returncode, 0, 'exit status')
        return json.load(out)


def are_figures(values, what):
    """All are numbers that say something."""
    expect(all(isinstance(v, (int, float)) and v > 0 for v in values), f'{what}: {values}')


@case
def events():
    """Both devices, with all CPUs and with one; moderation is xroce's alone."""
    flow = ['stream', 'completions cpu', 'events cpu', 'per event']
    common = ['latency', 'latency apart', 'many', 'many cpu'] + flow
    want = {'xroce': sorted(common + [name + ' moderated' for name in flow]), 'rxe': sorted(common)}
    got = run('events', '--seconds', '0.3')
    cpus = os.cpu_count()
    expect_eq(sorted(got['cpus'], key=int), sorted({'1', str(cpus)}, key=int), 'numbers of CPUs')
    for number, devices in got['cpus'].items():
        expect_eq({name: sorted(rows) for name, rows in devices.items()}, want, f'rows, {number} CPUs')
        for name, rows in devices.items():
            for row, figure in rows.items():
                expect_eq(len(figure['values']), 1, f'{name}, {row}: rounds')
                # The clock of a short measurement may say that it took no CPU time.
                if 'cpu' not in row:
                    are_figures([figure['median'], *figure['values']], f'{name}, {row}')
    if cpus > 1:
        names = ['a vector to a CPU'] + [f'all to CPU {cpu}' for cpu in range(cpus)]
        expect_eq(sorted(got['affinity']), sorted(names), 'affinities')
        for cpu in range(cpus):
            # What the vectors are told, they do.
            expect_eq(got['affinity'][f'all to CPU {cpu}']['share'][str(cpu)], 1.0, f'share of CPU {cpu}')


@case
def tags():
    """One message at a time and many, lists of all lengths, exact and masked."""
    got = run('tags', '--ms', '20')
    want = []
    for burst in (1, 32):
        want.append((burst, 0, 0))
        for masks in (0, 16):
            want += [(burst, min(masks, n), n) for n in (burst, 1000, 100000)]
    lists = {(masks, n) for _, masks, n in want if n}
    expect_eq(sorted((r['burst'], r['masks'], r['tags']) for r in got['messages']), sorted(want), 'rows')
    expect_eq({(r['masks'], r['tags']) for r in got['matches']}, lists, 'matches')
    for row in got['messages']:
        are_figures([row['ns'], row['per_second'], *row['values']], row)
    for row in got['matches']:
        are_figures([row['ns'], *row['values']], row)
    expect_eq(sorted(got['exact_longest_over_shortest']), ['1', '32'], 'comparisons')


if net.TYPE != 'xroce' or not os.path.isdir(TOOLS):
    ktap.skip_all('tools/bench measures xroce')
ktap.main()
