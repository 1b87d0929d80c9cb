# SPDX-License-Identifier: GPL-2.0
"""User space of the provider without a network (selftests/kmod/loopback.rs).

Commands are written to the uverbs device: no library knows the provider. The layouts are those
of <rdma/ib_user_verbs.h>. Each File is an open of the device, which is how the kernel knows a
process: what closes a File does what the end of a process does.
"""
import ctypes
import glob
import os
import select
import struct

GET_CONTEXT, ALLOC_PD, CREATE_COMP_CHANNEL, CREATE_CQ = 0, 3, 17, 18
CREATE_QP, MODIFY_QP, DESTROY_QP, POST_SEND, DESTROY_SRQ, POST_SRQ_RECV = 24, 26, 27, 28, 35, 36
OPEN_XRCD, CLOSE_XRCD, CREATE_XSRQ = 37, 38, 39
XRC_SEND, XRC_RECV = 9, 10
SRQ_XRC = 1
# enum ib_qp_attr_mask
SQ_PSN, DEST_QPN = 1 << 16, 1 << 20
# What the provider takes for "open an existing target".
OPEN = 0x4F50454E
DEVICE = 'loop0'


def uverbs():
    """The uverbs device of the provider's device."""
    for path in glob.glob('/sys/class/infiniband_verbs/uverbs*/ibdev'):
        with open(path) as f:
            if f.read().strip() == DEVICE:
                return '/dev/infiniband/' + path.split('/')[-2]
    raise FileNotFoundError(DEVICE)


def counter(name):
    """A counter of the port."""
    with open(f'/sys/class/infiniband/{DEVICE}/ports/1/hw_counters/{name}') as f:
        return int(f.read())


class File:
    """An open of the device, with a PD, and a CQ whose events are heard."""

    def __init__(self):
        self.fd = os.open(uverbs(), os.O_RDWR | os.O_CLOEXEC)
        self.event_fds = [self('Q', GET_CONTEXT, 'II')[0]]
        (self.pd,) = self('Q', ALLOC_PD, 'I')
        (channel,) = self('Q', CREATE_COMP_CHANNEL, 'I')
        self.event_fds.append(channel)
        self.cq = self('QQIIiI', CREATE_CQ, 'II', 0, 16, 0, channel, 0)[0]

    def __call__(self, layout, command, response, *words):
        """Writes a command; returns the response, whose address is the command's first word."""
        size = struct.calcsize('=' + response)
        answer = ctypes.create_string_buffer(max(size, 1))
        body = struct.pack('=' + layout, *([ctypes.addressof(answer)] if size else []), *words)
        head = struct.pack('IHH', command, (8 + len(body)) // 4, size // 4)
        os.write(self.fd, head + body)
        return struct.unpack('=' + response, answer.raw[:size])

    def close(self):
        """The end of a process."""
        for fd in [*self.event_fds, self.fd]:
            os.close(fd)

    def domain(self, path, flags=os.O_CREAT):
        """Opens the domain of a file; returns its handle."""
        fd = os.open(path, os.O_RDONLY)
        try:
            return self('Qii', OPEN_XRCD, 'I', fd, flags)[0]
        finally:
            os.close(fd)

    def close_domain(self, domain):
        """Closes it."""
        self('I', CLOSE_XRCD, '', domain)

    def srq(self, domain):
        """Creates an XRC SRQ; returns its handle and number."""
        words = (0, SRQ_XRC, self.pd, 16, 1, 0, 0, domain, self.cq)
        handle, _, _, number = self('QQIIIIIIII', CREATE_XSRQ, 'IIII', *words)
        return handle, number

    def destroy_srq(self, handle):
        """Destroys it."""
        self('QII', DESTROY_SRQ, 'I', handle, 0)

    def post(self, handle):
        """Posts a receive."""
        self('QIIII', POST_SRQ_RECV, 'I', handle, 0, 0, 16)

    def _qp(self, kind, owner, cq, name, number):
        words = (0, owner, cq, 0, 0, name, number, 0, 0, 0, 0, kind, 0, 0)
        return self('QQIIIIIIIIIBBBB', CREATE_QP, 'IIIIIIII', *words)[:2]

    def target(self, domain, qpn=None):
        """Creates a target, or opens the one with a number; returns handle and number."""
        name = (0, 0) if qpn is None else (OPEN, qpn)
        return self._qp(XRC_RECV, domain, 0, *name)

    def initiator(self):
        """Creates an initiator; returns its handle."""
        return self._qp(XRC_SEND, self.pd, self.cq, 0, 0)[0]

    def destroy_qp(self, handle):
        """Destroys a queue pair."""
        self('QII', DESTROY_QP, 'I', handle, 0)

    def send(self, initiator, qpn, srqn):
        """Sends a message to an SRQ through a target."""
        numbers = struct.pack('7I', initiator, SQ_PSN | DEST_QPN, 0, 0, srqn, qpn, 0)
        body = (bytes(64) + numbers).ljust(112, b'\0')
        os.write(self.fd, struct.pack('IHH', MODIFY_QP, (8 + len(body)) // 4, 0) + body)
        self('QIIII', POST_SEND, 'I', initiator, 0, 0, 128)

    def heard(self, seconds=0):
        """Whether the CQ raised an event, which is taken."""
        if not select.select([self.event_fds[1]], [], [], seconds)[0]:
            return False
        os.read(self.event_fds[1], 8)
        return True

    def event(self):
        """The type of an asynchronous event; None when there is none."""
        if not select.select([self.event_fds[0]], [], [], 0)[0]:
            return None
        return struct.unpack('QII', os.read(self.event_fds[0], 16))[1]
