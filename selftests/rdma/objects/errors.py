#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=180 debug
"""Objects are created, used, queried and destroyed; and what is refused with which
errno."""
import ctypes
import errno
import gc
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]

import ktap
import net
import verbs
from ktap import case, expect, expect_eq, expect_errno
from pyverbs.addr import AH, GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import Context
from pyverbs.libibverbs_enums import ibv_srq_attr_mask as SRQM
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.srq import SrqAttr, SrqInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR
from pyverbs.xrcd import XRCD, XRCDInitAttr
from verbs import (
    ACC,
    ALL,
    INIT,
    LOCAL,
    MASK,
    QP,
    QPS,
    QPT,
    SIGNALED,
    SRQ,
    SRQI,
    SRQT,
    WCS,
    WR,
    XRCDI,
    Node,
    QPAttr,
    QPCap,
    QPInitAttr,
    QPInitAttrEx,
    SrqInitAttrEx,
    attributes,
    ok,
    poll,
    recv_wr,
    sge,
)

EINVAL = errno.EINVAL


def rc(node, depth=8, srq=None, **cap):
    full = dict(max_send_wr=depth, max_recv_wr=depth, max_send_sge=2, max_recv_sge=2)
    full.update(cap)
    return QP(
        node.pd,
        QPInitAttr(qp_type=QPT.IBV_QPT_RC, scq=node.cq, rcq=node.cq, srq=srq, cap=QPCap(**full)),
    )


def need_xrc(node):
    if net.TYPE == 'rxe':
        raise ktap.Skip('rxe has no XRC')


@case
def open_many_contexts():
    ctxs = [Context(name='x1') for _ in range(16)]
    pds = [PD(c) for c in ctxs]
    del pds
    for c in ctxs:
        c.close()


@case
def mr_life():
    node = Node('x1')
    for length in (1, 4095, 4096, 4097, 1 << 20):
        mr = node.mr(length)
        expect(mr.lkey != 0 and mr.rkey != 0, 'key 0')
        mr.close()
    keys = [node.mr(64) for _ in range(50)]
    expect_eq(len({m.rkey for m in keys}), 50, 'distinct rkeys')
    expect_eq(len({m.lkey for m in keys}), 50, 'distinct lkeys')


@case
def mr_refused():
    node = Node('x1')
    remote_write, atomic = int(ACC.IBV_ACCESS_REMOTE_WRITE), int(ACC.IBV_ACCESS_REMOTE_ATOMIC)
    expect_errno(EINVAL, 'remote write without local write', MR, node.pd, 64, remote_write)
    expect_errno(EINVAL, 'remote atomic without local write', MR, node.pd, 64, atomic)
    # A hole in the address space.
    libc = ctypes.CDLL(None, use_errno=True)
    hole = libc.mmap
    hole.restype = ctypes.c_void_p
    base = hole(None, 3 * 4096, 3, 0x22, -1, 0)
    libc.munmap(ctypes.c_void_p(base + 4096), 4096)
    expect_errno(
        (errno.EFAULT, EINVAL, errno.ENOMEM), 'a hole', MR, node.pd, 3 * 4096, LOCAL, address=base
    )
    # A page that may only be read.
    ro = hole(None, 4096, 1, 0x22, -1, 0)
    expect_errno(
        (errno.EFAULT, EINVAL, errno.EACCES),
        'read-only memory',
        MR,
        node.pd,
        4096,
        LOCAL,
        address=ro,
    )
    MR(node.pd, 4096, 0, address=ro).close()
    # An address range that wraps.
    expect_errno(
        (EINVAL, errno.EFAULT, errno.ENOMEM),
        'wrapping',
        MR,
        node.pd,
        8192,
        LOCAL,
        address=(1 << 64) - 4096,
    )
    expect_errno(
        (errno.EFAULT, EINVAL, errno.ENOMEM),
        'kernel memory',
        MR,
        node.pd,
        4096,
        LOCAL,
        address=0xFFFF888000000000,
    )


