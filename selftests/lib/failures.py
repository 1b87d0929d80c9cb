# SPDX-License-Identifier: GPL-2.0
"""Errors between two ends: both see the right completion status and the right event.

Each function makes a connection of a kind ('rc', 'xrc') at one of the PLACES."""
import time

import ktap
import net
import verbs
from ktap import expect, expect_eq
from pyverbs.pd import PD
from verbs import (
    ACC,
    ALL,
    LOCAL,
    MASK,
    QPS,
    WCS,
    WR,
    Node,
    QPAttr,
    get,
    nothing,
    ok,
    poll,
    put,
    recv_wr,
    sge,
    status_name,
)

# The requester's device and the responder's.
PLACES = {'wire': ('x1', 'x2'), 'back': ('x2', 'x1'), 'local': ('x1', 'x1')}

EVENT_CQ_ERR, EVENT_QP_FATAL, EVENT_QP_REQ_ERR, EVENT_QP_ACCESS_ERR, EVENT_COMM_EST = range(5)
FLUSH = WCS.IBV_WC_WR_FLUSH_ERR


def state(qp):
    return qp.query(MASK.IBV_QP_STATE)[0].qp_state


KINDS = {'rc': verbs.Rc, 'xrc': verbs.Xrc, 'uc': verbs.Uc, 'ud': verbs.Ud}


def fresh(kind, place, send_cqe=512, **opts):
    one, two = PLACES[place]
    a = Node(one, cqe=send_cqe)
    b = a if one == two else Node(two)
    if kind == 'xrc' and not verbs.has_xrc(b):
        raise ktap.Skip('no XRC')
    return KINDS[kind](a, b, **opts)


def fails(conn, wr, status, behind=True):
    """Post wr and, behind it, another: the first fails with status, the second is flushed."""
    probe = conn.a.mr(8)
    conn.post(wr)
    if behind:
        try:
            conn.post(conn.send_wr(WR.IBV_WR_SEND, [sge(probe)], wr_id=99))
        except Exception:
            # The QP was in error before we got here, and says so.
            behind = False
    wcs = poll(conn.send_cq, 2 if behind else 1, seconds=60)
    expect_eq(status_name(wcs[0].status), status.name, 'status')
    if behind:
        expect_eq((status_name(wcs[1].status), wcs[1].wr_id), (FLUSH.name, 99), 'the one behind')
    expect_eq(state(conn.send_qp), QPS.IBV_QPS_ERR, "the requester's state")


def responder_broken(conn, event):
    expect(event in conn.b.events(10), f'no event {event}')
    ktap.wait_for("the responder's error state", 5, lambda: state(conn.tgt_qp) == QPS.IBV_QPS_ERR)


def wr_to(conn, op, src, rkey, addr, length=64):
    if op in (WR.IBV_WR_ATOMIC_FETCH_AND_ADD, WR.IBV_WR_ATOMIC_CMP_AND_SWP):
        return conn.atomic_wr(op, [sge(src, 8)], rkey, addr, 1)
    return conn.send_wr(op, [sge(src, length)], rkey=rkey, raddr=addr)


OPS = {
    'write': WR.IBV_WR_RDMA_WRITE,
    'read': WR.IBV_WR_RDMA_READ,
    'atomic': WR.IBV_WR_ATOMIC_FETCH_AND_ADD,
    'write_imm': WR.IBV_WR_RDMA_WRITE_WITH_IMM,
}


def remote(kind, place, op, how):
    conn = fresh(kind, place)
    src = conn.a.mr(4096)
    pd = PD(conn.b.ctx) if how == 'pd' else conn.dst_pd
    access = {'flags': LOCAL}.get(how, ALL)
    dst = conn.b.mr(4096, access, pd)
    put(dst, b'untouched' * 100)
    rkey, addr, length = dst.rkey, dst.buf + 64, 64
    if how == 'key':
        rkey ^= 0xFF
    elif how == 'no-such-key':
        rkey = 0x7FFFFF01
    elif how == 'beyond':
        addr = dst.buf + 4096 - 32 if op != 'atomic' else dst.buf + 4096
    elif how == 'before':
        addr = dst.buf - 64
    elif how == 'wrap':
        addr = (1 << 64) - 16
    elif how == 'long':
        length = 4096
    elif how == 'gone':
        dst.close()
    if op == 'write_imm':
        conn.post_recv(recv_wr([]))
    fails(conn, wr_to(conn, OPS[op], src, rkey, addr, length), WCS.IBV_WC_REM_ACCESS_ERR)
    responder_broken(conn, EVENT_QP_ACCESS_ERR)
    if how != 'gone':
        expect(get(dst, 900) == b'untouched' * 100, 'memory was touched')
    conn.close()


