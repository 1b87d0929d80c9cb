#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=400 debug xrc
"""Random processes open domains, connect, send, close, die and are killed, on two
devices, one of which is taken away meanwhile. Afterwards nothing may be left.

    chaos.py [--seed N] [--seconds S]

The seed, which is printed, decides what is done; SEED in the environment does as
--seed. How the processes' doings fall into each other in time is theirs."""
import argparse
import errno
import os
import random
import sys
import tempfile
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../lib'))

import kmem
import ktap
import net
import puppet
from ktap import expect, expect_eq
from puppet import ALL, OPS, Died, Stage, connect, message, nothing_left, resources, targets

PROCESSES = 10
DOMAINS = 3
SLOTS = 6
# What a command may say when others have been at its objects.
KNOWN = {errno.EBUSY, errno.EINVAL, errno.EAGAIN, errno.EIO, errno.ENODEV, errno.ENOMEM, errno.ENOENT, errno.EBADF,
         errno.EPERM, errno.EOPNOTSUPP}


class Actor:
    """A process, and what it believes to have."""

    def __init__(self, chaos, dev):
        self.chaos = chaos
        self.dev = dev
        self.p = puppet.Puppet(dev)
        self.domains, self.srqs, self.targets, self.initiators, self.dead = {}, {}, {}, set(), False

    def try_(self, *words):
        """Runs a command; None if it was refused."""
        self.chaos.commands += 1
        try:
            return self.p(*words)
        except OSError as e:
            expect(e.errno in KNOWN, f'{words}: {e}')
            self.chaos.refused += 1
            return None

    def step(self, rng):
        """Does one thing."""
        getattr(self, 'do_' + rng.choices(NAMES, WEIGHTS)[0])(rng)

    def do_domain(self, rng):
        slot, which = rng.randrange(DOMAINS), rng.randrange(DOMAINS)
        if slot not in self.domains:
            fd = self.try_('fd', self.chaos.paths[which], os.O_RDONLY)
            flags = rng.choice((os.O_CREAT, os.O_CREAT, 0, os.O_CREAT | os.O_EXCL))
            if self.try_('xrcd', slot, 0, fd[0], flags) is not None:
                self.domains[slot] = which
            self.try_('unfd', fd[0])

    def do_undomain(self, rng):
        slot = rng.randrange(DOMAINS)
        if slot in self.domains and self.try_('unxrcd', slot) is not None:
            del self.domains[slot]

    def do_srq(self, rng):
        slot = rng.randrange(SLOTS)
        if slot not in self.srqs and self.domains:
            domain = rng.choice(sorted(self.domains))
            number = self.try_('srq', slot, 0, domain, rng.randrange(2), 16)
            if number:
                self.srqs[slot] = number[0]
                self.chaos.srqns.append(number[0])
                self.try_('limit', slot, rng.randrange(4))

    def do_unsrq(self, rng):
        slot = rng.randrange(SLOTS)
        if slot in self.srqs and self.try_('unsrq', slot) is not None:
            del self.srqs[slot]

    def do_post(self, rng):
        for slot in sorted(self.srqs):
            self.try_('post', slot, rng.randrange(1, 12), rng.choice((64, 4096)))

    def do_target(self, rng):
        slot = rng.randrange(SLOTS)
        if slot not in self.targets and self.domains:
            number = self.try_('tgt', slot, 0, rng.choice(sorted(self.domains)))
            if number:
                self.targets[slot] = number[0]
                self.chaos.known.append((number[0], self.dev))
                self.try_('init', slot, ALL)

    def do_view(self, rng):
        slot = rng.randrange(SLOTS)
        if slot not in self.targets and self.domains and self.chaos.known:
            number = rng.choice(self.chaos.known[-20:])[0]
            if self.try_('view', slot, 0, rng.choice(sorted(self.domains)), number) is not None:
                self.targets[slot] = number

    def do_untarget(self, rng):
        slot = rng.randrange(SLOTS)
        if slot in self.targets and self.try_('unqp', slot) is not None:
            del self.targets[slot]

    def do_connect(self, rng):
        """An initiator of this process and a target of some process, if both are still there."""
        slot = 100 + rng.randrange(SLOTS)
        peer = rng.choice(self.chaos.actors)
        if slot in self.initiators or not peer.targets or peer.dead:
            return
        target = rng.choice(sorted(peer.targets))
        number = self.try_('ini', slot, 0)
        if not number:
            return
        self.initiators.add(slot)
        peer.try_('init', target, ALL)
        peer.try_('rtr', target, number[0], self.p.gid, 1)
        self.try_('init', slot, 0)
        self.try_('rtr', slot, peer.targets[target], peer.p.gid, 1)
        self.try_('rts', slot, 8, 2, rng.choice((1, 7)))

    def do_send(self, rng):
        for slot in sorted(self.initiators):
            for _ in range(rng.randrange(1, 5)):
                srqn = rng.choice(self.chaos.srqns[-12:] + [rng.randrange(1 << 24)])
                op = rng.choice(sorted(OPS))
                rdma = () if op.startswith('send') else (rng.randrange(1 << 31), rng.randrange(1 << 40))
                self.try_('send', slot, OPS[op], srqn, rng.choice((0, 8, 64, 3000)), 1, *rdma)

    def do_poll(self, _rng):
        self.chaos.completions += len(self.try_('poll', 0, 64, 0) or ())
        self.chaos.events += len(self.try_('events', 0, 0, 0) or ())

    def do_uninitiator(self, rng):
        slot = 100 + rng.randrange(SLOTS)
        if slot in self.initiators and self.try_('unqp', slot) is not None:
            self.initiators.remove(slot)

    def do_state(self, rng):
        slot = rng.randrange(SLOTS)
        if slot in self.targets:
            self.try_('to', slot, rng.choice((puppet.ERR, puppet.RESET)))
            self.try_('state', slot)

    def do_exit(self, _rng):
        self.p.exit()
        self.dead = True

    def do_kill(self, rng):
        """Killed, at rest or with a command under way."""
        if rng.randrange(2):
            self.p.start(*rng.choice((('unxrcd', 0) if 0 in self.domains else ('fd', '/dev/null', 0),
                                      ('tgt', 90, 0, 0) if 0 in self.domains else ('fd', '/dev/null', 0),
                                      ('poll', 0, 1, 5))))
        self.p.kill()
        self.dead = True


