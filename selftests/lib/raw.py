# SPDX-License-Identifier: GPL-2.0
"""uverbs commands on XRC objects without the library, written by a puppet (puppet.py).

The objects that they create are known only by the kernel's handles. The layouts are
those of <rdma/ib_user_verbs.h>.
"""
import struct

# enum ib_uverbs_write_cmds
DEREG_MR, CREATE_QP, DESTROY_QP, DESTROY_SRQ = 13, 24, 27, 35
OPEN_XRCD, CLOSE_XRCD, OPEN_QP = 37, 38, 40
# XROCE_TGT_OPEN
TGT_OPEN = 0x544754
# enum ib_uverbs_qp_type
_XRC_RECV = 10


def open_domain(p, fd, flags=0o100, response=0):
    """Opens a domain, of no file if fd is -1; returns the open's handle. flags: O_CREAT unless
    told."""
    return struct.unpack('I', p.raw(OPEN_XRCD, struct.pack('Qii', response, fd, flags), 4))[0]


def close(p, handle, command=CLOSE_XRCD):
    """Closes the domain of a handle, or ends by another command that takes the handle alone."""
    p.raw(command, struct.pack('I', handle))


def create(p, domain, name=0, qpn=0, response=0):
    """Creates a target (or, by name TGT_OPEN and number, a view of one); returns handle, number."""
    return struct.unpack(
        'II',
        p.raw(
            CREATE_QP,
            struct.pack(
                'QQIIIIIIIIIBBBB',
                response,
                0,
                domain,
                0,
                0,
                0,
                name,
                qpn,
                0,
                0,
                0,
                0,
                _XRC_RECV,
                0,
                0,
            ),
            32,
        )[:8],
    )


def core_open(p, domain, qpn):
    """The core's own OPEN_QP, which the library does not use; returns the handle."""
    return struct.unpack(
        'II', p.raw(OPEN_QP, struct.pack('QQIIBxxxxxxx', 0, 0, domain, qpn, _XRC_RECV), 32)[:8]
    )[0]


def destroy(p, handle, command=DESTROY_QP):
    """Destroys the QP of a handle, or by another command, an SRQ."""
    p.raw(command, struct.pack('QII', 0, handle, 0), 4)
