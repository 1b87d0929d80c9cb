# SPDX-License-Identifier: GPL-2.0
"""Ends and connections over pyverbs.

A Node is one end: an open device, a PD, a CQ. Rc, Xrc and so on are one-way connections
from a Node to another (or to itself). RDMA devices are not confined to namespaces in
the default mode, so both ends live in one process.
"""
import ctypes
import os
import select
import tempfile
import time

from pyverbs.addr import AH, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.libibverbs_enums import (
    ibv_access_flags as ACC,
    ibv_qp_attr_mask as MASK,
    ibv_qp_init_attr_mask as INIT,
    ibv_qp_state as QPS,
    ibv_qp_type as QPT,
    ibv_send_flags as FLAG,
    ibv_srq_init_attr_mask as SRQI,
    ibv_srq_type as SRQT,
    ibv_wc_opcode as WCO,
    ibv_wc_status as WCS,
    ibv_wr_opcode as WR,
    ibv_xrcd_init_attr_mask as XRCDI,
)
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr, QPInitAttrEx
from pyverbs.srq import SRQ, SrqInitAttrEx
from pyverbs.wr import SGE, RecvWR, SendWR
from pyverbs.xrcd import XRCD, XRCDInitAttr

import net
from waiting import SLOW, deadline

LOCAL = int(ACC.IBV_ACCESS_LOCAL_WRITE)
ALL = (
    LOCAL
    | int(ACC.IBV_ACCESS_REMOTE_WRITE)
    | int(ACC.IBV_ACCESS_REMOTE_READ)
    | int(ACC.IBV_ACCESS_REMOTE_ATOMIC)
)
SIGNALED = int(FLAG.IBV_SEND_SIGNALED)
INLINE = int(FLAG.IBV_SEND_INLINE)
SOLICITED = int(FLAG.IBV_SEND_SOLICITED)
FENCE = int(FLAG.IBV_SEND_FENCE)
# Bytes that can be sent inline.
INLINE_MAX = 512
# Timeouts of a sender, 4.096 us << n each. 1 s: who gets an answer gets it, however busy the
# machine is.
PATIENT = 18
# 67 ms: what a bad wire loses is soon sent again.
LOSSY = 14
MTU_BYTES = {1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096}

# A prime: no packet or message size is a multiple of it, so bytes that land at
# the wrong place do not look right.
_PERIOD = 4099


