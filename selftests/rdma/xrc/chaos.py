#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=400 debug xrc
"""Processes perform random operations: they open domains, connect, send, close, exit
and are killed, with and without the library, on two devices that are removed now and
then. Afterwards nothing may be left.

    chaos.py [--seed N] [--seconds S | --steps N]

The seed, which is printed, determines the operations; SEED in the environment has the
same effect as --seed. With the number of steps, which is printed at the end, a run can
be repeated as a whole. The timing between the operations of the processes is not
repeated."""
import argparse
import errno
import hashlib
import os
import random
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]

import kmem
import ktap
import net
import puppet
import raw
from ktap import expect, expect_eq
from net import resources
from puppet import ALL, OPS, Died, Stage, connect, message, nothing_left, targets

PROCESSES = 10
DOMAINS = 3
SLOTS = 6
# Steps that a run and its repetition are compared by. The debug kernel is slow.
COMPARED = 60 if ktap.DEBUG else 150
# One step in so many takes a device away, in the mean.
REMOVAL = 500
# The first time is within the steps that are compared, on either kernel.
FIRST_REMOVAL = (20, 40)
# Bytes that the kernel may have for the processes in the end, beyond those after the short run.
KEPT = 64 << 10
# What a command may say when others have been at its objects.
KNOWN = {
    errno.EBUSY,
    errno.EINVAL,
    errno.EAGAIN,
    errno.EIO,
    errno.ENODEV,
    errno.ENOMEM,
    errno.ENOENT,
    errno.EBADF,
    errno.EPERM,
    errno.EOPNOTSUPP,
    errno.EEXIST,
}
# Commands whose answer is a number that the kernel chose.
NUMBERED = {'fd', 'srq', 'tgt', 'ini', 'rcv'}
# enum xroce_xrcd_methods and xroce_rcv_qp_attrs
REG, UNREG = 0x1001, 0x1002
ATTR_XRCD, ATTR_HANDLE, ATTR_QPN = 0x1000, 0x1001, 0x1002
BACK = {
    'x1': 'in_host h1 rdma link del x1 && add_link h1 x1 e1 && wait_gid x1 10.7.0.1',
    'x2': 'in_host h2 rdma link del x2 && add_link h2 x2 e2 && wait_gid x2 10.7.0.2',
}


class Chosen(int):
    """A number that the kernel chose, which is another one the next time; nth of the run."""

    nth = 0