def qp_access(kind, place, op):
    """The QP does not allow what the memory region does."""
    allowed = ALL & ~int(
        {
            'write': ACC.IBV_ACCESS_REMOTE_WRITE,
            'read': ACC.IBV_ACCESS_REMOTE_READ,
            'atomic': ACC.IBV_ACCESS_REMOTE_ATOMIC,
        }[op]
    )
    conn = fresh(kind, place, access=allowed)
    src, dst = conn.a.mr(64), conn.b.mr(64)
    conn.post(wr_to(conn, OPS[op], src, dst.rkey, dst.buf))
    status = poll(conn.send_cq)[0].status
    # IBTA: an invalid request, when the QP has the operation off (C9-88).
    expect(status in (WCS.IBV_WC_REM_INV_REQ_ERR, WCS.IBV_WC_REM_ACCESS_ERR), status_name(status))
    expect_eq(get(dst, 64), bytes(64), 'memory')
    conn.close()


def misaligned(kind, place):
    conn = fresh(kind, place)
    src, dst = conn.a.mr(64), conn.b.mr(64)
    conn.post(conn.atomic_wr(OPS['atomic'], [sge(src, 8)], dst.rkey, dst.buf + 4, 1))
    status = poll(conn.send_cq)[0].status
    expect(status in (WCS.IBV_WC_REM_INV_REQ_ERR, WCS.IBV_WC_REM_ACCESS_ERR), status_name(status))
    expect_eq(get(dst, 64), bytes(64), 'memory')
    conn.close()


def zero_length(kind, place):
    """A transfer of no bytes needs no valid key."""
    conn = fresh(kind, place)
    src = conn.a.mr(64)
    for op in (WR.IBV_WR_RDMA_WRITE, WR.IBV_WR_RDMA_READ):
        conn.post(conn.send_wr(op, [sge(src, 0)], rkey=0x12345678, raddr=0))
        ok(poll(conn.send_cq))
    conn.close()


def local_key(kind, place, how):
    """A bad lkey is the requester's own error; the responder sees nothing."""
    conn = fresh(kind, place)
    pd = PD(conn.a.ctx) if how == 'pd' else conn.a.pd
    src, dst = conn.a.mr(4096, ALL, pd), conn.b.mr(4096)
    conn.post_recv(recv_wr([sge(dst)]))
    element = sge(src, 64)
    if how == 'key':
        element = verbs.SGE(src.buf, 64, src.lkey ^ 0xFF)
    elif how == 'beyond':
        element = verbs.SGE(src.buf + 4090, 64, src.lkey)
    elif how == 'gone':
        src.close()
    fails(conn, conn.send_wr(WR.IBV_WR_SEND, [element]), WCS.IBV_WC_LOC_PROT_ERR)
    expect_eq(get(dst, 64), bytes(64), 'memory')
    conn.close()


def read_into_readonly(kind, place):
    conn = fresh(kind, place)
    dst, src = conn.a.mr(64, 0), conn.b.mr(64)
    fails(conn, wr_to(conn, OPS['read'], dst, src.rkey, src.buf), WCS.IBV_WC_LOC_PROT_ERR)
    conn.close()


def too_long_for_receive(kind, place):
    conn = fresh(kind, place)
    src, dst = conn.a.mr(8192), conn.b.mr(8192)
    conn.post_recv(recv_wr([sge(dst, 100)], wr_id=7))
    fails(conn, conn.send_wr(WR.IBV_WR_SEND, [sge(src, 5000)]), WCS.IBV_WC_REM_INV_REQ_ERR)
    rx = poll(conn.recv_cq)[0]
    expect_eq((status_name(rx.status), rx.wr_id), (WCS.IBV_WC_LOC_LEN_ERR.name, 7), 'the receive')
    expect_eq(get(dst, 8092, 100), bytes(8092), 'memory behind the buffer')
    conn.close()


