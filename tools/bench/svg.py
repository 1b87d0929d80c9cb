# SPDX-License-Identifier: GPL-2.0
"""Plots as inline SVG. Colours are classes, which the page defines for light and for dark."""
import math
from html import escape

import figures

WIDTH, HEIGHT = 420, 270
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 34, 42
# Characters of the small text are about that wide.
CHARACTER = 5.6


def decades(low, high):
    """Ticks of a logarithmic axis: 1, 2 and 5 of each decade, or 1 alone if there are many."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first < 3 else (1,)
    ticks = [step * 10.0**n for n in range(first, last + 1) for step in steps]
    below, above = [t for t in ticks if t <= low * 1.0001], [t for t in ticks if t >= high * 0.9999]
    low, high = (below or ticks)[-1 if below else 0], (above or ticks)[0 if above else -1]
    if low == high:
        low, high = low / 10, high * 10
    return [t for t in ticks if low <= t <= high] if low in ticks and high in ticks else [low, high]


def scale(low, high, start, end):
    """The place of a value on a logarithmic axis from start to end."""
    span = math.log(high / low)
    return lambda value: start + (end - start) * math.log(max(value, low) / low) / span


def tick_text(value):
    """A value at an axis."""
    for limit, unit in ((1e9, 'G'), (1e6, 'M'), (1e3, 'k')):
        if value >= limit:
            return f'{value / limit:g}{unit}'
    return f'{value:g}'


def _text(x, y, text, kind='', anchor='start'):
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def _line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def svg(width, height, title, parts):
    """A picture; those who cannot see it get the title."""
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title, quote=True)}">'
        f'{"".join(parts)}</svg>'
    )


def _curve(who, points, where_x, where_y, unit, label):
    """The medians as a line, the rounds from least to largest as a bar through each of them."""
    out, path = [], []
    for x, values in points:
        at, y = where_x(x), where_y(figures.median(values))
        path.append(f'{at:.1f},{y:.1f}')
        if len(values) > 1:
            out.append(_line(at, where_y(min(values)), at, where_y(max(values)), f's-{who} spread'))
        text = f'{who}, {label(x)}: {figures.number(figures.median(values))} {unit}'
        if len(values) > 1:
            text += f' ({figures.number(min(values))} to {figures.number(max(values))})'
        out.append(
            f'<circle cx="{at:.1f}" cy="{y:.1f}" r="3.2" class="s-{who}">'
            f'<title>{escape(text)}</title></circle>'
        )
    return [f'<polyline points="{" ".join(path)}" class="s-{who}"/>'] + out


def chart(title, unit, curves, label, even=False):
    """Curves over an axis: who to [(x, figures)]. `label` says an x; `even` places them at equal
    distances, otherwise the axis is logarithmic. The other axis is always logarithmic. None if
    there is nothing to show.
    """
    curves = {
        who: [(x, [v for v in values if v > 0]) for x, values in sorted(points)]
        for who, points in curves.items()
    }
    curves = {
        who: [(x, values) for x, values in points if values] for who, points in curves.items()
    }
    curves = {who: points for who, points in curves.items() if points}
    every = [v for points in curves.values() for _, values in points for v in values]
    places = sorted({x for points in curves.values() for x, _ in points})
    if not every or not even and places[0] <= 0:
        return None
    ticks = decades(min(every), max(every))
    where_y = scale(ticks[0], ticks[-1], HEIGHT - BOTTOM, TOP)
    left, right = LEFT + 12, WIDTH - RIGHT - 12
    if len(places) == 1:
        where_x = lambda _: (left + right) / 2  # noqa: E731
    elif even:
        where_x = lambda x: left + (right - left) * places.index(x) / (
            len(places) - 1
        )  # noqa: E731
    else:
        where_x = scale(places[0], places[-1], left, right)
    out = [_text(LEFT - 50, 14, title, 'title'), _text(LEFT - 50, 27, unit, 'small')]
    for tick in ticks:
        out += [
            _line(LEFT, where_y(tick), WIDTH - RIGHT, where_y(tick), 'grid'),
            _text(LEFT - 6, where_y(tick) + 3.5, tick_text(tick), 'small', 'end'),
        ]
    free = 0
    for x in places:
        half = len(label(x)) * CHARACTER / 2
        if where_x(x) - half >= free:
            out.append(_text(where_x(x), HEIGHT - BOTTOM + 15, label(x), 'small', 'middle'))
            free = where_x(x) + half + 4
    at = LEFT
    for who, points in curves.items():
        out += _curve(who, points, where_x, where_y, unit, label)
        out += [
            f'<circle cx="{at + 4}" cy="{HEIGHT - 10}" r="3.2" class="s-{who}"/>',
            _text(at + 11, HEIGHT - 6.5, who, 'small'),
        ]
        at += 26 + len(who) * CHARACTER
    return svg(WIDTH, HEIGHT, title, out)


def ratios(title, rows):
    """Bars to both sides of 1: rows of (name, {other: ratio}), a bar for the first and a dot for
    the second."""
    width, row, top, left, right = 700, 20, 40, 250, 640
    every = [r for _, by in rows for r in by.values() if r] + [0.5, 2]
    ticks = decades(min(every), max(every))
    where = scale(ticks[0], ticks[-1], left, right)
    height = top + row * len(rows) + 8
    out = [_text(6, 14, title, 'title')]
    for tick in ticks:
        out += [
            _line(where(tick), top - 6, where(tick), height - 6, 'one' if tick == 1 else 'grid'),
            _text(where(tick), top - 10, f'{tick:g}×', 'small', 'middle'),
        ]
    for i, (name, by) in enumerate(rows):
        y = top + row * i + row / 2
        out.append(_text(left - 8, y + 4, name, 'small', 'end'))
        for other, ratio in by.items():
            text = f'<title>{escape(f"{name}: {ratio:.2f} × {other}")}</title>'
            if other == 'rxe':
                start, end = sorted((where(1), where(ratio)))
                out += [
                    f'<rect x="{start:.1f}" y="{y - 6:.1f}" '
                    f'width="{max(end - start, 1):.1f}" height="12" '
                    f'class="{"ahead" if ratio >= 1 else "behind"}">{text}</rect>',
                    _text(right + 6, y + 4, f'{ratio:.2f}×', 'small'),
                ]
            else:
                out.append(
                    f'<circle cx="{where(ratio):.1f}" cy="{y:.1f}" r="4" class="s-{escape(other)}">'
                    f'{text}</circle>'
                )
    return svg(width, height, title, out)