class Actor:
    """A process, and what it believes to have."""

    def __init__(self, chaos, dev):
        self.chaos = chaos
        self.dev = dev
        self.n = chaos.lives
        self.p = puppet.Puppet()
        chaos.group.add(self.p.pid())
        self.open()

    def open(self):
        """Opens the device, and has nothing."""
        self.p.device(0, self.dev)
        self.domains, self.srqs, self.targets, self.initiators, self.dead = {}, {}, {}, set(), False
        self.raw_domains, self.gone = [], False

    def command(self, *words):
        """Gives a command; what it answers."""
        self.chaos.told(self.n, words)
        answer = self.p(*words)
        return self.chaos.chosen(answer) if words[0] in NUMBERED else answer

    def attempt(self, fn, *args):
        """fn(*args), or None if a command of it was refused."""
        try:
            return fn(*args)
        except OSError as e:
            expect(e.errno in KNOWN, f'{fn.__name__}{args}: {e}')
            self.gone = self.gone or e.errno == errno.EIO
            self.chaos.refused += 1
            return None

    def try_(self, *words):
        """Gives a command; None if it was refused."""
        return self.attempt(self.command, *words)

    def raw(self, command, request, response=0):
        """As Puppet.raw(), for the functions of raw.py."""
        answer = self.command('raw', 0, command, request.hex() or '-', response)
        return bytes.fromhex(str(answer[0])) if answer else b''

    def number(self, rng):
        """A target that was made lately, whether or not it lives, in whatever domain."""
        return rng.choice(self.chaos.known[-20:] or [2])

    def domain(self, rng):
        """One of its domains."""
        return rng.choice(sorted(self.domains))

    def step(self, rng):
        """Does one thing; soon after the device has gone, opens the new one."""
        what = rng.choices(NAMES, WEIGHTS)[0]
        getattr(self, 'do_' + ('close' if self.gone and rng.randrange(3) == 0 else what))(rng)

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
            number = self.try_('srq', slot, 0, self.domain(rng), rng.randrange(2), 16)
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
            number = self.try_('tgt', slot, 0, self.domain(rng))
            if number:
                self.targets[slot] = number[0]
                self.chaos.known.append(number[0])
                self.try_('init', slot, ALL)

    def do_view(self, rng):
        slot = rng.randrange(SLOTS)
        if slot not in self.targets and self.domains:
            number = self.number(rng)
            if self.try_('view', slot, 0, self.domain(rng), number) is not None:
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
        self.connected(slot, peer.targets[target], peer, rng)

    def connected(self, slot, target, peer, rng):
        """An initiator goes to RTS."""
        self.try_('init', slot, 0)
        self.try_('rtr', slot, target, peer.p.gid, 1)
        self.try_('rts', slot, 8, 2, rng.choice((1, 7)))

    def do_rcv(self, rng):
        """A receive QP by number, and an initiator of some process for it."""
        slot, peer = 100 + rng.randrange(SLOTS), rng.choice(self.chaos.actors)
        if slot in peer.initiators or not self.domains:
            return
        ini = peer.try_('ini', slot, 0)
        if not ini:
            return
        peer.initiators.add(slot)
        number = self.try_('rcv', self.domain(rng), ini[0], peer.p.gid, 1, ALL)
        if number:
            self.chaos.known.append(number[0])
            peer.connected(slot, number[0], self, rng)

    def do_reg(self, rng):
        if self.domains:
            self.try_('reg', self.domain(rng), self.number(rng))

    def do_unreg(self, rng):
        if self.domains:
            self.try_('unreg', self.domain(rng), self.number(rng))

    def do_rcvstate(self, rng):
        if self.domains:
            domain, number = self.domain(rng), self.number(rng)
            if rng.randrange(2):
                self.try_('rcvto', domain, number, rng.choice((puppet.ERR, puppet.RESET)))
            self.try_('rcvstate', domain, number)

    def do_raw_domain(self, rng):
        """A domain that only the kernel knows of."""
        if len(self.raw_domains) < 4:
            fd = self.try_('fd', rng.choice(self.chaos.paths), os.O_RDONLY)
            handle = self.attempt(raw.open_domain, self, rng.choice((fd[0], fd[0], -1)))
            if handle is not None:
                self.raw_domains.append(handle)
            self.try_('unfd', fd[0])

    def do_raw_target(self, rng):
        """A target, a view of one, or ib_core's own handle of it, in such a domain."""
        if not self.raw_domains:
            return
        domain, how = rng.choice(self.raw_domains), rng.randrange(3)
        if how == 0:
            made = self.attempt(raw.create, self, domain)
            if made:
                self.chaos.known += self.chaos.chosen([made[1]])
        elif how == 1:
            self.attempt(raw.create, self, domain, raw.TGT_OPEN, self.number(rng))
        else:
            self.attempt(raw.core_open, self, domain, self.number(rng))

    def do_raw_reg(self, rng):
        if self.raw_domains:
            self.try_(
                'ioctl',
                0,
                REG,
                f'{ATTR_XRCD}:0:{rng.choice(self.raw_domains)}',
                f'{ATTR_HANDLE}:0:0',
                f'{ATTR_QPN}:4:{self.number(rng)}',
            )

    def do_raw_destroy(self, rng):
        """Whatever has some handle, if it is of the kind: the library's objects, too."""
        handle = rng.randrange(24)
        how = rng.choice(
            (
                raw.DESTROY_QP,
                raw.DESTROY_QP,
                raw.DESTROY_SRQ,
                raw.CLOSE_XRCD,
                raw.CLOSE_XRCD,
                raw.DEREG_MR,
                UNREG,
                UNREG,
            )
        )
        if how == UNREG:
            self.try_('ioctl', 0, UNREG, f'{ATTR_HANDLE}:0:{handle}')
        elif how in (raw.DESTROY_QP, raw.DESTROY_SRQ):
            self.attempt(raw.destroy, self, handle, how)
        else:
            self.attempt(raw.close, self, handle, how)

    def do_close(self, _rng):
        """The device, with everything in it; it is opened again."""
        self.try_('close', 0)
        self.open()

    def do_send(self, rng):
        for slot in sorted(self.initiators):
            for _ in range(rng.randrange(1, 5)):
                srqn = rng.choice(self.chaos.srqns[-12:] + [rng.randrange(1 << 24)])
                op = rng.choice(sorted(OPS))
                rdma = (
                    ()
                    if op.startswith('send')
                    else (rng.randrange(1 << 31), rng.randrange(1 << 40))
                )
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
            idle = ('fd', '/dev/null', 0)
            words = rng.choice(
                (
                    ('unxrcd', 0) if 0 in self.domains else idle,
                    ('tgt', 90, 0, 0) if 0 in self.domains else idle,
                    ('close', 0),
                    ('poll', 0, 1, 5),
                )
            )
            self.chaos.told(self.n, words)
            self.p.start(*words)
        self.p.kill()
        self.dead = True