def bad_receive(kind, place, how):
    """A receive with a bad lkey: an operation error at the requester."""
    conn = fresh(kind, place)
    pd = PD(conn.b.ctx) if how == 'pd' else conn.b.pd
    src, dst = conn.a.mr(64), conn.b.mr(64, 0 if how == 'flags' else LOCAL, pd)
    element = verbs.SGE(dst.buf, 64, dst.lkey ^ (0xFF if how == 'key' else 0))
    conn.post_recv(recv_wr([element], wr_id=5))
    if how == 'gone':
        dst.close()
    fails(conn, conn.send_wr(WR.IBV_WR_SEND, [sge(src)]), WCS.IBV_WC_REM_OP_ERR)
    rx = poll(conn.recv_cq)[0]
    expect_eq((status_name(rx.status), rx.wr_id), (WCS.IBV_WC_LOC_PROT_ERR.name, 5), 'the receive')
    if how != 'gone':
        expect_eq(get(dst, 64), bytes(64), 'memory')
    conn.close()


def rnr_then_receive(kind, place):
    """Receiver not ready: the requester waits and the message arrives, once."""
    conn = fresh(kind, place, rnr_timer=10, rnr_retry=7)
    src, dst = conn.a.mr(6000), conn.b.mr(6000)
    put(src, verbs.pattern(5, 6000))
    conn.post(conn.send_wr(WR.IBV_WR_SEND, [sge(src)]))
    conn.post(conn.send_wr(WR.IBV_WR_SEND, [sge(src, 10)], wr_id=3))
    time.sleep(0.1)
    nothing(conn.send_cq)
    conn.post_recv(recv_wr([sge(dst)], wr_id=1))
    ok(poll(conn.send_cq))
    expect_eq(ok(poll(conn.recv_cq))[0].byte_len, 6000, 'byte_len')
    expect(get(dst, 6000) == verbs.pattern(5, 6000), 'payload')
    nothing(conn.recv_cq)
    conn.post_recv(recv_wr([sge(dst)], wr_id=2))
    expect_eq(ok(poll(conn.recv_cq))[0].byte_len, 10, 'byte_len')
    ok(poll(conn.send_cq))
    conn.close()


def rnr_exceeded(kind, place):
    conn = fresh(kind, place, rnr_timer=4, rnr_retry=2)
    src = conn.a.mr(64)
    fails(conn, conn.send_wr(WR.IBV_WR_SEND, [sge(src)]), WCS.IBV_WC_RNR_RETRY_EXC_ERR)
    conn.close()


def rnr_imm(kind, place):
    """WRITE with immediate places its data but once, and waits for a receive."""
    conn = fresh(kind, place, rnr_timer=8)
    src, dst = conn.a.mr(3000), conn.b.mr(3000)
    put(src, verbs.pattern(9, 3000))
    conn.post(
        conn.send_wr(
            WR.IBV_WR_RDMA_WRITE_WITH_IMM, [sge(src)], imm=77, rkey=dst.rkey, raddr=dst.buf
        )
    )
    time.sleep(0.05)
    nothing(conn.send_cq)
    conn.post_recv(recv_wr([]))
    expect_eq(ok(poll(conn.recv_cq))[0].imm_data, 77, 'immediate')
    ok(poll(conn.send_cq))
    expect(get(dst, 3000) == verbs.pattern(9, 3000), 'payload')
    conn.close()


def retry_exceeded(kind, place):
    """The responder is gone: the requester gives up after its retries."""
    conn = fresh(kind, place, timeout=8, retry=2)
    src = conn.a.mr(64)
    conn.tgt_qp.modify(QPAttr(qp_state=QPS.IBV_QPS_RESET), MASK.IBV_QP_STATE)
    fails(conn, conn.send_wr(WR.IBV_WR_SEND, [sge(src)]), WCS.IBV_WC_RETRY_EXC_ERR)
    conn.close()


