# SPDX-License-Identifier: GPL-2.0
"""Processes that perform XRC operations as a test tells them (rdma/xrc/puppet.c).

    with Stage() as stage:
        a = stage.puppet('x1')
        a.domain(path)                  # opens it as domain 0 of device 0
        qpn, = a('tgt', 0, 0, 0)
        a.refused(errno.EBUSY, 'unxrcd', 0)
        a.kill()

Objects are named by small numbers that the test chooses. When a case ends, its
processes are killed, which closes everything that is still open; then nothing may be
left in `rdma res`.
"""
import collections
import errno
import functools
import os
import re
import select
import signal
import subprocess
import tempfile
import time

import ktap
import net
from net import resources

PROGRAM = ktap.BIN + 'puppet'

LOCAL, WRITE, READ, ATOMIC = 1, 2, 4, 8
ALL = LOCAL | WRITE | READ | ATOMIC

# enum ibv_qp_state
RESET, INIT, RTR, RTS, SQD, SQE, ERR = range(7)
# enum ibv_wr_opcode
OPS = {'write': 0, 'write_imm': 1, 'send': 2, 'send_imm': 3, 'read': 4, 'cas': 5, 'add': 6}
# enum ibv_wc_status
SUCCESS, LEN_ERR, LOC_QP_OP_ERR, LOC_PROT_ERR, FLUSH_ERR = 0, 1, 2, 4, 5
LOC_ACCESS_ERR, REM_INV_REQ_ERR, REM_ACCESS_ERR, REM_OP_ERR = 8, 9, 10, 11
RETRY_EXC_ERR, RNR_RETRY_EXC_ERR = 12, 13
# enum ibv_event_type
REQ_ERR, ACCESS_ERR, COMM_EST, DEVICE_FATAL = 2, 3, 4, 8
SRQ_ERR, SRQ_LIMIT, LAST_WQE = 14, 15, 16

Wc = collections.namedtuple('Wc', 'status opcode qpn id imm length')
Event = collections.namedtuple('Event', 'type slot')

# How long a sender waits, and tries again: 1 s, eight times, so that who gets an answer gets it on
# a busy machine; 4 ms, three times, for who gets none.
PATIENT = {'timeout': 18, 'retry': 7}
HASTY = {'timeout': 10, 'retry': 2}


gid_index = functools.cache(net.gid_index)


class Died(Exception):
    """The process ended in the middle of a command."""