CHANCES = {
    'domain': 10,
    'undomain': 3,
    'srq': 10,
    'unsrq': 3,
    'post': 10,
    'target': 10,
    'view': 8,
    'untarget': 4,
    'connect': 18,
    'send': 24,
    'poll': 10,
    'uninitiator': 3,
    'state': 3,
    'exit': 1,
    'kill': 2,
    'rcv': 5,
    'reg': 4,
    'unreg': 3,
    'rcvstate': 2,
    'close': 1,
    'raw_domain': 3,
    'raw_target': 3,
    'raw_reg': 2,
    'raw_destroy': 2,
}
NAMES, WEIGHTS = list(CHANCES), list(CHANCES.values())


class Chaos:
    """The whole of it."""

    def __init__(self, seed, group):
        self.rng = random.Random(seed)
        self.group = group
        self.steps = (
            self.commands
        ) = self.refused = self.completions = self.events = self.lives = self.removals = 0
        self.numbers = 0
        # The step that takes a device away.
        self.next_removal = self.rng.randrange(*FIRST_REMOVAL)
        self.srqns, self.known, self.actors = [], [], []
        self.digest = hashlib.sha256()
        # Of the first steps that are compared.
        self.first = None
        self.dir = tempfile.TemporaryDirectory()
        self.paths = [f'{self.dir.name}/{n}' for n in range(DOMAINS)]
        for path in self.paths:
            with open(path, 'w'):
                pass

    def chosen(self, answer):
        """An answer that is a number which the kernel chose."""
        number = Chosen(answer[0])
        number.nth = self.numbers = self.numbers + 1
        return [number]

    def told(self, who, words):
        """Notes a command, as it will be the next time."""
        self.commands += 1
        if words[0] in ('raw', 'ioctl'):
            # The kernel's numbers are within bytes.
            words = words[:3] if words[0] == 'raw' else words[:2]
        text = [
            f'#{w.nth}' if isinstance(w, Chosen) else str(w).replace(self.dir.name, '')
            for w in words
        ]
        self.digest.update(f'{who} {" ".join(text)}\n'.encode())

    def new(self):
        """Another process."""
        self.lives += 1
        return Actor(self, self.rng.choice(('x1', 'x1', 'x2')))

    def one_step(self):
        """Something happens."""
        if self.steps == self.next_removal:
            self.removals += 1
            self.next_removal += self.rng.randrange(1, 2 * REMOVAL)
            net.sh(BACK[self.rng.choice(('x1', 'x2'))])
            puppet.gid_index.cache_clear()
        else:
            n = self.rng.randrange(PROCESSES)
            try:
                self.actors[n].step(self.rng)
            except Died as e:
                raise AssertionError(f'a process died of itself: {e}') from e
            if self.actors[n].dead:
                self.actors[n] = self.new()
        self.steps += 1
        if self.steps == COMPARED:
            self.first = self.digest.hexdigest()

    def run(self, steps=None, seconds=0):
        """So many steps, or so long; longer where a slow machine has not got to anything yet."""

        def more():
            if steps:
                return self.steps < steps
            passed = time.monotonic() - start
            return passed < seconds or (
                passed < 10 * seconds and not (self.completions and self.events and self.removals)
            )

        start = time.monotonic()
        try:
            self.actors = [self.new() for _ in range(PROCESSES)]
            while more():
                self.one_step()
        finally:
            for actor in self.actors:
                actor.p.kill()
        ktap.note(
            f'{self.steps} steps in {time.monotonic() - start:.0f} s, {self.removals} removals, '
            f'{self.lives} processes, {self.commands} commands ({self.refused} refused), '
            f'{self.completions} completions, {self.events} events'
        )
        self.dir.cleanup()