def destroyed_peer(kind, place):
    conn = fresh(kind, place, timeout=8, retry=2)
    src = conn.a.mr(64)
    conn.tgt_qp.close()
    fails(conn, conn.send_wr(WR.IBV_WR_SEND, [sge(src)]), WCS.IBV_WC_RETRY_EXC_ERR)
    conn.send_qp.close()


def flush(kind, place):
    """modify to ERR flushes what is queued, in order; posts in ERR are flushed too."""
    conn = fresh(kind, place, rnr_retry=7, rnr_timer=20)
    src, dst = conn.a.mr(64), conn.b.mr(64)
    for i in range(10):
        conn.post(conn.send_wr(WR.IBV_WR_SEND, [sge(src)], wr_id=i, flags=0))
    conn.send_qp.modify(QPAttr(qp_state=QPS.IBV_QPS_ERR), MASK.IBV_QP_STATE)
    wcs = poll(conn.send_cq, 10)
    expect_eq([(w.wr_id, w.status) for w in wcs], [(i, int(FLUSH)) for i in range(10)], 'sends')
    conn.post(conn.send_wr(WR.IBV_WR_SEND, [sge(src)], wr_id=50))
    wc = poll(conn.send_cq)[0]
    expect_eq((wc.wr_id, wc.status), (50, int(FLUSH)), 'a send posted in ERR')
    if kind == 'rc':
        for i in range(5):
            conn.post_recv(recv_wr([sge(dst)], wr_id=i))
        conn.recv_qp.modify(QPAttr(qp_state=QPS.IBV_QPS_ERR), MASK.IBV_QP_STATE)
        wcs = poll(conn.recv_cq, 5)
        expect_eq(
            [(w.wr_id, w.status) for w in wcs], [(i, int(FLUSH)) for i in range(5)], 'receives'
        )
        conn.post_recv(recv_wr([sge(dst)], wr_id=51))
        wc = poll(conn.recv_cq)[0]
        expect_eq((wc.wr_id, wc.status), (51, int(FLUSH)), 'a receive posted in ERR')
    conn.close()


def reset_and_again(kind, place):
    """A QP that failed works again after RESET."""
    conn = fresh(kind, place, rnr_timer=4, rnr_retry=1)
    src, dst = conn.a.mr(64), conn.b.mr(64)
    fails(conn, conn.send_wr(WR.IBV_WR_SEND, [sge(src)]), WCS.IBV_WC_RNR_RETRY_EXC_ERR)
    for qp in (conn.send_qp, conn.tgt_qp):
        qp.modify(QPAttr(qp_state=QPS.IBV_QPS_RESET), MASK.IBV_QP_STATE)
    conn.tgt_qp.to_rts(verbs.attributes(conn.b, conn.a, conn.send_qp.qp_num, psn=7, peer_psn=9))
    conn.send_qp.to_rts(verbs.attributes(conn.a, conn.b, conn.tgt_qp.qp_num, psn=9, peer_psn=7))
    for i in range(20):
        conn.post_recv(recv_wr([sge(dst)]))
        conn.post(conn.send_wr(WR.IBV_WR_SEND, [sge(src)]))
        ok(poll(conn.send_cq))
        ok(poll(conn.recv_cq))
    conn.close()


def sqd(kind, place):
    """SQD: what was posted before drains, what comes later waits for RTS."""
    conn = fresh(kind, place)
    src, dst = conn.a.mr(64), conn.b.mr(64)
    conn.post(conn.send_wr(WR.IBV_WR_RDMA_WRITE, [sge(src)], rkey=dst.rkey, raddr=dst.buf))
    attr = QPAttr(qp_state=QPS.IBV_QPS_SQD)
    attr.en_sqd_async_notify = 1
    conn.send_qp.modify(attr, MASK.IBV_QP_STATE | MASK.IBV_QP_EN_SQD_ASYNC_NOTIFY)
    ok(poll(conn.send_cq))
    # IBV_EVENT_SQ_DRAINED
    expect(5 in conn.a.events(10), 'no IBV_EVENT_SQ_DRAINED')
    conn.post(conn.send_wr(WR.IBV_WR_RDMA_WRITE, [sge(src)], rkey=dst.rkey, raddr=dst.buf))
    time.sleep(0.05)
    nothing(conn.send_cq, 'progress in SQD')
    conn.send_qp.modify(QPAttr(qp_state=QPS.IBV_QPS_RTS), MASK.IBV_QP_STATE)
    ok(poll(conn.send_cq))
    conn.close()