def pattern(seed, length):
    """length bytes that depend on seed."""
    import random

    unit = random.Random(seed).randbytes(_PERIOD)
    return (unit * (length // _PERIOD + 1))[:length]


def status_name(status):
    """Name of a work completion's status."""
    try:
        return WCS(status).name
    except ValueError:
        return str(status)


class Node:
    """A device opened by this process, with a PD and a CQ.

    version: 4, 6, or the address that it is to use."""

    def __init__(self, dev, version=4, cqe=512):
        self.dev = dev
        before = set(os.listdir('/proc/self/fd'))
        self.ctx = Context(name=dev)
        self.async_fd = self._async_fd(before)
        self.pd = PD(self.ctx)
        self.cq = CQ(self.ctx, cqe)
        self.gid_index = net.gid_index(dev, version)
        self.gid = self.ctx.query_gid(1, self.gid_index)
        self.mtu = self.ctx.query_port(1).active_mtu
        self.attr = self.ctx.query_device()
        # Of the ways to peers that are made from now on.
        self.sl = self.traffic_class = self.flow_label = 0

    @staticmethod
    def _async_fd(before):
        for fd in set(os.listdir('/proc/self/fd')) - before:
            try:
                if 'infinibandevent' in os.readlink('/proc/self/fd/' + fd):
                    return int(fd)
            except OSError:
                pass
        return None

    def events(self, seconds=0):
        """The asynchronous events that are there or come within seconds."""
        got = []
        wait = seconds * SLOW
        while select.select([self.async_fd], [], [], wait if not got else 0.05)[0]:
            event = self.ctx.get_async_event()
            got.append(int(event.event_type))
            event.ack()
        return got

    def mr(self, length, access=ALL, pd=None):
        """Registered zeroed memory (at least one byte)."""
        mr = MR(pd or self.pd, max(length, 1), access)
        ctypes.memset(mr.buf, 0, max(length, 1))
        return mr

    def ah_attr(self, peer):
        """The way to peer."""
        route = GlobalRoute(
            dgid=peer.gid,
            sgid_index=self.gid_index,
            hop_limit=64,
            traffic_class=self.traffic_class,
            flow_label=self.flow_label,
        )
        return AHAttr(port_num=1, is_global=1, gr=route, sl=self.sl)

    def close(self):
        """Close the device and all that was made of it."""
        self.ctx.close()


def put(mr, data, offset=0):
    """Write bytes to the memory of an MR."""
    ctypes.memmove(mr.buf + offset, data, len(data))


def get(mr, length, offset=0):
    """Read bytes from the memory of an MR."""
    return ctypes.string_at(mr.buf + offset, length)


def sge(mr, length=None, offset=0):
    """A scatter/gather element of an MR."""
    return SGE(mr.buf + offset, mr.length if length is None else length, mr.lkey)


def poll(cq, count=1, seconds=20):
    """Exactly count completions of a CQ."""
    end = deadline(seconds)
    got = []
    while len(got) < count:
        n, wcs = cq.poll(count - len(got))
        got += wcs
        if n == 0:
            if time.monotonic() > end:
                raise AssertionError(f'timeout: {len(got)} of {count} completions')
            os.sched_yield()
    return got


def ok(wcs):
    """Fail unless all completions were successful; return them."""
    for wc in wcs:
        if wc.status != WCS.IBV_WC_SUCCESS:
            raise AssertionError(f'completion of WR {wc.wr_id}: {status_name(wc.status)}')
    return wcs


def nothing(cq, what='completion'):
    """Fail if the CQ holds anything."""
    n, wcs = cq.poll(1)
    if n != 0:
        raise AssertionError(f'unexpected {what}: {wcs}')


def attributes(
    me,
    peer,
    dest_qpn,
    mtu=None,
    access=ALL,
    psn=0,
    peer_psn=0,
    timeout=PATIENT,
    retry=7,
    rnr_retry=7,
    rnr_timer=12,
    rd_atomic=4,
):
    """QPAttr for to_rts() towards peer; timeout and retry are what a sender waits for an answer."""
    attr = QPAttr(port_num=1)
    attr.qp_access_flags = access
    attr.dest_qp_num = dest_qpn
    attr.path_mtu = mtu or min(me.mtu, peer.mtu)
    attr.sq_psn = psn
    attr.rq_psn = peer_psn
    attr.timeout = timeout
    attr.retry_cnt = retry
    attr.rnr_retry = rnr_retry
    attr.min_rnr_timer = rnr_timer
    attr.max_rd_atomic = rd_atomic
    attr.max_dest_rd_atomic = rd_atomic
    attr.ah_attr = me.ah_attr(peer)
    return attr


class Connection:
    """One direction of traffic from node a to node b.

    send_qp, send_cq: the requester's. recv_cq, recv_qpn: where receives
    complete. post_recv(wr): give the responder a buffer. dst_pd: the PD of
    which the responder's memory must be.
    """

    transport = None
    srqn = None

    def prepare(self, wr):
        """Finish a send work request for this transport."""
        return wr

    def send_wr(self, opcode, sges, wr_id=1, flags=SIGNALED, imm=0, rkey=None, raddr=0):
        """A send work request."""
        wr = SendWR(
            wr_id=wr_id, opcode=opcode, num_sge=len(sges), sg=sges, imm_data=imm, send_flags=flags
        )
        if rkey is not None:
            wr.set_wr_rdma(rkey, raddr)
        return self.prepare(wr)

    def atomic_wr(self, opcode, sges, rkey, raddr, compare_add, swap=0, wr_id=1):
        """An atomic work request."""
        wr = SendWR(wr_id=wr_id, opcode=opcode, num_sge=len(sges), sg=sges, send_flags=SIGNALED)
        wr.set_wr_atomic(rkey, raddr, compare_add, swap)
        return self.prepare(wr)

    def post(self, wr):
        """Post a send work request."""
        self.send_qp.post_send(wr)


class Rc(Connection):
    """Reliable connection; also Uc."""

    transport = 'rc'
    qp_type = QPT.IBV_QPT_RC

    def __init__(
        self, a, b, depth=64, sges=4, inline=INLINE_MAX, sig_all=0, srq=None, cqe=512, **opts
    ):
        self.a, self.b = a, b
        cap = QPCap(
            max_send_wr=depth,
            max_recv_wr=depth,
            max_send_sge=sges,
            max_recv_sge=sges,
            max_inline_data=inline,
        )

        def make(node, use_srq):
            init = QPInitAttr(
                qp_type=self.qp_type,
                scq=node.cq,
                rcq=node.cq,
                cap=cap,
                sq_sig_all=sig_all,
                srq=use_srq,
            )
            return QP(node.pd, init)

        self.send_qp = make(a, None)
        # Within one node the two queues want a CQ each.
        self.same = a is b
        self.recv_cq = CQ(b.ctx, cqe)
        init = QPInitAttr(qp_type=self.qp_type, scq=b.cq, rcq=self.recv_cq, cap=cap, srq=srq)
        self.recv_qp = QP(b.pd, init)
        self.srq = srq
        self.send_cq = a.cq
        self.recv_qpn = self.recv_qp.qp_num
        self.dst_pd = b.pd
        send_opts = dict(opts)
        send_opts['psn'], recv_psn = opts.get('psn', 0xFFFFF0), opts.get('peer_psn', 0x123)
        send_opts['peer_psn'] = recv_psn
        recv_opts = dict(opts, psn=recv_psn, peer_psn=send_opts['psn'])
        self.send_qp.to_rts(attributes(a, b, self.recv_qp.qp_num, **send_opts))
        self.recv_qp.to_rts(attributes(b, a, self.send_qp.qp_num, **recv_opts))

    def post_recv(self, wr):
        """Give the responder a buffer."""
        (self.srq or self.recv_qp).post_recv(wr)

    @property
    def tgt_qp(self):
        """The responder's QP."""
        return self.recv_qp

    def close(self):
        """Destroy the two QPs and the CQ."""
        self.send_qp.close()
        self.recv_qp.close()
        self.recv_cq.close()


class Uc(Rc):
    """Unreliable connection."""

    transport = 'uc'
    qp_type = QPT.IBV_QPT_UC


# What stands before a datagram in a receive.
GRH = 40


class Ud(Connection):
    """Datagrams from a to b: receives begin with GRH bytes. qkey is of b's and own_qkey of a's
    queue pair."""

    transport = 'ud'

    def __init__(
        self,
        a,
        b,
        depth=64,
        sges=4,
        inline=INLINE_MAX,
        qkey=0x11223344,
        own_qkey=0x11223344,
        cqe=512,
    ):
        self.a, self.b, self.qkey = a, b, qkey
        cap = QPCap(
            max_send_wr=depth,
            max_recv_wr=depth,
            max_send_sge=sges,
            max_recv_sge=sges,
            max_inline_data=inline,
        )

        def make(node, rcq, key):
            qp = QP(node.pd, QPInitAttr(qp_type=QPT.IBV_QPT_UD, scq=node.cq, rcq=rcq, cap=cap))
            attr = QPAttr(port_num=1)
            attr.qkey = key
            qp.to_rts(attr)
            return qp

        self.recv_cq, self.send_cq = CQ(b.ctx, cqe), a.cq
        self.send_qp, self.recv_qp = make(a, a.cq, own_qkey), make(b, self.recv_cq, qkey)
        self.recv_qpn = self.recv_qp.qp_num
        self.ah = AH(a.pd, attr=a.ah_attr(b))

    def prepare(self, wr):
        wr.set_wr_ud(self.ah, self.recv_qpn, self.qkey)
        return wr

    def post_recv(self, wr):
        """Give the receiver a buffer."""
        self.recv_qp.post_recv(wr)

    def close(self):
        """Destroy what it made."""
        self.send_qp.close()
        self.recv_qp.close()
        self.recv_cq.close()
        self.ah.close()


class Domain:
    """An XRC domain shared through a file, opened by a node."""

    def __init__(self, node, path=None):
        self.node = node
        self.file = None
        if path is None:
            self.file = tempfile.NamedTemporaryFile(prefix='xrcd-')
            path = self.file.name
        self.path = path
        self.fd = os.open(path, os.O_RDONLY | os.O_CREAT, 0o600)
        self.xrcd = XRCD(
            node.ctx,
            XRCDInitAttr(
                XRCDI.IBV_XRCD_INIT_ATTR_FD | XRCDI.IBV_XRCD_INIT_ATTR_OFLAGS, os.O_CREAT, self.fd
            ),
        )
        os.close(self.fd)

    def srq(self, cq=None, pd=None, depth=64, sges=4):
        """An XRC SRQ of this domain."""
        attr = SrqInitAttrEx(max_wr=depth, max_sge=sges)
        attr.srq_type = SRQT.IBV_SRQT_XRC
        attr.pd = pd or self.node.pd
        attr.xrcd = self.xrcd
        attr.cq = cq or self.node.cq
        attr.comp_mask = (
            SRQI.IBV_SRQ_INIT_ATTR_TYPE
            | SRQI.IBV_SRQ_INIT_ATTR_PD
            | SRQI.IBV_SRQ_INIT_ATTR_CQ
            | SRQI.IBV_SRQ_INIT_ATTR_XRCD
        )
        return SRQ(self.node.ctx, attr)

    def tgt(self):
        """A new target QP."""
        return QP(
            self.node.ctx,
            QPInitAttrEx(
                qp_type=QPT.IBV_QPT_XRC_RECV, xrcd=self.xrcd, comp_mask=INIT.IBV_QP_INIT_ATTR_XRCD
            ),
        )

    def close(self):
        """Close this process's handle of the domain."""
        self.xrcd.close()
        if self.file:
            self.file.close()


def initiator(node, depth=64, sges=4, inline=INLINE_MAX, sig_all=0):
    """A new XRC initiator QP."""
    cap = QPCap(
        max_send_wr=depth, max_recv_wr=0, max_send_sge=sges, max_recv_sge=0, max_inline_data=inline
    )
    return QP(
        node.ctx,
        QPInitAttrEx(
            qp_type=QPT.IBV_QPT_XRC_SEND,
            pd=node.pd,
            scq=node.cq,
            sq_sig_all=sig_all,
            cap=cap,
            comp_mask=INIT.IBV_QP_INIT_ATTR_PD,
        ),
    )


class Xrc(Connection):
    """Extended reliable connection: an INI at a, a TGT and SRQs at b."""

    transport = 'xrc'

    def __init__(
        self, a, b, depth=64, sges=4, inline=INLINE_MAX, domain=None, srqs=1, cqe=512, **opts
    ):
        self.a, self.b = a, b
        self.domain = domain or Domain(b)
        self.send_qp = initiator(a, depth, sges, inline)
        self.tgt_qp = self.domain.tgt()
        self.recv_cq = CQ(b.ctx, cqe)
        self.srqs = [self.domain.srq(self.recv_cq, depth=depth, sges=sges) for _ in range(srqs)]
        self.use(0)
        self.send_cq = a.cq
        self.recv_qpn = self.tgt_qp.qp_num
        self.dst_pd = b.pd
        psn = opts.pop('psn', 0xFFFFF0)
        self.tgt_qp.to_rts(attributes(b, a, self.send_qp.qp_num, peer_psn=psn, **opts))
        self.send_qp.to_rts(attributes(a, b, self.tgt_qp.qp_num, psn=psn, **opts))

    def use(self, index):
        """Send to the index-th SRQ from now on."""
        self.srq = self.srqs[index]
        self.srqn = self.srq.get_srq_num()

    def prepare(self, wr):
        wr.set_qp_type_xrc(self.srqn)
        return wr

    def post_recv(self, wr):
        """Give the SRQ a buffer."""
        self.srq.post_recv(wr)

    def close(self):
        """Destroy everything in the order a careful program would."""
        self.send_qp.close()
        self.tgt_qp.close()
        for srq in self.srqs:
            srq.close()
        self.recv_cq.close()
        self.domain.close()


def recv_wr(sges, wr_id=2):
    """A receive work request."""
    if not sges:
        # pyverbs before rdma-core 61 takes no empty list.
        wr = RecvWR(wr_id=wr_id, num_sge=1, sg=[SGE(0, 0, 0)])
        wr.num_sge = 0
        return wr
    return RecvWR(wr_id=wr_id, num_sge=len(sges), sg=sges)


def has_xrc(node):
    """Does the device say that it can do XRC?"""
    return bool(node.attr.device_cap_flags & (1 << 20))
