# SPDX-License-Identifier: GPL-2.0
"""Prints the table of medians and ratios, and writes the same as JSON."""
import os
import statistics

PLACES = {'wire': 'between namespaces', 'local': 'within the host'}


def unit(row):
    """The unit of a row's figures."""
    what = row[2]
    return 'µs' if 'latency' in what else 'MiB/s' if 'bandwidth' in what else '1/s'


def name(row):
    """A row's name for people."""
    place, mtu, what, size = row
    label = f'{size >> 20} MiB' if size >= 1 << 20 else f'{size >> 10} KiB' if size >= 1024 else f'{size} B'
    return f'{what} {label}, MTU {mtu}, {PLACES[place]}'


def _median(values):
    return statistics.median(values) if values else None


def ratio(row, mine, other):
    """How many times better mine is than other."""
    if not mine or not other:
        return None
    return other / mine if 'latency' in row[2] else mine / other


def _text(value):
    if value is None:
        return '–'
    return f'{value:,.0f}' if value >= 1000 else f'{value:.1f}'


def _behind(r):
    return ' ◀ behind' if r is not None and r < 1 else ''


def show(results, memory, names):
    """Print the table."""
    others = [n for n in names if n != 'xroce']
    width = 30
    group = None
    behind = []
    for row, values in results.items():
        if row[:2] != group:
            group = row[:2]
            print()
            print(f'{PLACES[row[0]]}, MTU {row[1]}')
            print(f'  {"":<{width}}' + ''.join(f'{n:>12}' for n in names) +
                  ''.join(f'{"/ " + n:>12}' for n in others))
        med = {n: _median(values[n]) for n in names}
        what = f'{name(row).split(",")[0]} [{unit(row)}]'
        line = f'  {what:<{width}}' + ''.join(f'{_text(med[n]):>12}' for n in names)
        for other in others:
            r = ratio(row, med.get('xroce'), med[other])
            line += f'{"–" if r is None else f"{r:.2f}×":>12}'
        r = ratio(row, med.get('xroce'), med.get('rxe'))
        print(line + _behind(r))
        if r is not None and r < 1:
            behind.append(name(row))
    print()
    print(f'  {"kernel memory per QP [KiB]":<{width}}' +
          ''.join(f'{_text(memory[n] / 1024 if memory.get(n) else None):>12}' for n in names))
    print()
    if 'rxe' in names and 'xroce' in names:
        if behind:
            print(f'xroce is behind rxe in {len(behind)} of {len(results)} rows:')
            for row in behind:
                print('  ' + row)
        else:
            print(f'xroce is ahead of rxe in all {len(results)} rows that both have.')


def as_json(results, memory, names, args, failed):
    """Everything that was measured."""
    rows = []
    for row, values in results.items():
        med = {n: _median(values[n]) for n in names}
        rows.append({'place': row[0], 'mtu': row[1], 'what': row[2], 'size': row[3], 'unit': unit(row),
                     'values': values, 'median': med,
                     'xroce_over_rxe': ratio(row, med.get('xroce'), med.get('rxe'))})
    return {'kernel': os.uname().release, 'cpus': os.cpu_count(), 'rounds': args.rounds,
            'seconds': args.seconds, 'rows': rows, 'memory_per_qp_bytes': memory, 'failed': failed}