def sqd_quietly(kind, place):
    """SQD without en_sqd_async_notify: it drains, and no event says so."""
    conn = fresh(kind, place)
    src, dst = conn.a.mr(64), conn.b.mr(64)
    conn.post(conn.send_wr(WR.IBV_WR_RDMA_WRITE, [sge(src)], rkey=dst.rkey, raddr=dst.buf))
    conn.send_qp.modify(QPAttr(qp_state=QPS.IBV_QPS_SQD), MASK.IBV_QP_STATE)
    ok(poll(conn.send_cq))
    end = ktap.deadline(10)
    while conn.send_qp.query(MASK.IBV_QP_STATE)[0].sq_draining:
        expect(time.monotonic() < end, 'it drains for ever')
    expect(conn.a.events() == [], 'an event that nobody asked for')
    # What waits for RTS is not under way.
    conn.post(conn.send_wr(WR.IBV_WR_RDMA_WRITE, [sge(src)], rkey=dst.rkey, raddr=dst.buf))
    expect(not conn.send_qp.query(MASK.IBV_QP_STATE)[0].sq_draining, 'a waiting request drains')
    conn.close()


def fewer_reads_in_sqd(kind, place):
    """max_dest_rd_atomic changes in SQD: 0 forbids READs."""
    conn = fresh(kind, place)
    src, dst = conn.a.mr(64), conn.b.mr(64)
    read = lambda: conn.post(
        conn.send_wr(WR.IBV_WR_RDMA_READ, [sge(src)], rkey=dst.rkey, raddr=dst.buf)
    )
    read()
    ok(poll(conn.send_cq))
    conn.tgt_qp.modify(QPAttr(qp_state=QPS.IBV_QPS_SQD), MASK.IBV_QP_STATE)
    attr = QPAttr(qp_state=QPS.IBV_QPS_SQD)
    attr.max_dest_rd_atomic = 0
    conn.tgt_qp.modify(attr, MASK.IBV_QP_STATE | MASK.IBV_QP_MAX_DEST_RD_ATOMIC)
    read()
    expect(poll(conn.send_cq)[0].status == WCS.IBV_WC_REM_INV_REQ_ERR, 'a READ beyond the limit')
    conn.close()


def events_of(node, wanted):
    """The events of a CQ and a QP that come are those, in any order."""
    got = []

    def all_there():
        got.extend(e for e in node.events(1) if e <= EVENT_QP_ACCESS_ERR)
        return len(got) >= len(wanted)

    ktap.wait_for(f'events {wanted}', 10, all_there)
    expect_eq(sorted(got), sorted(wanted), 'events')


def in_error(qp):
    ktap.wait_for('the error state', 10, lambda: state(qp) == QPS.IBV_QPS_ERR)


def go_on(kind, place):
    """Another connection of the same devices is not disturbed."""
    other = fresh(kind, place)
    src, dst = other.a.mr(64), other.b.mr(128)
    other.post_recv(recv_wr([sge(dst)]))
    other.post(other.send_wr(WR.IBV_WR_SEND, [sge(src)]))
    ok(poll(other.send_cq))
    ok(poll(other.recv_cq))
    other.close()


def post_in_vain(post, count=200):
    """What is posted to a queue pair that nobody can hear of ends nowhere, and nothing waits for
    it."""
    try:
        for _ in range(count):
            post()
    except Exception:
        # Full, in the end.
        pass


