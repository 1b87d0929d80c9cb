# SPDX-License-Identifier: GPL-2.0
"""How much memory the kernel itself uses, to within some tens of KiB.

All memory that is neither free nor attributed to processes or files belongs to the
kernel: slab, vmalloc, per-CPU areas, page tables, and pages that a driver takes
directly (rings), which no single line of /proc/meminfo shows. Pages on the per-CPU free
lists are free, although MemFree does not count them.
"""
import glob
import os
import re
import time

from waiting import deadline

PAGE = os.sysconf('SC_PAGE_SIZE')
# Seconds for which memory.stat may be out of date.
STALE = 4


def used():
    """Bytes of memory that the kernel uses."""
    _refresh()
    info = {}
    with open('/proc/meminfo') as f:
        for line in f:
            name, value = line.split(':')
            info[name] = int(value.split()[0]) * 1024
    with open('/proc/zoneinfo') as f:
        cached = sum(int(n) for n in re.findall(r'^\s+count:\s+(\d+)', f.read(), re.M)) * PAGE
    user = info['Buffers'] + info['Cached'] + info.get('SwapCached', 0) + info['AnonPages']
    return info['MemTotal'] - info['MemFree'] - cached - user - info['SReclaimable']


def _refresh():
    """Have deferred frees done, empty slabs returned and statistics folded."""

    def write(path, value='1'):
        try:
            with open(path, 'w') as f:
                f.write(value)
        except OSError:
            pass

    # The shrinkers of lazy RCU and of kfree_rcu batches run at drop_caches.
    write('/proc/sys/vm/drop_caches', '3')
    for cache in glob.glob('/sys/kernel/slab/*/shrink'):
        if not os.path.islink(os.path.dirname(cache)):
            write(cache)
    write('/proc/sys/vm/stat_refresh')


def settled(tries=20):
    """used(), once two readings in a row agree to 32 KiB."""
    last = used()
    for _ in range(tries):
        time.sleep(0.1)
        now = used()
        if abs(now - last) <= 32 * 1024:
            return now
        last = now
    return last


class Group:
    """A memory cgroup: what the kernel allocates for the processes in it, and still has when they
    are gone.

    What is freed is subtracted at once, whatever KASAN keeps; no other activity of the machine
    counts.
    """

    ROOT = '/sys/fs/cgroup'

    def __init__(self, name):
        self.path = f'{self.ROOT}/{name}'

    def __enter__(self):
        with open(f'{self.ROOT}/cgroup.subtree_control', 'w') as f:
            f.write('+memory')
        os.mkdir(self.path)
        return self

    def __exit__(self, *_):
        os.rmdir(self.path)

    def add(self, pid):
        """Moves a process into it."""
        with open(f'{self.path}/cgroup.procs', 'w') as f:
            f.write(str(pid))

    def charged(self):
        """Bytes of the kernel's for its processes, without caches of files."""
        with open(f'{self.path}/memory.stat') as f:
            stat = dict(line.split() for line in f)
        return int(stat['kernel']) - int(stat['slab_reclaimable'])

    def settled(self):
        """charged(), once it has not changed for as long as its counters may be out of date.

        The kernel adds up the counters of the CPUs every two seconds by a deferrable work item, and
        at a read only if they differ by more than 64 pages per CPU (mm/memcontrol.c).
        """
        _refresh()
        last, since = self.charged(), time.monotonic()
        end = deadline(60)
        while time.monotonic() - since < STALE and time.monotonic() < end:
            time.sleep(0.1)
            now = self.charged()
            if now != last:
                last, since = now, time.monotonic()
        return last

    def falls_to(self, limit, seconds):
        """Waits until settled() is no more than limit bytes, so long at most, and returns it."""
        end = deadline(seconds)
        while (now := self.settled()) > limit and time.monotonic() < end:
            pass
        return now
