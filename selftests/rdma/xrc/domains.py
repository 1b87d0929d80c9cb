#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=90 debug xrc
"""XRC domains: who shares a domain, how long it lives, and which closes are refused;
also without the library. The meaning of the open flags within one process is tested in
xrc.c."""
import errno
import os
import signal
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]

import ktap
import loopback
import net
import puppet
import raw
from ktap import case, expect, expect_eq
from puppet import (
    DEVICE_FATAL,
    EAGAIN,
    EBADF,
    EBUSY,
    EFAULT,
    EINVAL,
    EIO,
    ENOENT,
    INIT,
    Stage,
    connect,
    message,
    targets,
)


@case
def between_processes():
    """O_CREAT, O_EXCL and neither, when another process has it."""
    with Stage() as stage:
        a, b = stage.puppet('x1'), stage.puppet('x1')
        (fd,) = b('fd', stage.path, os.O_RDONLY)
        b.refused(EAGAIN, 'xrcd', 0, 0, fd, 0)
        a.domain(stage.path, flags=os.O_CREAT | os.O_EXCL)
        b.refused(EINVAL, 'xrcd', 0, 0, fd, os.O_CREAT | os.O_EXCL)
        b.refused(EINVAL, 'xrcd', 0, 0, fd, os.O_EXCL)
        b('xrcd', 0, 0, fd, 0)
        # The one who made it may go: it is the other's as much.
        (qpn,) = b('tgt', 0, 0, 0)
        a.kill()
        expect_eq(targets(), [qpn], 'targets')
        b('xrcd', 1, 0, fd, 0)
        b('unxrcd', 1)
        b('unqp', 0)
        b('unxrcd', 0)
        b.refused(EAGAIN, 'xrcd', 0, 0, fd, 0)


@case
def private():
    """A domain without a file is nobody else's, not even the same process's."""
    with Stage() as stage:
        a, b = stage.puppet('x1'), stage.puppet('x1')
        for slot in (0, 1):
            a('xrcd', slot, 0, -1, 0)
        b('xrcd', 0, 0, -1, os.O_CREAT)
        (qpn,) = a('tgt', 0, 0, 0)
        a.refused(EINVAL, 'view', 1, 0, 1, qpn)
        b.refused(EINVAL, 'view', 1, 0, 0, qpn)
        a('view', 1, 0, 0, qpn)
        a.refused(EBUSY, 'unxrcd', 0)
        a('unxrcd', 1)
        a.kill()
        expect_eq(targets(), [], 'targets')


@case
def unlinked():
    """The domain is the inode's: a name is only the way to it."""
    with Stage() as stage:
        a, b, c = (stage.puppet('x1') for _ in range(3))
        a.domain(stage.path)
        (qpn,) = a('tgt', 0, 0, 0)
        (fd,) = b('fd', stage.path, os.O_RDONLY)
        os.rename(stage.path, stage.path + '.old')
        c.domain(stage.path + '.old', flags=0)
        os.unlink(stage.path + '.old')
        # Another file under the name is another domain.
        with open(stage.path, 'w'):
            pass
        (other,) = c('fd', stage.path, os.O_RDONLY)
        c.refused(EAGAIN, 'xrcd', 1, 0, other, 0)
        c('xrcd', 1, 0, other, os.O_CREAT)
        c.refused(EINVAL, 'view', 0, 0, 1, qpn)
        c('view', 0, 0, 0, qpn)
        # Whoever kept a descriptor still gets in.
        b('xrcd', 0, 0, fd, 0)
        b('unfd', fd)
        b('view', 0, 0, 0, qpn)
        a.kill()
        c.kill()
        expect_eq(targets(), [qpn], 'targets')


@case(debug=False)
def inodes_reused():
    """No file inherits the domain of one that was deleted, neither while that lives nor after."""
    with Stage() as stage, tempfile.TemporaryDirectory() as d:
        a, b = stage.puppet('x1', domain=True), stage.puppet('x1')
        os.unlink(stage.path)
        for _ in range(2):
            paths = [f'{d}/{i}' for i in range(100)]
            for path in paths:
                (fd,) = b('fd', path, os.O_RDONLY | os.O_CREAT)
                b.refused(EAGAIN, 'xrcd', 0, 0, fd, 0)
                b('unfd', fd)
                os.unlink(path)
            if not a.over():
                a.kill()