class Puppet:
    """A process."""

    def __init__(self, dev=None, prefix=()):
        self.process = subprocess.Popen(
            [*prefix, PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self.rest = b''
        self.gid = None
        if dev:
            self.device(0, dev)

    def start(self, *words):
        """Give a command whose answer finish() gets."""
        try:
            self.process.stdin.write((' '.join(str(w) for w in words) + '\n').encode())
        except BrokenPipeError:
            raise Died(str(words)) from None

    def finish(self, seconds=60):
        """The answer's words, numbers as such; an errno becomes an OSError."""
        end = ktap.deadline(seconds)
        while b'\n' not in self.rest:
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError('timeout: no answer')
            got = os.read(self.process.stdout.fileno(), 65536)
            if not got:
                raise Died(self.rest.decode())
            self.rest += got
        line, self.rest = self.rest.split(b'\n', 1)
        words = line.decode().split()
        if words and words[0] == 'ok':
            return [int(w) if re.fullmatch(r'-?(0|[1-9]\d{0,19})', w) else w for w in words[1:]]
        if words and words[0] == 'errno':
            raise OSError(int(words[1]), os.strerror(int(words[1])))
        raise Died(line.decode())

    def __call__(self, *words):
        self.start(*words)
        return self.finish()

    def refused(self, wanted, *words):
        """The command must fail with one of the errno values."""
        ktap.expect_errno(wanted, ' '.join(str(w) for w in words), self, *words)

    def device(self, slot, dev):
        """Open a device."""
        (self.gid,) = self('device', slot, dev, gid_index(dev))

    def domain(self, path, slot=0, device=0, flags=os.O_CREAT):
        """Open the domain of a file; the descriptor is closed again at once."""
        (fd,) = self('fd', path, os.O_RDONLY)
        try:
            self('xrcd', slot, device, fd, flags)
        finally:
            self('unfd', fd)

    def poll(self, count=1, seconds=20, device=0):
        """Exactly so many completions."""
        got = [Wc(*map(int, str(w).split(':'))) for w in self('poll', device, count, seconds)]
        ktap.expect_eq(len(got), count, 'completions')
        return got

    def events(self, count=0, seconds=20, device=0, but=(COMM_EST,)):
        """Waits for so many asynchronous events; returns all that are there, without those of kinds
        `but`."""
        got = []
        while True:
            wait = max(1, count - len(got)) if count else 0
            new = [
                Event(*map(int, str(w).split(':'))) for w in self('events', device, wait, seconds)
            ]
            got += [e for e in new if e.type not in but]
            if len(got) >= count:
                return got
            ktap.expect(new, f'events: {got}, {count} wanted')

    def state(self, qp):
        """State of a QP."""
        return self('state', qp)[0]

    def raw(self, command, request, response=0, device=0):
        """A uverbs command past the library, as bytes."""
        answer = self('raw', device, command, request.hex() or '-', response)
        return bytes.fromhex(str(answer[0])) if answer else b''

    def pid(self):
        """Number of the process."""
        return self.process.pid

    def kill(self):
        """Kill -9; when this returns the kernel has closed its files."""
        self.process.kill()
        self._reap()

    def exit(self, code=0):
        """Ends without closing anything."""
        self.start('exit', code)
        self._reap()

    def _reap(self):
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def over(self):
        """Has it been ended?"""
        return self.process.returncode is not None


class Stage:
    """The processes of one case, and a file for a domain."""

    def __init__(self):
        self.puppets = []
        self.before = resources()
        self.file = tempfile.NamedTemporaryFile(prefix='xrcd-', delete=False)
        self.path = self.file.name

    def puppet(self, dev=None, domain=False, **options):
        """A new process; with the stage's domain open if asked."""
        p = Puppet(dev, **options)
        self.puppets.append(p)
        if domain:
            p.domain(self.path)
        return p

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for p in self.puppets:
            if not p.over():
                p.process.send_signal(signal.SIGCONT)
                p.kill()
        self.file.close()
        if os.path.exists(self.path):
            os.unlink(self.path)
        if kind is None:
            nothing_left(self.before)


def add_case(name, fn, *args, debug=True):
    """A case called name that runs fn with a stage and args."""

    def run():
        with Stage() as stage:
            fn(stage, *args)

    ktap.add(name, run, debug=debug)


def targets(dev=None):
    """Numbers of the XRC targets that `rdma res` shows."""
    return sorted(
        q['lqpn']
        for q in net.rdma('qp')
        if q.get('type') == 'XRC_TGT' and dev in (None, q['ifname'])
    )


def nothing_left(before):
    """`rdma res` counts what it did before."""
    now = resources()
    if now != before:
        # A packet may hold the last reference for a moment.
        ktap.wait_for(f'the same resources: {before}, now {now}', 10, lambda: resources() == before)


def connect(
    sender,
    ini,
    receiver,
    tgt,
    access=ALL,
    timeout=PATIENT['timeout'],
    retry=PATIENT['retry'],
    rnr=7,
    rnr_timer=1,
    device=0,
):
    """Connects a new initiator to a new target; returns the target's number.

    The receiver has domain 0 open. **HASTY is for a sender that gets no answer.
    """
    (qpn,) = receiver('tgt', tgt, device, 0)
    (dest,) = sender('ini', ini, 0)
    receiver('init', tgt, access)
    receiver('rtr', tgt, dest, sender.gid, rnr_timer)
    sender('init', ini, 0)
    sender('rtr', ini, qpn, receiver.gid, rnr_timer)
    sender('rts', ini, timeout, retry, rnr)
    return qpn


def send(sender, ini, srqn, op='send_imm', length=64, number=1, key=None, address=None):
    """Posts a request and returns the status of its completion."""
    words = ['send', ini, OPS[op], srqn, length, number]
    if key is not None:
        words += [key, address]
    sender(*words)
    wc = sender.poll(1, seconds=60)[0]
    ktap.expect_eq(wc.id, number, 'wr_id')
    return wc.status


def unanswered(sender, ini, srqn):
    """A request to a target that is gone; all before it have completed."""
    sender('hasty', ini)
    ktap.expect_eq(send(sender, ini, srqn), RETRY_EXC_ERR, 'status')


def message(sender, ini, receiver, srq, srqn, number=1):
    """A message arrives: it completes here and there."""
    receiver('post', srq, 1, 4096)
    ktap.expect_eq(send(sender, ini, srqn, number=number), SUCCESS, 'status of the send')
    wc = receiver.poll(1)[0]
    ktap.expect_eq((wc.status, wc.imm, wc.length, wc.id), (SUCCESS, number, 64, srq), 'the receive')
    return wc


EBUSY, EINVAL, EAGAIN, EBADF, EFAULT = (
    errno.EBUSY,
    errno.EINVAL,
    errno.EAGAIN,
    errno.EBADF,
    errno.EFAULT,
)
EOPNOTSUPP, ENOENT, EIO = errno.EOPNOTSUPP, errno.ENOENT, errno.EIO