def cq_overflow(kind, place):
    """More sends complete than their CQ holds: IBV_EVENT_CQ_ERR, and the queue pair ends, whatever
    its type."""
    conn = fresh(kind, place, send_cqe=4)
    src, dst = conn.a.mr(64), conn.b.mr(128)
    room = conn.a.cq.cqe
    if room + 8 > 60:
        raise ktap.Skip(f'the smallest CQ holds {room}')
    for n in range(room + 8):
        conn.post_recv(recv_wr([sge(dst)], wr_id=n))
    send = lambda: conn.post(conn.send_wr(WR.IBV_WR_SEND, [sge(src)]))
    post_in_vain(send, room + 8)
    if net.TYPE == 'rxe':
        expect(EVENT_CQ_ERR in conn.a.events(10), 'no IBV_EVENT_CQ_ERR')
        return go_on(kind, place)
    events_of(conn.a, [EVENT_CQ_ERR, EVENT_QP_FATAL])
    in_error(conn.send_qp)
    post_in_vain(send)
    # It ends once: in RESET and again in RTS it is as before, and so is the queue.
    conn.send_qp.modify(QPAttr(qp_state=QPS.IBV_QPS_RESET), MASK.IBV_QP_STATE)
    expect_eq(state(conn.send_qp), QPS.IBV_QPS_RESET, 'state')
    expect_eq([e for e in conn.a.events() if e <= EVENT_QP_ACCESS_ERR], [], 'events afterwards')
    go_on(kind, place)
    conn.close()


def receives_overflow(kind, place):
    """More receives complete than their CQ holds: a message that nobody can hear of is not
    acknowledged, and ends the queue pair. Not an XRC target: others receive through it, at other
    queues."""
    xrc, datagrams = kind == 'xrc', kind == 'ud'
    opts = {} if datagrams else {'rnr_retry': 2, 'rnr_timer': 1}
    conn = fresh(kind, place, cqe=2, **opts)
    src, dst = conn.a.mr(64), conn.b.mr(128)
    room = conn.recv_cq.cqe
    tgt = conn.recv_qp if not xrc else conn.tgt_qp
    send = lambda n: conn.post(conn.send_wr(WR.IBV_WR_SEND, [sge(src)], wr_id=n))
    for n in range(room + 2):
        conn.post_recv(recv_wr([sge(dst)], wr_id=n))
    for n in range(room):
        send(n)
        ok(poll(conn.send_cq))
    put(dst, bytes(128))
    send(room)
    status = poll(conn.send_cq, seconds=60)[0].status
    wanted = {'rc': WCS.IBV_WC_REM_OP_ERR, 'xrc': WCS.IBV_WC_RNR_RETRY_EXC_ERR}.get(
        kind, WCS.IBV_WC_SUCCESS
    )
    expect_eq(status_name(status), wanted.name, 'status')
    events_of(conn.b, [EVENT_CQ_ERR] + [EVENT_QP_FATAL] * (not xrc))
    if not xrc:
        in_error(tgt)
        post_in_vain(lambda: conn.post_recv(recv_wr([sge(dst)])))
        tgt.modify(QPAttr(qp_state=QPS.IBV_QPS_RESET), MASK.IBV_QP_STATE)
        go_on(kind, place)
        return conn.close()
    # The sender comes again where it stopped, and finds the target as it was; the queue's PD is
    # there, too.
    expect_eq(state(tgt), QPS.IBV_QPS_RTS, "the target's state")
    cq = verbs.CQ(conn.b.ctx, 16)
    other = conn.domain.srq(cq)
    other.post_recv(recv_wr([sge(dst)], wr_id=77))
    conn.send_qp.modify(QPAttr(qp_state=QPS.IBV_QPS_RESET), MASK.IBV_QP_STATE)
    conn.send_qp.to_rts(
        verbs.attributes(conn.a, conn.b, tgt.qp_num, psn=0xFFFFF0 + room, rnr_retry=2)
    )
    conn.post(conn.send_wr(WR.IBV_WR_RDMA_WRITE, [sge(src)], rkey=dst.rkey, raddr=dst.buf))
    ok(poll(conn.send_cq))
    broken, conn.srqn = conn.srqn, other.get_srq_num()
    send(50)
    ok(poll(conn.send_cq))
    expect_eq(ok(poll(cq))[0].wr_id, 77, 'the receive')
    conn.srqn = broken
    # No further receive is spent on what nobody hears of.
    send(51)
    expect_eq(status_name(poll(conn.send_cq, seconds=60)[0].status), wanted.name, 'status')
    expect_eq([e for e in conn.b.events() if e <= EVENT_QP_ACCESS_ERR], [], 'events afterwards')
    other.close()
    cq.close()
    conn.close()