def healthy():
    """The devices are as new."""
    with Stage() as stage:
        a, b, client = (
            stage.puppet('x1', domain=True),
            stage.puppet('x1', domain=True),
            stage.puppet('x2'),
        )
        (srqn,) = a('srq', 0, 0, 0, 0, 16)
        connect(client, 0, b, 0)
        b.kill()
        message(client, 0, a, 0, srqn)


def chaos(options):
    """One run after a short one, which it repeats, and what it leaves behind."""
    before = resources()
    with kmem.Group('chaos') as group:
        short = Chaos(options.seed, group)
        short.run(COMPARED)
        nothing_left(before)
        charged = group.settled()
        # On the debug kernel this has what KASAN keeps.
        memory = None if ktap.DEBUG else kmem.settled()
        one = Chaos(options.seed, group)
        one.run(options.steps, options.seconds)
        ktap.note(f'again: --seed {options.seed} --steps {one.steps}')
        if one.first:
            expect_eq(one.first, short.first, f'what was done in the first {COMPARED} steps')
        nothing_left(before)
        expect_eq(targets(), [], 'targets')
        kept = group.falls_to(charged + KEPT, 30) - charged
        ktap.note(
            f'kernel memory for the processes: {charged >> 10} KiB after the short run, '
            f'{kept >> 10:+} KiB now'
        )
        expect(kept <= KEPT, f'{kept >> 10} KiB that processes had are not given back')
        if memory is not None:
            grown = kmem.settled() - memory
            ktap.note(f'kernel memory: {grown >> 10:+} KiB')
            expect(grown < 2 << 20, f'{grown >> 10} KiB of kernel memory are gone')
    if not options.steps:
        expect(one.completions > 0 and one.events > 0 and one.removals > 0, 'nothing happened')
    healthy()


def unload():
    """The module goes."""
    net.clean()
    net.sh('rmmod xroce && modprobe xroce')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument(
        '--seed', type=int, default=int(os.environ.get('SEED') or random.randrange(1 << 31))
    )
    parser.add_argument(
        '--seconds', type=int, default=300 if ktap.LONG else 20 if ktap.DEBUG else 12
    )
    parser.add_argument('--steps', type=int)
    options, rest = parser.parse_known_args()
    sys.argv[1:] = rest

    def setup():
        ktap.note(
            f'seed {options.seed} (chaos.py --seed {options.seed}, or SEED={options.seed}, '
            'repeats it)'
        )
        net.hosts_up()

    ktap.add('nothing_is_left', lambda: chaos(options))
    ktap.add('the_module_unloads', unload)
    ktap.main(setup)


main()
