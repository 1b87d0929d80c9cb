# SPDX-License-Identifier: GPL-2.0
"""KTAP for tests in Python.

A test file decorates functions with @case and ends with main(). A case fails
by raising, and is skipped by raising Skip. Command-line arguments are regular
expressions that choose cases by name.
"""
import os
import re
import sys
import time
import traceback

from waiting import SLOW, deadline, wait_for  # noqa: F401  (part of this module's names)

DEBUG = bool(os.environ.get('SELFTEST_DEBUG'))
LONG = bool(os.environ.get('SELFTEST_LONG'))
# The programs in C are there: BIN + name.
BIN = os.environ.get('SELFTEST_BIN', '/usr/local/bin') + '/selftest-'
_cases = []


class Skip(Exception):
    """Raised by a case that cannot be run here."""


def case(arg=None, *, debug=True, long=False, name=None):
    """Register a case. debug=False: on the debug kernel only with --long; long=True: only with
    --long anywhere."""

    def register(fn):
        add(name or fn.__name__, fn, debug=debug, long=long)
        return fn

    return register(arg) if callable(arg) else register


def add(name, fn, debug=True, long=False):
    """Register a callable as a case called name."""
    if (DEBUG and not debug and not LONG) or (long and not LONG):
        return
    _cases.append((name, fn))


def skip_all(why):
    """End the whole test as skipped."""
    print('KTAP version 1\n1..0 # SKIP ' + why)
    sys.exit(4)


def note(text):
    """Print a diagnostic line or several."""
    for line in str(text).rstrip().split('\n'):
        print('# ' + line)


def expect(condition, text):
    """Fail the case with text unless condition holds."""
    if not condition:
        raise AssertionError(text)


def expect_eq(got, wanted, what):
    """Fail the case unless got equals wanted."""
    if got != wanted:
        raise AssertionError(f'{what}: got {got!r}, wanted {wanted!r}')


def expect_errno(wanted, what, fn, *args, **kwargs):
    """fn must raise an error with errno wanted. Of several the first is meant; another driver
    (TYPE) may say one of the others."""
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    if os.environ.get('TYPE', 'xroce') == 'xroce':
        wanted = wanted[:1]
    try:
        fn(*args, **kwargs)
    except OSError as ex:
        code = ex.errno
    except Exception as ex:
        code = getattr(ex, 'error_code', None)
        if code is None:
            raise
    else:
        raise AssertionError(f'{what}: succeeded, errno of {wanted} wanted')
    names = [os.strerror(e) for e in wanted]
    if abs(code or 0) not in wanted:
        raise AssertionError(
            f'{what}: errno {code} ({os.strerror(abs(code or 0))}), wanted {names}'
        )


def short(ex):
    """What failed, and the lines of the test that led there."""
    frames = [
        f for f in traceback.extract_tb(ex.__traceback__) if not f.filename.endswith('ktap.py')
    ]
    where = [f'at {os.path.basename(f.filename)}:{f.lineno} {f.line}' for f in frames]
    return '\n'.join([f'{type(ex).__name__}: {ex}'] + where[::-1][:4])


def main(setup=None, teardown=None):
    """Run the cases and exit."""
    chosen = [
        c for c in _cases if not sys.argv[1:] or any(re.search(p, c[0]) for p in sys.argv[1:])
    ]
    print('KTAP version 1')
    print(f'1..{len(chosen)}')
    failed = 0
    if setup:
        try:
            setup()
        except Exception:
            note(traceback.format_exc())
            print('Bail out! setup failed')
            sys.exit(1)
    for n, (name, fn) in enumerate(chosen, 1):
        start = time.monotonic()
        try:
            fn()
        except Skip as why:
            print(f'ok {n} {name} # SKIP {why}')
            continue
        except Exception as ex:
            note(short(ex))
            print(f'not ok {n} {name}')
            failed += 1
            continue
        print(f'ok {n} {name} # {time.monotonic() - start:.1f} s')
    if teardown:
        teardown()
    sys.stdout.flush()
    sys.exit(1 if failed else 0)
