# SPDX-License-Identifier: GPL-2.0
"""The file of figures, which all measurements write: one format, which has a version.

A file is JSON: {"format", "version", "parts"}. A part is what one tool measured: {"machine",
"settings", "seconds" (that it took), "failed" (lines for people), "rows"}. A row is {"group",
"what", "unit", "axis", "x", "values"}: `values` has a list for each contender, with a figure
for each round. Rows that differ in nothing but x are a curve over the axis. Nothing in a file
says on which machine it was made, except for the kernel's release and the number of CPUs.
"""
import json
import math
import os
import statistics
from collections import namedtuple

FORMAT, VERSION = 'xroce-bench', 1

# Which of two figures is the better one: 1: the larger, -1: the smaller, 0: neither.
UNITS = {'MiB/s': 1, '1/s': 1, 'µs': -1, 'ns': -1, 's': -1, 'B': -1, 'KiB': -1, '': 0}
AXES = {'', 'size', 'QPs', 'percentile', 'tags', 'CPUs'}

# What a row is about; two files have the same row if this is equal.
Key = namedtuple('Key', 'part group what unit axis x')


class Bad(Exception):
    """A file that cannot be used, in one line."""


def size_text(size):
    """A size for people."""
    for shift, unit in ((20, 'MiB'), (10, 'KiB')):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return f'{size >> shift} {unit}'
    return f'{size:,} B'


def x_text(key):
    """Where a row is on its axis, for people."""
    if key.x is None:
        return ''
    if key.axis == 'size':
        return size_text(key.x)
    if key.axis == 'percentile':
        return 'median' if key.x == 50 else f'{key.x:g} %'
    return f'{key.x:,} {key.axis[:-1] if key.x == 1 else key.axis}'


def name(key):
    """What a row is called within its group."""
    return ', '.join(word for word in (key.what, x_text(key)) if word)


def number(value):
    """A figure for people."""
    if value is None:
        return '–'
    return (
        f'{value:,.0f}'
        if value >= 1000
        else f'{value:.1f}'
        if value >= 1 or not value
        else f'{value:.3g}'
    )


def median(values):
    """The median of the rounds; None if there is none."""
    return statistics.median(values) if values else None


def better(key, mine, other):
    """How many times better mine is than other; None if that cannot be said."""
    sign = UNITS[key.unit]
    if not mine or not other or not sign:
        return None
    return mine / other if sign > 0 else other / mine


def by_round(mine, other):
    """Pairs of figures that were measured in the same round, if both have all of them."""
    return list(zip(mine, other)) if len(mine) == len(other) else []


def machine():
    """What is written down of a machine."""
    return {'kernel': os.uname().release, 'cpus': os.cpu_count()}


def save(path, part, rows, seconds, settings=None, failed=()):
    """Write the rows (Key to contender to figures) of a part; other parts in the file stay."""
    parts = {}
    if os.path.exists(path) and os.path.getsize(path):
        parts = _parts(path)
    parts[part] = {
        'machine': machine(),
        'settings': settings or {},
        'seconds': round(seconds),
        'failed': list(failed),
        'rows': [
            {
                'group': key.group,
                'what': key.what,
                'unit': key.unit,
                'axis': key.axis,
                'x': key.x,
                'values': {who: got for who, got in values.items() if got},
            }
            for key, values in rows.items()
            if key.part == part and any(values.values())
        ],
    }
    with open(path + '.new', 'w', encoding='utf-8') as f:
        json.dump(
            {'format': FORMAT, 'version': VERSION, 'parts': parts}, f, indent=1, ensure_ascii=False
        )
        f.write('\n')
    os.replace(path + '.new', path)


def _parts(path):
    try:
        with open(path, encoding='utf-8') as f:
            whole = json.load(f)
    except OSError as why:
        raise Bad(f'{path}: {why.strerror}') from None
    except (ValueError, RecursionError):
        raise Bad(f'{path}: is no JSON') from None
    if not isinstance(whole, dict) or whole.get('format') != FORMAT:
        raise Bad(f'{path}: has no figures of tools/bench')
    if whole.get('version') != VERSION:
        raise Bad(f'{path}: version {whole.get("version")} of the format, and not {VERSION}')
    if not isinstance(whole.get('parts'), dict):
        raise Bad(f'{path}: has no parts')
    return whole['parts']


def _is_figure(value):
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and math.isfinite(value)
        and value >= 0
    )


def _row(part, row):
    """A row of a file: Key and values; raises if it is none."""
    words = [row[word] for word in ('group', 'what', 'unit', 'axis')]
    x, values = row['x'], row['values']
    if (
        not all(isinstance(word, str) for word in words)
        or row['unit'] not in UNITS
        or row['axis'] not in AXES
    ):
        raise ValueError
    if x is not None and not _is_figure(x) or not values:
        raise ValueError
    for got in values.values():
        if not isinstance(got, list) or not got or not all(map(_is_figure, got)):
            raise ValueError
    return Key(part, *words, x), values


def load(path):
    """A file's parts, and its rows as Key to contender to figures."""
    parts, rows = _parts(path), {}
    for part, content in parts.items():
        try:
            machine_, failed = content['machine'], content['failed']
            if (
                not isinstance(machine_, dict)
                or not isinstance(failed, list)
                or not _is_figure(content['seconds'])
            ):
                raise ValueError
            listed = list(content['rows'])
        except (KeyError, TypeError, ValueError):
            raise Bad(f'{path}: part {part} is damaged') from None
        for i, row in enumerate(listed):
            try:
                key, values = _row(part, row)
            except (KeyError, TypeError, ValueError, AttributeError):
                raise Bad(f'{path}: part {part}, row {i + 1} is damaged') from None
            if key in rows:
                raise Bad(f'{path}: part {part} has twice: {key.group}: {name(key)}')
            rows[key] = values
    if not rows:
        raise Bad(f'{path}: has no rows')
    return parts, rows