@case(debug=False)
def descriptors():
    """What names an inode may name a domain; what does not, may not."""
    with Stage() as stage:
        a, b = stage.puppet('x1'), stage.puppet('x1')
        for path in ('/dev/null', '/tmp', '/proc/version'):
            a.domain(path, slot=0)
            b.domain(path, slot=0, flags=0)
            a('unxrcd', 0)
            b('unxrcd', 0)
        (fd,) = a('fd', stage.path, os.O_PATH)
        a.refused(EBADF, 'xrcd', 0, 0, fd, os.O_CREAT)
        a.refused(EBADF, 'xrcd', 0, 0, 777, os.O_CREAT)
        # The same file, opened for writing or again.
        a.domain(stage.path)
        (fd,) = b('fd', stage.path, os.O_WRONLY)
        b('xrcd', 0, 0, fd, 0)
        b('unfd', fd)
        (qpn,) = a('tgt', 0, 0, 0)
        b('view', 0, 0, 0, qpn)


@case
def contexts_of_a_process():
    """Two contexts of one process are as two processes."""
    with Stage() as stage:
        a = stage.puppet('x1', domain=True)
        a.device(1, 'x1')
        a.domain(stage.path, slot=1, device=1, flags=0)
        (qpn,) = a('tgt', 0, 0, 0)
        a('view', 1, 1, 1, qpn)
        a('init', 1, 0)
        expect_eq(a.state(0), INIT, 'state at the other context')
        a.refused(EBUSY, 'unxrcd', 0)
        a.refused(EBUSY, 'unxrcd', 1)
        # The maker's context goes: the target is the other's.
        a('close', 0)
        expect_eq(targets(), [qpn], 'targets')
        expect_eq(a.state(1), INIT, 'state')
        a('unqp', 1)
        expect_eq(targets(), [], 'targets')
        a('unxrcd', 1)


@case
def devices_on_an_inode():
    """Each device has its own domain for a file."""
    with Stage() as stage:
        a, b = stage.puppet('x1', domain=True), stage.puppet('x2')
        (fd,) = b('fd', stage.path, os.O_RDONLY)
        b.refused(EAGAIN, 'xrcd', 0, 0, fd, 0)
        b('xrcd', 0, 0, fd, os.O_CREAT | os.O_EXCL)
        (qpn,) = a('tgt', 0, 0, 0)
        b.refused(EINVAL, 'view', 0, 0, 0, qpn)
        (theirs,) = b('tgt', 0, 0, 0)
        a.refused(EINVAL, 'view', 1, 0, 0, theirs)
        a.kill()
        expect_eq(targets(), [theirs], 'targets')


@case
def after_fork():
    """A child has the same file open: it may use the objects, and its end ends nothing."""
    with Stage() as stage:
        a, other = stage.puppet('x1', domain=True), stage.puppet('x1', domain=True)
        (qpn,) = a('tgt', 0, 0, 0)
        a('fork')
        a('init', 0, 0)
        a('view', 1, 0, 0, qpn)
        a('unqp', 1)
        a.start('exit', 0)
        expect_eq(a.finish(), [0], "the child's status")
        expect_eq(a.state(0), INIT, 'state')
        a('unqp', 0)
        expect_eq(targets(), [], 'targets')
        # The parent is killed: the objects are the child's for as long as it lives.
        (qpn,) = a('tgt', 0, 0, 0)
        (child,) = a('fork')
        a.process.kill()
        a.process.wait()
        expect_eq(targets(), [qpn], 'targets')
        a('init', 0, 0)
        a.refused(EBUSY, 'unxrcd', 0)
        other('view', 0, 0, 0, qpn)
        os.kill(child, signal.SIGKILL)
        ktap.wait_for('the end of the child', 10, lambda: not os.path.exists(f'/proc/{child}/fd/0'))
        expect_eq(targets(), [qpn], 'targets')
        expect_eq(other.state(0), INIT, 'state')
        other('unqp', 0)
        # The child's handle goes after its descriptors.
        ktap.wait_for('the end of the target', 10, lambda: not targets())


