# SPDX-License-Identifier: GPL-2.0
"""Two files of figures side by side."""
import math
from collections import namedtuple

import figures

# A median has changed if it did so by more than the rounds of both files differ among themselves,
# and by more than this, however well they agree. (Of figures with normal noise that did not change,
# one in eight is marked if there were two rounds, and one in eighty if there were three. That the
# rounds do not overlap, which is less, would mark one in eleven of three rounds.)
NOISE = 0.05

# One figure of both: low and high are the least and the largest ratio that two rounds give.
Line = namedtuple('Line', 'key who a b ratio low high mark')


def with_quotients(values):
    """The figures of a row, and xroce's as multiples of the others'. Those are of the same round,
    and the speed of the machine is not in them."""
    out = dict(values)
    for other in values:
        pairs = figures.by_round(values.get('xroce', []), values[other])
        if other != 'xroce' and pairs and all(theirs for _, theirs in pairs):
            out[f'xroce/{other}'] = [mine / theirs for mine, theirs in pairs]
    return out


def line(key, who, a, b):
    """Compare the rounds of one figure."""
    first, second = figures.median(a), figures.median(b)
    if not min(a) or not first:
        return Line(key, who, first, second, None, None, None, '')
    ratio, low, high = second / first, min(b) / max(a), max(b) / min(a)
    mark = ''
    times = max(ratio, 1 / ratio) if ratio else math.inf
    spread = max(a) / min(a) * max(b) / min(b) if min(b) else 1
    if len(a) > 1 and len(b) > 1 and times > max(spread, 1 + NOISE):
        sign = figures.UNITS[key.unit] * (1 if ratio > 1 else -1)
        mark = {1: 'better', -1: 'WORSE', 0: 'changed'}[sign]
    return Line(key, who, first, second, ratio, low, high, mark)


def compare(a, b):
    """Rows of two files: the lines, and the keys that only one of them has."""
    lines = []
    for key in a:
        if key in b:
            first, second = with_quotients(a[key]), with_quotients(b[key])
            lines += [line(key, who, first[who], second[who]) for who in first if who in second]
    return lines, [k for k in a if k not in b], [k for k in b if k not in a]


def _ratio(one):
    if one.ratio is None:
        return f'{"–":>9}{"":>14}'
    return f'{one.ratio:>8.2f}×{f"{one.low:.2f}–{one.high:.2f}":>14}'


def show(lines, only_a, only_b):
    """The comparison as lines of text."""
    group = row = None
    for one in lines:
        key = one.key
        if (key.part, key.group) != group:
            group = key.part, key.group
            yield ''
            yield f'{key.part}: {key.group}'
            yield f'  {"":<60}{"A":>11}{"B":>11}{"B/A":>9}{"spread":>14}'
        label = f'{figures.name(key)} [{key.unit}]' if key.unit else figures.name(key)
        shown = '' if key == row else label
        row = key
        digits = (f'{v:.2f}' if '/' in one.who else figures.number(v) for v in (one.a, one.b))
        text = f'  {shown:<46}{one.who:<14}' + ''.join(f'{d:>11}' for d in digits) + _ratio(one)
        yield (text + ('  ' + one.mark if one.mark else '')).rstrip()
    yield ''
    for which, keys in (('A', only_a), ('B', only_b)):
        if keys:
            first = f'{keys[0].group}: {figures.name(keys[0])}'
            yield f'{len(keys)} rows are in {which} only; the first: {first}'
    marks = [one.mark for one in lines]
    told = (
        ', '.join(f'{marks.count(m)} {m}' for m in ('better', 'WORSE', 'changed') if m in marks)
        or 'none changed'
    )
    yield (
        f'{len(lines)} figures: {told}; the others differ by no more than their rounds do, or by '
        f'less than {NOISE:.0%}.'
    )


def has_single_rounds(rows):
    """Is there a figure that was measured once, of which the spread is not known?"""
    return any(len(got) < 2 for values in rows.values() for got in values.values())