CHANCES = {'domain': 10, 'undomain': 3, 'srq': 8, 'unsrq': 3, 'post': 8, 'target': 8, 'view': 8, 'untarget': 4,
           'connect': 12, 'send': 14, 'poll': 8, 'uninitiator': 3, 'state': 3, 'exit': 1, 'kill': 2}
NAMES, WEIGHTS = list(CHANCES), list(CHANCES.values())


class Chaos:
    """The whole of it."""

    def __init__(self, seed, seconds):
        self.rng = random.Random(seed)
        self.seconds = seconds
        self.commands = self.refused = self.completions = self.events = self.lives = 0
        self.srqns, self.known, self.actors = [], [], []
        self.dir = tempfile.TemporaryDirectory()
        self.paths = [f'{self.dir.name}/{n}' for n in range(DOMAINS)]
        for path in self.paths:
            with open(path, 'w'):
                pass

    def new(self):
        """Another process."""
        self.lives += 1
        return Actor(self, self.rng.choice(('x1', 'x1', 'x2')))

    def wants_more(self, passed):
        """Whether, after so many seconds, there is more to do."""
        if passed < self.seconds:
            return True
        return passed < 10 * self.seconds and not (self.completions > 0 and self.events > 0)

    def run(self):
        """Until the time is over; longer where a slow machine has not got to anything yet."""
        self.actors = [self.new() for _ in range(PROCESSES)]
        start, removed = time.monotonic(), False
        while self.wants_more(time.monotonic() - start):
            n = self.rng.randrange(PROCESSES)
            try:
                self.actors[n].step(self.rng)
            except Died as e:
                raise AssertionError(f'a process died of itself: {e}') from e
            if self.actors[n].dead:
                self.actors[n] = self.new()
            if not removed and time.monotonic() > start + self.seconds / 2:
                removed = True
                net.sh('in_host h2 rdma link del x2 && add_link h2 x2 e2 && wait_gid x2 10.7.0.2')
        for actor in self.actors:
            actor.p.kill()
        self.dir.cleanup()


def healthy():
    """The devices are as new."""
    with Stage() as stage:
        a, b, client = stage.puppet('x1', domain=True), stage.puppet('x1', domain=True), stage.puppet('x2')
        srqn, = a('srq', 0, 0, 0, 0, 16)
        connect(client, 0, b, 0)
        b.kill()
        message(client, 0, a, 0, srqn)


def chaos(options):
    """One run, and what it leaves behind."""
    before = resources()
    one = Chaos(options.seed, 2)
    one.run()
    nothing_left(before)
    memory = kmem.settled()
    one = Chaos(options.seed, options.seconds)
    one.run()
    ktap.note(f'{one.lives} processes, {one.commands} commands ({one.refused} refused), '
              f'{one.completions} completions, {one.events} events')
    expect(one.completions > 0 and one.events > 0, 'nothing happened')
    nothing_left(before)
    expect_eq(targets(), [], 'targets')
    grown = kmem.settled() - memory
    ktap.note(f'kernel memory: {grown // 1024:+} KiB')
    if not ktap.DEBUG:
        expect(grown < 2 << 20, f'{grown >> 10} KiB of kernel memory are gone')
    healthy()


def unload():
    """The module goes."""
    net.clean()
    net.sh('rmmod xroce && modprobe xroce')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seed', type=int, default=int(os.environ.get('SEED') or random.randrange(1 << 31)))
    parser.add_argument('--seconds', type=int, default=300 if ktap.LONG else 30 if ktap.DEBUG else 8)
    options, rest = parser.parse_known_args()
    sys.argv[1:] = rest

    def setup():
        ktap.note(f'seed {options.seed} (chaos.py --seed {options.seed}, or SEED={options.seed}, repeats it)')
        net.hosts_up()
    ktap.add('nothing_is_left', lambda: chaos(options))
    ktap.add('the_module_unloads', unload)
    ktap.main(setup)


main()