# The debug kernel has no user namespaces.
@case(debug=False)
def user_namespaces():
    """File permissions are the gate, whichever user namespace one is in."""
    if not os.path.exists('/proc/self/ns/user'):
        raise ktap.Skip('the kernel has no user namespaces')
    with Stage() as stage:
        os.chown(stage.path, 1001, 1001)
        os.chmod(stage.path, 0o600)

        def of(uid):
            return stage.puppet(
                'x1',
                prefix=[
                    'setpriv',
                    f'--reuid={uid}',
                    f'--regid={uid}',
                    '--clear-groups',
                    'unshare',
                    '--user',
                    '--map-root-user',
                ],
            )

        owner, stranger, root = of(1001), of(1002), stage.puppet('x1')
        owner.domain(stage.path)
        (qpn,) = owner('tgt', 0, 0, 0)
        stranger.refused(13, 'fd', stage.path, os.O_RDONLY)
        # Not by its number either.
        stranger('xrcd', 0, 0, -1, 0)
        stranger.refused(EINVAL, 'view', 0, 0, 0, qpn)
        root.domain(stage.path, flags=0)
        root('view', 0, 0, 0, qpn)
        owner('init', 0, 0)
        expect_eq(root.state(0), INIT, 'state')
        owner.kill()
        os.chmod(stage.path, 0o604)
        stranger.domain(stage.path, slot=1, flags=0)
        stranger('view', 1, 0, 1, qpn)
        root.kill()
        expect_eq(targets(), [qpn], 'targets')


@case
def close_while_busy():
    """EBUSY changes nothing; what others made does not keep one's own open."""
    with Stage() as stage:
        a, b, client = (
            stage.puppet('x1', domain=True),
            stage.puppet('x1', domain=True),
            stage.puppet('x2'),
        )
        (srqn,) = a('srq', 0, 0, 0, 0, 16)
        a.refused(EBUSY, 'unxrcd', 0)
        connect(client, 0, a, 0)
        a.refused(EBUSY, 'unxrcd', 0)
        message(client, 0, a, 0, srqn)
        a('unqp', 0)
        a.refused(EBUSY, 'unxrcd', 0)
        qpn = connect(client, 1, b, 0)
        message(client, 1, a, 0, srqn)
        a('unsrq', 0)
        # b's target keeps b's open only.
        a('unxrcd', 0)
        b.refused(EBUSY, 'unxrcd', 0)
        a.domain(stage.path, flags=0)
        a('view', 1, 0, 0, qpn)
        (srqn,) = a('srq', 1, 0, 0, 0, 16)
        message(client, 1, a, 1, srqn)
        a.kill()
        b('unqp', 0)
        b('unxrcd', 0)


@case
def last_close_frees():
    """More domains, one after the other, than a device may have: none is left over. A few on the
    debug kernel."""
    count = 300 if ktap.DEBUG and not ktap.LONG else 8400
    with Stage() as stage:
        a = stage.puppet('x1')
        (fd,) = a('fd', stage.path, os.O_RDONLY)
        a.start('churn', 0, fd, count)
        a.finish(seconds=120)
        a.start('churn', 0, -1, count)
        a.finish(seconds=120)


@case
def raw_order():
    """Closes and destroys in any order, with handles of the wrong kind."""
    with Stage() as stage:
        a = stage.puppet('x1')
        (fd,) = a('fd', stage.path, os.O_RDONLY)
        d1, d2 = raw.open_domain(a, fd), raw.open_domain(a, fd)
        expect(d1 != d2, 'a handle for each open')
        q1, qpn = raw.create(a, d1)
        q2, same = raw.create(a, d2, raw.TGT_OPEN, qpn)
        expect_eq(same, qpn, 'number')
        for d in (d1, d2):
            ktap.expect_errno(EBUSY, 'close', raw.close, a, d)
        ktap.expect_errno(ENOENT, 'closing nothing', raw.close, a, 0x1000)
        ktap.expect_errno(ENOENT, 'destroying nothing', raw.destroy, a, 0x1000)
        raw.destroy(a, q1)
        raw.close(a, d1)
        ktap.expect_errno(ENOENT, 'closing it again', raw.close, a, d1)
        # Condemned, but open.
        expect_eq(targets(), [qpn], 'targets')
        raw.destroy(a, q2)
        expect_eq(targets(), [], 'targets')
        raw.close(a, d2)


