# SPDX-License-Identifier: GPL-2.0
"""Waiting for conditions, for as long as the machine may need."""
import os
import time

# How many times as long everything may take, on the debug kernel or on a busy machine.
SLOW = int(os.environ.get('SELFTEST_SLOW', '1') or 1)


def deadline(seconds):
    """A point in time, stretched on the debug kernel."""
    return time.monotonic() + seconds * SLOW


def wait_for(what, seconds, condition):
    """Wait until condition() is true and return its value."""
    end = deadline(seconds)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError('timeout: ' + what)
        time.sleep(0.01)
