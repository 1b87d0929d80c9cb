#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs in each of three guests (tools/vm/run --hosts). The last host loses its power while the two
others write to its memory by RC, XRC and a connection of the connection manager. They must get
errors for what they have posted, be able to release everything, and use the same queue pairs to
reach each other.
"""
import json
import subprocess
import sys
import threading

from board import DEVICE, HOST, HOSTS, Board, address, barrier

from verbs import ALL, SIGNALED, Domain, Node, attributes, initiator, poll, sge, status_name
from pyverbs.cmid import CMID, AddrInfo
from pyverbs.cq import CQ
from pyverbs.librdmacm_enums import RAI_PASSIVE, rdma_port_space
from pyverbs.libibverbs_enums import (
    ibv_qp_attr_mask as MASK,
    ibv_qp_state as QPS,
    ibv_qp_type as QPT,
    ibv_wc_status as WCS,
    ibv_wr_opcode as WR,
)
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SendWR

VICTIM = HOSTS
LIVES = [i for i in range(1, HOSTS + 1) if i != VICTIM]
SIZE = 4096
# Rounds of writes before it dies.
ROUNDS = 20
CM_PORT = '7002'
CAP = QPCap(max_send_wr=16, max_recv_wr=16, max_send_sge=1, max_recv_sge=1)


def rc_qp(node, cq):
    """An RC queue pair."""
    return QP(node.pd, QPInitAttr(qp_type=QPT.IBV_QPT_RC, scq=cq, rcq=cq, cap=CAP))


def answer(count):
    """A process that accepts connections of the connection manager: pyverbs lets no other thread
    run while it waits. Prints a line once it listens, and one with the key and the address of
    memory for each connection when all have come. Ends when its input does."""
    info = AddrInfo(
        src=address(HOST),
        src_service=CM_PORT,
        port_space=rdma_port_space.RDMA_PS_TCP,
        flags=RAI_PASSIVE,
    )
    listener = CMID(creator=info, qp_init_attr=QPInitAttr(qp_type=QPT.IBV_QPT_RC, cap=CAP))
    listener.listen(count)
    print('listens', flush=True)
    ids = []
    for _ in range(count):
        ids.append(listener.get_request())
        ids[-1].accept()
    memory = [cmid.reg_write(SIZE) for cmid in ids]
    print(json.dumps([[mr.rkey, mr.buf] for mr in memory]), flush=True)
    sys.stdin.read()


class Answering:
    """That process."""

    def __init__(self, count):
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout.readline() == 'listens\n', 'nobody listens'

    def memory(self):
        """[key, address] for each connection; waits for all of them."""
        return json.loads(self.process.stdout.readline())


def dial(host):
    """A connection of the connection manager to host."""
    info = AddrInfo(
        src=address(HOST),
        dst=address(host),
        dst_service=CM_PORT,
        port_space=rdma_port_space.RDMA_PS_TCP,
    )
    cmid = CMID(creator=info, qp_init_attr=QPInitAttr(qp_type=QPT.IBV_QPT_RC, cap=CAP))
    cmid.connect()
    return cmid


class Line:
    """A queue pair that writes to the memory of another host."""

    def __init__(self, name, node, qp, cq, mr):
        self.name, self.node, self.qp, self.cq, self.mr = name, node, qp, cq, mr

    def to(self, way, qpn, rkey, addr, srqn=None):
        """Connect it to a queue pair there, for writes to that memory."""
        self.qp.to_rts(attributes(self.node, way, qpn))
        self.rkey, self.addr, self.srqn = rkey, addr, srqn

    def post(self):
        """Post a write."""
        wr = SendWR(
            wr_id=7,
            opcode=WR.IBV_WR_RDMA_WRITE,
            num_sge=1,
            sg=[sge(self.mr, SIZE)],
            send_flags=SIGNALED,
        )
        wr.set_wr_rdma(self.rkey, self.addr)
        if self.srqn is not None:
            wr.set_qp_type_xrc(self.srqn)
        self.qp.post_send(wr)

    def status(self):
        """What became of it."""
        return poll(self.cq, 1, 120)[0].status


class CmLine:
    """The same with a connection of the connection manager."""

    name = 'CM'

    def __init__(self, host):
        self.cmid = dial(host)
        self.mr = self.cmid.reg_msgs(SIZE)

    def post(self):
        """Post a write."""
        self.cmid.post_write(self.mr, SIZE, self.addr, self.rkey, SIGNALED)

    def status(self):
        """What became of it."""
        return self.cmid.get_send_comp().status


def expect(line, wanted):
    """What was posted last has that status."""
    got = line.status()
    assert got == wanted, f'{line.name}: {status_name(got)}, wanted {status_name(wanted)}'


def in_turn(what):
    """Each survivor in turn runs what()."""
    for host in LIVES:
        if host == HOST:
            what()
        barrier(f'turn of {host}')


def connected(node):
    """The ends that each host has: queue pairs by name, and what others must know."""
    cq = CQ(node.ctx, 64)
    domain = Domain(node)
    srq, mr = domain.srq(cq), node.mr(SIZE, ALL)
    return cq, domain, srq, mr, {'srqn': srq.get_srq_num(), 'rkey': mr.rkey, 'addr': mr.buf}


def victim(board, node):
    """Its memory is written to until it dies."""
    answering = Answering(len(LIVES))
    cq, domain, _srq, _mr, known = connected(node)
    ends = {
        peer: {'rc': rc_qp(node, cq), 'tgt': domain.tgt(), 'ini': initiator(node)} for peer in LIVES
    }
    board.put('known', known)
    board.put(
        'ends', {peer: {name: qp.qp_num for name, qp in qps.items()} for peer, qps in ends.items()}
    )
    for peer, qps in ends.items():
        way, theirs = board.way(peer), board.get(peer, 'ends')
        for name, opposite in ('rc', 'rc'), ('tgt', 'ini'), ('ini', 'tgt'):
            qps[name].to_rts(attributes(node, way, theirs[opposite]))
    barrier('connected')
    in_turn(None)
    board.put('cm', answering.memory())
    barrier('under way')
    threading.Event().wait()


def survivor(board, node):
    """Writes to the victim until that fails, and to the other survivor then."""
    other = next(host for host in LIVES if host != HOST)
    cq, domain, _srq, mr, known = connected(node)
    rc, xrc = Line('RC', node, rc_qp(node, cq), cq, mr), Line(
        'XRC', node, initiator(node), node.cq, mr
    )
    tgt = domain.tgt()
    board.put('known', known)
    board.put('ends', {'rc': rc.qp.qp_num, 'ini': xrc.qp.qp_num, 'tgt': tgt.qp_num})

    def dial_all(host, ends):
        way, there = board.way(host), board.get(host, 'known')
        rc.to(way, ends['rc'], there['rkey'], there['addr'])
        xrc.to(way, ends['tgt'], there['rkey'], there['addr'], there['srqn'])
        tgt.to_rts(attributes(node, way, ends['ini']))

    dial_all(VICTIM, board.get(VICTIM, 'ends')[str(HOST)])
    barrier('connected')
    lines = [rc, xrc]
    in_turn(lambda: lines.append(CmLine(VICTIM)))
    cm = lines[-1]
    cm.rkey, cm.addr = board.get(VICTIM, 'cm')[LIVES.index(HOST)]
    for _ in range(ROUNDS):
        for line in lines:
            line.post()
        for line in lines:
            expect(line, WCS.IBV_WC_SUCCESS)
    barrier('under way')
    if HOST == LIVES[0]:
        subprocess.run(['kill-host', str(VICTIM)], check=True)
    print(f'{ROUNDS} rounds of writes have come to host {VICTIM}, which dies', flush=True)
    left, rounds = lines, 0
    while left:
        rounds += 1
        for line in left:
            line.post()
        statuses = {line: line.status() for line in left}
        for line, status in statuses.items():
            assert status in (
                WCS.IBV_WC_SUCCESS,
                WCS.IBV_WC_RETRY_EXC_ERR,
            ), f'{line.name}: {status_name(status)}'
        left = [line for line in left if statuses[line] == WCS.IBV_WC_SUCCESS]
    print(
        f'round {rounds}: all of {[line.name for line in lines]} got IBV_WC_RETRY_EXC_ERR',
        flush=True,
    )
    for line in lines:
        line.post()
        expect(line, WCS.IBV_WC_WR_FLUSH_ERR)
    barrier('dead')
    # Nobody answers there any more, so there is no neighbour.
    subprocess.run(['ip', 'neigh', 'flush', 'dev', 'eth0'], check=True)
    try:
        dial(VICTIM)
    except PyverbsRDMAError as why:
        print(f'dialling host {VICTIM}: {why}', flush=True)
    else:
        raise AssertionError(f'host {VICTIM} answers')
    cm.cmid.close()
    # The same queue pairs and the target are connected with the other survivor.
    for qp in rc.qp, xrc.qp, tgt:
        qp.modify(QPAttr(qp_state=QPS.IBV_QPS_RESET), int(MASK.IBV_QP_STATE))
    dial_all(other, board.get(other, 'ends'))
    lines = [rc, xrc]
    if HOST == LIVES[0]:
        answering = Answering(1)
        barrier('listens')
        board.put('cm', answering.memory())
    else:
        barrier('listens')
        cm = CmLine(other)
        ((cm.rkey, cm.addr),) = board.get(other, 'cm')
        lines.append(cm)
    barrier('redialled')
    for line in lines:
        line.post()
    for line in lines:
        expect(line, WCS.IBV_WC_SUCCESS)
    print(f'host {other} answers to {[line.name for line in lines]}', flush=True)
    barrier('end')
    for qp in rc.qp, xrc.qp, tgt:
        qp.close()


def main():
    if sys.argv[1:]:
        answer(int(sys.argv[1]))
        return
    board = Board()
    node = Node(DEVICE, address(HOST))
    board.put_way(node)
    if HOST == VICTIM:
        victim(board, node)
    else:
        survivor(board, node)


if __name__ == '__main__':
    main()