@case
def raw_wrong_numbers():
    """Numbers of other domains and of other things open nothing."""
    with Stage() as stage:
        a = stage.puppet('x1', domain=True)
        (fd,) = a('fd', stage.path, os.O_RDONLY)
        here, there = raw.open_domain(a, fd), raw.open_domain(a, -1)
        _, qpn = raw.create(a, here)
        (ini,) = a('ini', 5, 0)
        for number in (qpn + 1 & 0xFFFFFF, ini, 0, 1, 0xFFFFFF, 0xFFFFFFFF):
            ktap.expect_errno(
                EINVAL, f'view of {number}', raw.create, a, here, raw.TGT_OPEN, number
            )
            ktap.expect_errno(EINVAL, f'open of {number}', raw.core_open, a, here, number)
        ktap.expect_errno(
            EINVAL, "view of another domain's", raw.create, a, there, raw.TGT_OPEN, qpn
        )
        ktap.expect_errno(EINVAL, "open of another domain's", raw.core_open, a, there, qpn)
        ktap.expect_errno(EINVAL, 'a target in no domain', raw.create, a, 0x1000)
        expect_eq(targets(), [qpn], 'targets')


@case
def raw_core_handle():
    """ib_core's own OPEN_QP: a second handle of somebody's view keeps it."""
    with Stage() as stage:
        a, b, c = (
            stage.puppet('x1', domain=True),
            stage.puppet('x1'),
            stage.puppet('x1', domain=True),
        )
        (qpn,) = a('tgt', 0, 0, 0)
        (fd,) = b('fd', stage.path, os.O_RDONLY)
        d = raw.open_domain(b, fd, 0)
        handle = raw.core_open(b, d, qpn)
        ktap.expect_errno(EBUSY, 'close', raw.close, b, d)
        a('unqp', 0)
        expect_eq(targets(), [qpn], 'targets')
        raw.destroy(b, handle)
        expect_eq(targets(), [], 'targets')
        # Killed, it leaves the target to the domain.
        (qpn,) = a('tgt', 0, 0, 0)
        raw.core_open(b, d, qpn)
        a('unqp', 0)
        b.kill()
        expect_eq(targets(), [qpn], 'targets')
        c('view', 0, 0, 0, qpn)
        c('unqp', 0)
        expect_eq(targets(), [], 'targets')


@case
def raw_bad_response():
    """A command that cannot give its answer has not happened."""
    with Stage() as stage:
        a, b = stage.puppet('x1'), stage.puppet('x1')
        (fd,) = a('fd', stage.path, os.O_RDONLY)
        for _ in range(20):
            ktap.expect_errno(EFAULT, 'open', raw.open_domain, a, fd, response=8)
        (fd2,) = b('fd', stage.path, os.O_RDONLY)
        b.refused(EAGAIN, 'xrcd', 0, 0, fd2, 0)
        d = raw.open_domain(a, fd)
        for _ in range(20):
            ktap.expect_errno(EFAULT, 'create', raw.create, a, d, response=8)
        expect_eq(targets(), [], 'targets')
        raw.close(a, d)
        b.refused(EAGAIN, 'xrcd', 0, 0, fd2, 0)


def removal(how, back):
    """The device goes under domains with everything in them."""
    with Stage() as stage:
        a, b, c = (stage.puppet('x1', domain=True) for _ in range(3))
        client = stage.puppet('x2')
        a('srq', 0, 0, 0, 0, 16)
        connect(client, 0, a, 0)
        orphan = connect(client, 1, b, 0)
        b.kill()
        c('view', 0, 0, 0, orphan)
        expect_eq(len(targets()), 2, 'targets')
        net.sh(how)
        for p in (a, c):
            expect(DEVICE_FATAL in [e.type for e in p.events(1)], 'no IBV_EVENT_DEVICE_FATAL')
        # What the device had is gone; a program may clean up, or not.
        a('unqp', 0)
        a('unsrq', 0)
        a('unxrcd', 0)
        a.refused(EIO, 'xrcd', 1, 0, -1, os.O_CREAT)
        net.sh(back)
        puppet.gid_index.cache_clear()
        # The new device knows nothing of the old domain, whose users may linger.
        d = stage.puppet('x1')
        (fd,) = d('fd', stage.path, os.O_RDONLY)
        d.refused(EAGAIN, 'xrcd', 0, 0, fd, 0)
        d.domain(stage.path)
        expect_eq(targets('x1'), [], 'targets')


