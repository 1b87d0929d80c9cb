# SPDX-License-Identifier: GPL-2.0
"""Prints medians and ratios."""
import figures

WIDTH = 64


def show(rows, names):
    """Rows (Key to contender to figures) in their groups, xroce as multiples of the others."""
    behind, both, everybody = [], 0, names
    for group in dict.fromkeys(key.group for key in rows):
        names = [
            n for n in everybody if any(rows[key].get(n) for key in rows if key.group == group)
        ]
        others = [n for n in names if n != 'xroce'] if 'xroce' in names else []
        print(
            f'\n{group}\n  {"":<{WIDTH}}'
            + ''.join(f'{n:>12}' for n in names)
            + ''.join(f'{"/" + n:>12}' for n in others)
        )
        for key, values in rows.items():
            if key.group != group:
                continue
            med = {n: figures.median(values.get(n)) for n in names}
            ratio = {n: figures.better(key, med.get('xroce'), med[n]) for n in others}
            what = figures.name(key) + (f' [{key.unit}]' if key.unit else '')
            line = (
                f'  {what:<{WIDTH}}'
                + ''.join(f'{figures.number(med[n]):>12}' for n in names)
                + ''.join(f'{"–" if r is None else f"{r:.2f}×":>12}' for r in ratio.values())
            )
            slower = ratio.get('rxe') is not None and ratio['rxe'] < 1
            both += ratio.get('rxe') is not None
            behind += [f'{group}: {figures.name(key)}'] if slower else []
            print(line + (' ◀ behind' if slower else ''))
    print()
    if both:
        print(f'xroce is behind rxe in {len(behind)} of {both} rows' + (':' if behind else '.'))
        for name in behind:
            print('  ' + name)