def xrc_number(place, how):
    """An SRQ number that does not exist, or is of another domain (DESIGN: never silent)."""
    conn = fresh('xrc', place)
    src = conn.a.mr(64)
    if how == 'unknown':
        conn.srqn = 0xABCDEF
    elif how == 'basic':
        from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr

        conn.srqs.append(SRQ(conn.b.pd, SrqInitAttr(SrqAttr(max_wr=4))))
        conn.srqn = (conn.srqn + 1) & 0xFFFFFF
    else:
        other = verbs.Domain(conn.b)
        foreign = other.srq()
        foreign.post_recv(recv_wr([sge(conn.b.mr(64))]))
        conn.srqn = foreign.get_srq_num()
    fails(conn, conn.send_wr(WR.IBV_WR_SEND, [sge(src)]), WCS.IBV_WC_REM_INV_REQ_ERR)
    responder_broken(conn, EVENT_QP_ACCESS_ERR)


def xrc_number_write(place):
    """RDMA over XRC names an SRQ, too: its PD is that of the rkey."""
    conn = fresh('xrc', place)
    src, dst = conn.a.mr(64), conn.b.mr(64)
    conn.srqn = 0xABCDEF
    fails(
        conn,
        conn.send_wr(WR.IBV_WR_RDMA_WRITE, [sge(src)], rkey=dst.rkey, raddr=dst.buf),
        WCS.IBV_WC_REM_INV_REQ_ERR,
    )
    expect_eq(get(dst, 64), bytes(64), 'memory')
    responder_broken(conn, EVENT_QP_ACCESS_ERR)


def xrc_pd_of_srq(place):
    """The key is checked against the PD of the SRQ that the packet names."""
    conn = fresh('xrc', place, srqs=1)
    pd2 = PD(conn.b.ctx)
    second = conn.domain.srq(conn.recv_cq, pd=pd2)
    src, first_mr, second_mr = conn.a.mr(64), conn.b.mr(64), conn.b.mr(64, ALL, pd2)
    put(src, b'x' * 64)
    conn.post(
        conn.send_wr(WR.IBV_WR_RDMA_WRITE, [sge(src)], rkey=first_mr.rkey, raddr=first_mr.buf)
    )
    ok(poll(conn.send_cq))
    conn.srqn = second.get_srq_num()
    conn.post(
        conn.send_wr(WR.IBV_WR_RDMA_WRITE, [sge(src)], rkey=second_mr.rkey, raddr=second_mr.buf)
    )
    ok(poll(conn.send_cq))
    expect_eq(get(second_mr, 64), b'x' * 64, 'payload')
    put(first_mr, bytes(64))
    fails(
        conn,
        conn.send_wr(WR.IBV_WR_RDMA_WRITE, [sge(src)], rkey=first_mr.rkey, raddr=first_mr.buf),
        WCS.IBV_WC_REM_ACCESS_ERR,
    )
    expect_eq(get(first_mr, 64), bytes(64), 'memory')


def others_go_on(kind, place):
    """While one connection fails, its neighbour on the same CQs carries on."""
    good = fresh(kind, place)
    src, dst = good.a.mr(64), good.b.mr(64)
    for i in range(5):
        bad = fresh(kind, place)
        remote_src = bad.a.mr(64)
        bad.post(bad.send_wr(WR.IBV_WR_RDMA_WRITE, [sge(remote_src)], rkey=0x99999999, raddr=64))
        good.post_recv(recv_wr([sge(dst)]))
        good.post(good.send_wr(WR.IBV_WR_SEND, [sge(src)]))
        ok(poll(good.send_cq))
        ok(poll(good.recv_cq))
        expect_eq(
            status_name(poll(bad.send_cq)[0].status), WCS.IBV_WC_REM_ACCESS_ERR.name, 'status'
        )
        bad.close()