@case
def device_removed():
    removal('in_host h1 rdma link del x1', 'add_link h1 x1 e1 && wait_gid x1 10.7.0.1')


@case
def module_removed():
    removal(
        'rmmod xroce',
        'modprobe xroce && add_link h1 x1 e1 && add_link h2 x2 e2 && '
        'wait_gid x1 10.7.0.1 && wait_gid x2 10.7.0.2',
    )


def refused(wanted, call, *args):
    ktap.expect_errno(wanted, call.__name__, call, *args)


def second_provider_shares():
    """What one process makes in a domain, others use; what another domain has, nobody."""
    a, b, c = (loopback.File() for _ in range(3))
    with tempfile.NamedTemporaryFile() as mine, tempfile.NamedTemporaryFile() as theirs:
        refused(EAGAIN, b.domain, mine.name, 0)
        of_a, of_b, other = a.domain(mine.name), b.domain(mine.name, 0), c.domain(theirs.name)
        first, kept = (a.target(of_a)[1] for _ in range(2))
        srq, srqn = b.srq(of_b)
        _, foreign = c.srq(other)
        ini = c.initiator()
        refused(EAGAIN, c.send, ini, first, srqn)
        b.post(srq)
        c.send(ini, first, srqn)
        expect(b.heard(20), 'the message of the target of another process raised no event')
        expect(not (a.heard() or c.heard()), 'a CQ raised an event for a message to another')
        refused(errno.EACCES, c.send, ini, first, foreign)
        expect_eq(a.event(), puppet.ACCESS_ERR, 'event at who has the target open')
        refused(EINVAL, b.target, of_b, kept + 1)
        # Who made the targets ends: they stay.
        a.close()
        b.post(srq)
        c.send(ini, first, srqn)
        expect(b.heard(20), 'the message to a target whose maker is gone raised no event')
        # Who opens one and destroys it is the last that has it: it ends, the other does not.
        view, _ = b.target(of_b, first)
        b.destroy_qp(view)
        refused(ENOENT, c.send, ini, first, srqn)
        refused(EAGAIN, c.send, ini, kept, srqn)
        # The domain: not while it has an SRQ, and then with its target.
        refused(EBUSY, b.close_domain, of_b)
        b.destroy_srq(srq)
        refused(EINVAL, c.send, ini, kept, srqn)
        expect_eq(loopback.counter('targets'), 1, 'targets')
        b.close_domain(of_b)
        refused(ENOENT, c.send, ini, kept, srqn)
        b.close()
        c.close()
    # ib_core shows the values of a moment ago.
    for name in ('domains', 'users', 'targets'):
        ktap.wait_for(f'no {name}', 10, lambda: loopback.counter(name) == 0)
    expect_eq(loopback.counter('messages'), 2, 'messages')


@case(debug=False)
def second_provider():
    """XRC is crate xrc's, not xroce's: another provider (kmod/loopback.rs) has it, too."""
    module = '/usr/local/lib/selftests/selftest_loopback.ko'
    if not os.path.exists(module):
        raise ktap.Skip('selftest_loopback.ko is not there')
    net.sh(f'insmod {module} && ip link add loop0 type dummy && ip link set loop0 up')
    try:
        net.sh(f'rdma link add {loopback.DEVICE} type loopback netdev loop0')
        second_provider_shares()
        with open('/proc/interrupts') as f:
            expect(f'{loopback.DEVICE}-comp0' in f.read(), 'no interrupt for the vector')
    finally:
        net.sh('rmmod selftest_loopback && ip link del loop0')


ktap.main(lambda: net.hosts_up())
