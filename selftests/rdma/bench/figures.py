#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=300
"""The measurements of events, of tags and of bad wires, in a short form: they run to their end and
print every figure. The values of the figures are not checked."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = os.path.join(HERE, '../../../tools/bench')
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib'), TOOLS]

import ktap
import net
from ktap import case, expect, expect_eq


def run(tool, *args):
    """The rows that the measurement wrote: (group, what, x) to contender to figures."""
    import figures  # of tools/bench, which is not everywhere

    with tempfile.TemporaryDirectory() as directory:
        path = directory + '/figures.json'
        done = subprocess.run(
            [os.path.join(TOOLS, tool), '--rounds', '1', *args, '--json', path],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        ktap.note(done.stdout)
        expect_eq(done.returncode, 0, 'exit status')
        return {
            (key.group, key.what, key.x): values for key, values in figures.load(path)[1].items()
        }


@case
def events():
    """Both devices, with all CPUs and with one; moderation is xroce's alone."""
    got = run('events', '--seconds', '0.3')
    cpus = os.cpu_count()
    # Besides those of the affinities.
    rows = {
        key: values for key, values in got.items() if key[0].partition(' ')[2] in ('CPU', 'CPUs')
    }
    expect_eq(
        {group for group, *_ in rows},
        {'1 CPU', f'{cpus} CPUs' if cpus > 1 else '1 CPU'},
        'numbers of CPUs',
    )
    for group in {group for group, *_ in rows}:
        # With several CPUs there is also a ping-pong with an end on each.
        apart = 0 if group == '1 CPU' else 1
        for who, count in (('xroce', 16 + apart), ('rxe', 8 + apart)):
            expect_eq(
                len([1 for key, values in rows.items() if key[0] == group and who in values]),
                count,
                f'rows of {who}, {group}',
            )
    for key, values in rows.items():
        expect_eq(
            sorted(values),
            ['xroce'] if 'moderated' in key[1] else ['rxe', 'xroce'],
            f'devices, {key}',
        )
        for who, figures_ in values.items():
            expect_eq(len(figures_), 1, f'{who}, {key}: rounds')
            # The clock of a short measurement may say that it took no CPU time.
            expect('CPU for' in key[1] or figures_[0] > 0, f'{who}, {key}: {figures_}')
    if cpus > 1:
        share = {
            what: values['xroce']
            for (_, what, _), values in got.items()
            if ': share of CPU' in what
        }
        names = ['a vector to a CPU'] + [f'all to CPU {cpu}' for cpu in range(cpus)]
        expect_eq(
            sorted(share),
            sorted(f'{n}: share of CPU {cpu}' for n in names for cpu in range(cpus)),
            'affinities',
        )
        for cpu in range(cpus):
            # What the vectors are told, they do; the last event of before may still be counted.
            (of_cpu,) = share[f'all to CPU {cpu}: share of CPU {cpu}']
            expect(of_cpu > 0.95, f'share of CPU {cpu}: {of_cpu}')


@case
def tags():
    """One message at a time and many, lists of all lengths, exact and masked."""
    got = run('tags', '--ms', '20')
    want = set()
    for burst in (1, 32):
        group = f'messages within the host, {burst} at a time'
        want.add((group, 'no tag', None))
        for n in (burst, 1000, 100000):
            for masks in {0, min(16, n), min(64, n)}:
                kind = f'{masks} mask{"s" if masks > 1 else ""}' if masks else 'exact'
                want |= {(group, kind, n), ('the match alone', kind, n)}
    expect_eq(set(got), want, 'rows')
    for key, values in got.items():
        expect(
            list(values) == ['xroce'] and len(values['xroce']) == 1 and values['xroce'][0] > 0,
            f'{key}: {values}',
        )


@case(long=True)
def wires():
    """A clean wire, and one that loses packets, on which small messages go as well."""
    lossy = 'loss 1 %, 1 ms'
    got = run('wires', '--quick', '--wires', 'clean;' + lossy)
    want = {
        (wire, f'{op} bandwidth, 64 KiB', None)
        for wire in ('clean', lossy)
        for op in ('write', 'read', 'send')
    }
    want |= {(lossy, 'send latency, 64 B', x) for x in (50, 99, 99.9)}
    expect_eq(set(got), want, 'rows')
    for key, values in got.items():
        expect_eq(sorted(values), ['tcp', 'xroce'], f'{key}')
        for who, figures_ in values.items():
            expect(len(figures_) == 1 and figures_[0] > 0, f'{who}, {key}: {figures_}')


if net.TYPE != 'xroce' or not os.path.isdir(TOOLS):
    ktap.skip_all('tools/bench measures xroce')
ktap.main()