@case
def mr_counts_against_memlock():
    import resource
    import subprocess

    code = '''
import os, sys, resource, errno
sys.path.insert(0, %r)
import verbs
node = verbs.Node('x1')
resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
import ctypes
libc = ctypes.CDLL(None)
# CAP_IPC_LOCK would make the limit void.
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
try:
    node.mr(1 << 20)
except Exception as ex:
    sys.exit(0 if getattr(ex, 'error_code', None) == errno.ENOMEM else 'errno %%r' %% (ex,))
sys.exit('1 MiB could be pinned with a limit of 64 KiB')
''' % os.path.dirname(
        os.path.abspath(verbs.__file__)
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    expect_eq(done.returncode, 0, done.stderr)
    del resource


@case
def cq_life():
    node = Node('x1')
    for depth in (1, 2, 100, 5000):
        cq = CQ(node.ctx, depth)
        expect(cq.cqe >= depth, f'{cq.cqe} entries for {depth}')
        cq.close()
    expect_errno(EINVAL, 'no entries', CQ, node.ctx, 0)
    cq = CQ(node.ctx, 16)
    cq.resize(64)
    expect(cq.cqe >= 64, 'not resized')
    cq.resize(8)
    expect_errno(EINVAL, 'resize to 0', cq.resize, 0)
    expect_errno((EINVAL, errno.ENOMEM), 'resize to max_cqe + 1', cq.resize, node.attr.max_cqe + 1)
    cq.close()


@case
def destroy_in_use():
    """A process of its own asks libibverbs directly (see inuse.c)."""
    import subprocess

    done = subprocess.run(
        [ktap.BIN + 'inuse', 'x1', '' if net.TYPE == 'rxe' else 'xrc'],
        capture_output=True,
        text=True,
    )
    expect_eq(done.returncode, 0, done.stdout + done.stderr)


@case
def qp_states_and_query():
    node = Node('x1')
    one, two = rc(node), rc(node)
    expect_eq(one.qp_state, QPS.IBV_QPS_RESET, 'state')
    node.sl, node.traffic_class, node.flow_label = 5, 0x2B, 0xFEDCB
    attr = attributes(
        node,
        node,
        two.qp_num,
        psn=0x1234,
        peer_psn=0x4321,
        timeout=13,
        retry=5,
        rnr_retry=4,
        rnr_timer=9,
        rd_atomic=4,
        access=LOCAL | int(ACC.IBV_ACCESS_REMOTE_READ),
    )
    one.to_rts(attr)
    got, _ = one.query(0x1FFFFF)
    want = dict(
        qp_state=QPS.IBV_QPS_RTS,
        dest_qp_num=two.qp_num,
        sq_psn=0x1234,
        rq_psn=0x4321,
        timeout=13,
        retry_cnt=5,
        rnr_retry=4,
        min_rnr_timer=9,
        max_rd_atomic=4,
        max_dest_rd_atomic=4,
        path_mtu=node.mtu,
        port_num=1,
        pkey_index=0,
    )
    for name, value in want.items():
        expect_eq(getattr(got, name), value, name)
    expect(got.qp_access_flags & int(ACC.IBV_ACCESS_REMOTE_READ), 'access flags')
    expect(not got.qp_access_flags & int(ACC.IBV_ACCESS_REMOTE_WRITE), 'access flags')
    expect_eq(got.ah_attr.sgid_index, node.gid_index, 'sgid_index')
    expect_eq(str(got.ah_attr.dgid), str(node.gid), 'dgid')
    expect_eq(
        (got.ah_attr.sl, got.ah_attr.traffic_class, got.ah_attr.flow_label),
        (5, 0x2B, 0xFEDCB),
        'marks',
    )
    err = QPAttr(qp_state=QPS.IBV_QPS_ERR)
    one.modify(err, MASK.IBV_QP_STATE)
    expect_eq(one.query(MASK.IBV_QP_STATE)[0].qp_state, QPS.IBV_QPS_ERR, 'state')
    one.modify(QPAttr(qp_state=QPS.IBV_QPS_RESET), MASK.IBV_QP_STATE)
    one.to_rts(attr)
    expect_eq(one.query(MASK.IBV_QP_STATE)[0].qp_state, QPS.IBV_QPS_RTS, 'state')


@case
def qp_wrong_transitions():
    node = Node('x1')
    one = rc(node)
    expect_errno(
        EINVAL, 'RESET to RTS', one.modify, QPAttr(qp_state=QPS.IBV_QPS_RTS), MASK.IBV_QP_STATE
    )
    expect_errno(
        EINVAL, 'RESET to RTR', one.modify, QPAttr(qp_state=QPS.IBV_QPS_RTR), MASK.IBV_QP_STATE
    )
    expect_errno(
        EINVAL,
        'INIT without port',
        one.modify,
        QPAttr(qp_state=QPS.IBV_QPS_INIT),
        MASK.IBV_QP_STATE,
    )
    init = QPAttr(qp_state=QPS.IBV_QPS_INIT, port_num=2)
    mask = MASK.IBV_QP_STATE | MASK.IBV_QP_PKEY_INDEX | MASK.IBV_QP_PORT | MASK.IBV_QP_ACCESS_FLAGS
    expect_errno(EINVAL, 'port 2', one.modify, init, mask)
    init = QPAttr(qp_state=QPS.IBV_QPS_INIT, port_num=1)
    init.pkey_index = 7
    if net.TYPE != 'rxe':
        expect_errno(EINVAL, 'P_Key index 7', one.modify, init, mask)
    else:
        one.modify(QPAttr(qp_state=QPS.IBV_QPS_RESET), MASK.IBV_QP_STATE)
    one.to_init(QPAttr(port_num=1))

    def rtr(**change):
        attr = attributes(node, node, 5)
        attr.qp_state = QPS.IBV_QPS_RTR
        for name, value in change.items():
            setattr(attr, name, value)
        one.modify(
            attr,
            MASK.IBV_QP_STATE
            | MASK.IBV_QP_AV
            | MASK.IBV_QP_PATH_MTU
            | MASK.IBV_QP_DEST_QPN
            | MASK.IBV_QP_RQ_PSN
            | MASK.IBV_QP_MAX_DEST_RD_ATOMIC
            | MASK.IBV_QP_MIN_RNR_TIMER,
        )

    expect_errno(EINVAL, 'path MTU above the port\'s', rtr, path_mtu=5)
    expect_errno(EINVAL, 'too many READs', rtr, max_dest_rd_atomic=255)
    bad = AHAttr(
        port_num=1, is_global=1, gr=GlobalRoute(dgid=node.gid, sgid_index=200, hop_limit=1)
    )
    expect_errno((errno.ENODATA, EINVAL, errno.EIO), 'GID index 200', rtr, ah_attr=bad)
    expect_errno(EINVAL, 'no GRH', rtr, ah_attr=AHAttr(port_num=1, is_global=0, dlid=1))
    expect_eq(one.query(MASK.IBV_QP_STATE)[0].qp_state, QPS.IBV_QPS_INIT, 'state')
    rtr()


@case
def post_in_wrong_state():
    node = Node('x1')
    one = rc(node)
    mr = node.mr(64)
    send = SendWR(num_sge=1, sg=[sge(mr)], send_flags=SIGNALED)
    expect_errno(EINVAL, 'receive in RESET', one.post_recv, recv_wr([sge(mr)]))
    expect_errno(EINVAL, 'send in RESET', one.post_send, send)
    one.to_init(QPAttr(port_num=1))
    expect_errno(EINVAL, 'send in INIT', one.post_send, send)
    one.post_recv(recv_wr([sge(mr)]))
    one.to_rtr(verbs.attributes(node, node, one.qp_num))
    expect_errno(EINVAL, 'send in RTR', one.post_send, send)


@case
def post_refused():
    """What a queue cannot take, post says; the queue is as before."""
    node = Node('x1')
    conn = verbs.Rc(node, node, depth=8, sges=2)
    mr = node.mr(4096)
    expect_errno(
        (EINVAL, errno.ENOMEM),
        'too many SGEs',
        conn.post,
        conn.send_wr(WR.IBV_WR_SEND, [sge(mr, 4)] * 33),
    )
    expect_errno(
        (EINVAL, errno.ENOMEM), 'too many receive SGEs', conn.post_recv, recv_wr([sge(mr, 4)] * 33)
    )
    depth = conn.recv_qp.query(MASK.IBV_QP_CAP)[1].max_recv_wr
    for i in range(depth):
        conn.post_recv(recv_wr([sge(mr)], wr_id=i))
    expect_errno(errno.ENOMEM, 'a full receive queue', conn.post_recv, recv_wr([sge(mr)]))
    expect_errno(
        (EINVAL, errno.ENOMEM),
        'inline too long',
        conn.post,
        conn.send_wr(WR.IBV_WR_SEND, [sge(mr, 4096)], flags=SIGNALED | verbs.INLINE),
    )
    for i in range(depth):
        conn.post(conn.send_wr(WR.IBV_WR_SEND, [sge(mr, 8)], wr_id=i))
        ok(poll(conn.send_cq))
        expect_eq(ok(poll(conn.recv_cq))[0].wr_id, i, 'wr_id')


@case
def send_queue_full():
    """A send queue whose peer answers nothing fills up: ENOMEM."""
    a, b = Node('x1'), Node('x2')
    conn = verbs.Rc(a, b, depth=8, rnr_retry=7)
    mr = a.mr(64)
    depth = conn.send_qp.query(MASK.IBV_QP_CAP)[1].max_send_wr
    with_room = 0
    try:
        for i in range(depth + 1):
            conn.post(conn.send_wr(WR.IBV_WR_SEND, [sge(mr, 8)], wr_id=i))
            with_room += 1
    except Exception as ex:
        expect_eq(ex.error_code, errno.ENOMEM, 'errno')
    expect_eq(with_room, depth, 'posted')
    dst = b.mr(64 * depth)
    for i in range(depth):
        conn.post_recv(recv_wr([sge(dst, 64, 64 * i)]))
    expect_eq([w.wr_id for w in ok(poll(conn.send_cq, depth))], list(range(depth)), 'order')


@case
def srq_life():
    node = Node('x1')
    srq = SRQ(node.pd, SrqInitAttr(SrqAttr(max_wr=20, max_sge=3)))
    got = srq.query()
    expect(got.max_wr >= 20 and got.max_sge >= 3, f'{got.max_wr} {got.max_sge}')
    expect_errno(
        EINVAL,
        'limit above size',
        srq.modify,
        SrqAttr(srq_limit=got.max_wr + 1),
        int(SRQM.IBV_SRQ_LIMIT),
    )
    mr = node.mr(64)
    for _ in range(got.max_wr):
        srq.post_recv(recv_wr([sge(mr)]))
    expect_errno(errno.ENOMEM, 'a full SRQ', srq.post_recv, recv_wr([sge(mr)]))
    # A limit above what is queued would raise its event, and disarm, at once.
    srq.modify(SrqAttr(srq_limit=5), int(SRQM.IBV_SRQ_LIMIT))
    expect_eq(srq.query().srq_limit, 5, 'limit')
    srq.close()


@case
def srq_limit_event():
    a, b = Node('x1'), Node('x2')
    srq = SRQ(b.pd, SrqInitAttr(SrqAttr(max_wr=16, max_sge=1)))
    conn = verbs.Rc(a, b, srq=srq)
    src, dst = a.mr(64), b.mr(64)
    for _ in range(6):
        srq.post_recv(recv_wr([sge(dst)]))
    srq.modify(SrqAttr(srq_limit=4), int(SRQM.IBV_SRQ_LIMIT))
    for n in range(4):
        conn.post(conn.send_wr(WR.IBV_WR_SEND, [sge(src)]))
        ok(poll(conn.send_cq))
        ok(poll(conn.recv_cq))
    # IBV_EVENT_SRQ_LIMIT_REACHED, once.
    expect_eq(b.events(5), [15], 'events')
    expect_eq(srq.query().srq_limit, 0, 'limit afterwards')


@case
def ah_life():
    node = Node('x1')
    AH(node.pd, attr=node.ah_attr(Node('x2'))).close()
    bad = AHAttr(
        port_num=1, is_global=1, gr=GlobalRoute(dgid=node.gid, sgid_index=250, hop_limit=1)
    )
    expect_errno((errno.ENODATA, EINVAL, errno.EIO), 'GID index 250', AH, node.pd, attr=bad)
    expect_errno(
        EINVAL,
        'port 3',
        AH,
        node.pd,
        attr=AHAttr(
            port_num=3, is_global=1, gr=GlobalRoute(dgid=node.gid, sgid_index=node.gid_index)
        ),
    )
    expect_errno(EINVAL, 'no GRH', AH, node.pd, attr=AHAttr(port_num=1, is_global=0, dlid=1))


@case
def unsupported_qp_types():
    node = Node('x1')
    for kind in (QPT.IBV_QPT_RAW_PACKET, QPT.IBV_QPT_DRIVER):
        expect_errno(
            (errno.EOPNOTSUPP, EINVAL),
            str(kind),
            QP,
            node.pd,
            QPInitAttr(
                qp_type=kind, scq=node.cq, rcq=node.cq, cap=QPCap(max_send_wr=1, max_recv_wr=1)
            ),
        )


@case
def xrcd_open_errors():
    node = Node('x1')
    need_xrc(node)
    both = XRCDI.IBV_XRCD_INIT_ATTR_FD | XRCDI.IBV_XRCD_INIT_ATTR_OFLAGS

    def make(fd, flags):
        return XRCD(node.ctx, XRCDInitAttr(both, flags, fd))

    with tempfile.NamedTemporaryFile() as f:
        fd = f.fileno()
        expect_errno(errno.EAGAIN, 'no domain and no O_CREAT', make, fd, 0)
        one = make(fd, os.O_CREAT)
        expect_errno(EINVAL, 'O_EXCL on an existing one', make, fd, os.O_CREAT | os.O_EXCL)
        expect_errno(EINVAL, 'O_EXCL without O_CREAT', make, fd, os.O_EXCL)
        two = make(fd, 0)
        one.close()
        three = make(fd, 0)
        two.close()
        three.close()
        expect_errno(errno.EAGAIN, 'after the last close', make, fd, 0)
        make(fd, os.O_CREAT | os.O_EXCL).close()
    expect_errno(errno.EBADF, 'a closed descriptor', make, 987, os.O_CREAT)
    make(-1, os.O_CREAT).close()


@case
def xrcd_by_inode():
    node = Node('x1')
    need_xrc(node)
    with tempfile.TemporaryDirectory() as d:
        path = d + '/a'
        first = verbs.Domain(node, path)
        os.link(path, d + '/b')
        both = XRCDI.IBV_XRCD_INIT_ATTR_FD | XRCDI.IBV_XRCD_INIT_ATTR_OFLAGS
        fd = os.open(d + '/b', os.O_RDONLY)
        same = XRCD(node.ctx, XRCDInitAttr(both, 0, fd))
        os.close(fd)
        os.unlink(path)
        os.unlink(d + '/b')
        # Without O_CREAT, it was found by its other name.
        same.close()
        first.close()


@case
def xrc_srq_life():
    node = Node('x1')
    need_xrc(node)
    domain = verbs.Domain(node)
    srqs = [domain.srq() for _ in range(20)]
    numbers = [s.get_srq_num() for s in srqs]
    expect_eq(len(set(numbers)), 20, 'distinct SRQ numbers')
    got = srqs[0].query()
    expect(got.max_wr >= 64, 'max_wr')
    mr = node.mr(64)
    for _ in range(8):
        srqs[0].post_recv(recv_wr([sge(mr)]))
    srqs[0].modify(SrqAttr(srq_limit=5), int(SRQM.IBV_SRQ_LIMIT))
    expect_eq(srqs[0].query().srq_limit, 5, 'limit')
    for s in srqs:
        s.close()
    domain.close()


@case
def xrc_qp_refused():
    node = Node('x1')
    need_xrc(node)
    domain = verbs.Domain(node)
    mr = node.mr(64)
    tgt, ini = domain.tgt(), verbs.initiator(node)
    expect_errno((EINVAL, errno.EOPNOTSUPP), 'receive on an INI', ini.post_recv, recv_wr([sge(mr)]))
    tgt.to_init(QPAttr(port_num=1))
    expect_errno((EINVAL, errno.EOPNOTSUPP), 'receive on a TGT', tgt.post_recv, recv_wr([sge(mr)]))
    expect_errno(
        (EINVAL, errno.EOPNOTSUPP),
        'send on a TGT',
        tgt.post_send,
        SendWR(opcode=WR.IBV_WR_SEND, num_sge=1, sg=[sge(mr)]),
    )
    attr = SrqInitAttrEx(max_wr=4, max_sge=1)
    attr.srq_type, attr.pd, attr.cq = SRQT.IBV_SRQT_XRC, node.pd, node.cq
    attr.comp_mask = (
        SRQI.IBV_SRQ_INIT_ATTR_TYPE | SRQI.IBV_SRQ_INIT_ATTR_PD | SRQI.IBV_SRQ_INIT_ATTR_CQ
    )
    expect_errno((EINVAL, errno.EOPNOTSUPP), 'an XRC SRQ without a domain', SRQ, node.ctx, attr)
    expect_errno(
        (EINVAL, errno.EOPNOTSUPP),
        'a TGT without a domain',
        QP,
        node.ctx,
        QPInitAttrEx(qp_type=QPT.IBV_QPT_XRC_RECV, pd=node.pd, comp_mask=INIT.IBV_QP_INIT_ATTR_PD),
    )


@case
def many_objects_come_and_go():
    node = Node('x1')
    for _ in range(2 if ktap.DEBUG else 5):
        things = []
        for _ in range(30):
            cq = CQ(node.ctx, 16)
            mr = node.mr(100)
            qp = rc(node)
            things += [qp, mr, cq]
        for t in things:
            t.close()
    gc.collect()


ktap.main(lambda: net.hosts_up())
