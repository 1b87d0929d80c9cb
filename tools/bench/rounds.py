# SPDX-License-Identifier: GPL-2.0
"""Rounds of measurements, with what is seen of them while they run."""
import subprocess
import time
from collections import namedtuple

import figures

# Progress is told that often, seconds.
EVERY = 10

# Something to measure: measure() returns the figures of one contender by x; `key` is without x.
Point = namedtuple('Point', 'key who measure')


class Failed(Exception):
    """A measurement that did not come to its end."""


def output(*argv, limit=60):
    """What a program prints."""
    try:
        done = subprocess.run(
            [str(a) for a in argv],
            timeout=limit,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f'`{argv[0]}`: timeout') from None
    if done.returncode:
        raise Failed(f'`{" ".join(map(str, argv))}`: {done.stdout.strip()[-300:]}')
    return done.stdout


def say(text):
    """A line of progress."""
    print('# ' + text, flush=True)


def clock(seconds):
    """A time for people."""
    return f'{int(seconds) // 60}:{int(seconds) % 60:02}'


class Session:
    """What one tool measures, which is one part of the file of figures."""

    def __init__(self, part, quiet=False):
        self.part, self.quiet, self.start = part, quiet, time.monotonic()
        self.rows, self.failed = {}, []

    def say(self, text):
        """A line of progress."""
        if not self.quiet:
            say(f'{clock(time.monotonic() - self.start)} {self.part}: {text}')

    def add(self, key, who, value):
        """One more figure of a row."""
        self.rows.setdefault(key, {}).setdefault(who, []).append(value)

    def rounds(self, points, count, minutes=None):
        """Measure every point once in each round; no round is begun that would last too long."""
        start = said = time.monotonic()
        for n in range(count):
            took = (time.monotonic() - start) / max(n, 1)
            if minutes and n and time.monotonic() - start + took > 60 * minutes:
                self.say(f'{n} rounds, another would last longer than {minutes} minutes')
                break
            for i, point in enumerate(points):
                now = time.monotonic()
                if now - said >= EVERY or not i:
                    said = now
                    self.progress(
                        n * len(points) + i, count * len(points), now - start, point, n + 1, count
                    )
                try:
                    for x, value in point.measure().items():
                        self.add(point.key._replace(x=x), point.who, value)
                except Failed as why:
                    self.failed.append(
                        f'{point.who}: {point.key.group}: {figures.name(point.key)}: {why}'
                    )
                    say('FAILED: ' + self.failed[-1])

    def progress(self, done, whole, took, point, n, count):
        """Tell how far it is."""
        left = f', about {clock(took / done * (whole - done))} left' if done > whole / 50 else ''
        self.say(
            f'round {n} of {count}, {100 * done // whole} %{left}: '
            f'{point.who}, {point.key.group}, {point.key.what}'
        )

    def save(self, path, **settings):
        """Write the part, if there is a file to write to."""
        if path:
            figures.save(
                path, self.part, self.rows, time.monotonic() - self.start, settings, self.failed
            )
            say(f'written: {path}')
