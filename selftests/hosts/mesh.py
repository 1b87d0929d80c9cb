#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs in each of several guests (tools/vm/run --hosts).

   mesh.py clean|lossy [SECONDS]

Each host has members, which are what processes are to a device: an open device, a PD, queues. Every
member sends checked messages to every member of every other host, first by RC, with a connection
for each pair, then, if all devices are xroce's, by XRC, with a connection for each member and host.
The queue pairs are counted. On a clean wire nothing may be sent again or come out of order: no
sender has a timer, so that a slow machine cannot make it do so. On a lossy wire something must be.
With SECONDS, all of that is repeated until they are over; each time, the queue pairs are new.
"""
import collections
import sys
import time

from board import DEVICE, HOST, PEERS, Board, address, barrier

import net
from verbs import (
    ALL,
    SIGNALED,
    Domain,
    Node,
    attributes,
    get,
    initiator,
    ok,
    pattern,
    poll,
    put,
    recv_wr,
    sge,
)
from pyverbs.cq import CQ
from pyverbs.libibverbs_enums import ibv_qp_type as QPT, ibv_wr_opcode as WR
from pyverbs.qp import QP, QPCap, QPInitAttr
from pyverbs.wr import SendWR

MEMBERS = 3
LENGTHS = [0, 1, 100, 1024, 1025, 4096, 9000, 3]
ROOM = 9216
# Writes of BLOCK bytes to the next host, and reads.
BLOCK, BLOCKS, READS = 65536, 64, 8
CLEAN = sys.argv[1] == 'clean'
DURATION = int(sys.argv[2]) if len(sys.argv) > 2 else 0
# 4.096 us << n: none, so that only what is asked for is sent again; or 0.5 s, seven times.
TIMEOUT = 0 if CLEAN else 17


class Member:
    """What a process has. Receives are in slots of one buffer and complete in a CQ of their own."""

    def __init__(self, number):
        self.number = number
        self.node = Node(DEVICE, address(HOST))
        self.incoming = len(PEERS) * MEMBERS * len(LENGTHS)
        self.cq = CQ(self.node.ctx, self.incoming + 1)
        self.inbox = self.node.mr(self.incoming * ROOM)
        self.outbox = self.node.mr(len(LENGTHS) * ROOM)
        self.slot = 0

    def receive(self, queue, count):
        """Post receives to a queue, each with a slot of its own."""
        for _ in range(count):
            queue.post_recv(recv_wr([sge(self.inbox, ROOM, self.slot * ROOM)], self.slot))
            self.slot += 1

    def fill(self, kind):
        """The messages that this member sends, and with which others know them."""
        self.sends = []
        for n, length in enumerate(LENGTHS):
            put(self.outbox, pattern(f'{kind} {HOST} {self.number} {n}', length), n * ROOM)
            self.sends.append((HOST << 16 | self.number << 8 | n, length, n * ROOM))

    def send(self, qp, srqn=None):
        """All its messages; the caller polls for them."""
        for imm, length, at in self.sends:
            wr = SendWR(
                wr_id=imm,
                opcode=WR.IBV_WR_SEND_WITH_IMM,
                num_sge=1,
                sg=[sge(self.outbox, length, at)],
                imm_data=imm,
                send_flags=SIGNALED,
            )
            if srqn is not None:
                wr.set_qp_type_xrc(srqn)
            qp.post_send(wr)

    def check(self, kind):
        """Exactly the messages that everybody sent have come."""
        got = collections.Counter()
        for wc in ok(poll(self.cq, self.incoming, 120)):
            host, number, n = wc.imm_data >> 16, wc.imm_data >> 8 & 255, wc.imm_data & 255
            got[wc.imm_data] += 1
            assert (
                wc.byte_len == LENGTHS[n]
            ), f'{kind}: {wc.byte_len} bytes of message {n} of host {host}'
            wanted = pattern(f'{kind} {host} {number} {n}', LENGTHS[n])
            assert (
                get(self.inbox, LENGTHS[n], wc.wr_id * ROOM) == wanted
            ), f'{kind}: message {n} of host {host} differs'
        assert set(got.values()) == {1} and {i >> 16 for i in got} == set(PEERS), f'{kind}: {got}'
        self.slot = 0


def attrs(member, way, qpn, **more):
    """The attributes of a queue pair of a member's."""
    return attributes(member.node, way, qpn, timeout=TIMEOUT, **more)


def counted(kind, **wanted):
    """The device has so many queue pairs, and says so."""
    got = collections.Counter(q['type'] for q in net.rdma('qp', 'link', DEVICE + '/1'))
    got.pop('GSI', None)
    assert got == wanted, f'{kind}: {dict(got)}, wanted {wanted}'
    if not DURATION:
        print(
            f'{kind}: {MEMBERS} members here reach {MEMBERS * len(PEERS)} on {len(PEERS)} '
            'other hosts with '
            + ', '.join(f'{n} {t}' for t, n in sorted(got.items()))
            + ' queue pairs',
            flush=True,
        )


def exchange(kind, members, qps, send):
    """Everybody sends to everybody. qps: of a member. send(member): to all others."""
    barrier(kind + ' connected')
    for member in members:
        member.fill(kind)
        send(member)
    for member in members:
        ok(poll(member.node.cq, len(LENGTHS) * MEMBERS * len(PEERS), 120))
        member.check(kind)
    barrier(kind + ' over')
    for qp in qps:
        qp.close()


def rc(board, members, turn):
    """A connection for each pair of members."""
    cap = QPCap(max_send_wr=64, max_recv_wr=len(LENGTHS), max_send_sge=1, max_recv_sge=1)
    qps = {}
    for member in members:
        for peer in PEERS:
            for other in range(MEMBERS):
                qp = QP(
                    member.node.pd,
                    QPInitAttr(qp_type=QPT.IBV_QPT_RC, scq=member.node.cq, rcq=member.cq, cap=cap),
                )
                qps[member.number, peer, other] = qp
    board.put(f'rc {turn}', {f'{m} {p} {o}': qp.qp_num for (m, p, o), qp in qps.items()})
    for peer in PEERS:
        way, theirs = board.way(peer), board.get(peer, f'rc {turn}')
        for member in members:
            for other in range(MEMBERS):
                qp = qps[member.number, peer, other]
                qp.to_rts(attrs(member, way, theirs[f'{other} {HOST} {member.number}']))
                member.receive(qp, len(LENGTHS))
    counted('RC', RC=MEMBERS * MEMBERS * len(PEERS))

    def send(member):
        for (number, _, _), qp in qps.items():
            if number == member.number:
                member.send(qp)

    exchange('RC', members, qps.values(), send)


def xrc(board, members, turn):
    """A connection for each member and host."""
    domains = [Domain(m.node, '/run/mesh.xrcd') for m in members]
    srqs = [d.srq(m.cq, depth=m.incoming, sges=1) for d, m in zip(domains, members)]
    for member, srq in zip(members, srqs):
        member.receive(srq, member.incoming)
    inis = {(m.number, p): initiator(m.node) for m in members for p in PEERS}
    # The target for each member of a peer; any member can make it.
    tgts = {(p, o): domains[o].tgt() for p in PEERS for o in range(MEMBERS)}
    board.put(
        f'xrc {turn}',
        {
            'srq': [s.get_srq_num() for s in srqs],
            'ini': {f'{m} {p}': qp.qp_num for (m, p), qp in inis.items()},
            'tgt': {f'{p} {o}': qp.qp_num for (p, o), qp in tgts.items()},
        },
    )
    srqns = {}
    for peer in PEERS:
        way, theirs = board.way(peer), board.get(peer, f'xrc {turn}')
        srqns[peer] = theirs['srq']
        for member in members:
            inis[member.number, peer].to_rts(
                attrs(member, way, theirs['tgt'][f'{HOST} {member.number}'])
            )
            tgts[peer, member.number].to_rts(
                attrs(member, way, theirs['ini'][f'{member.number} {HOST}'])
            )
    counted('XRC', XRC_INI=MEMBERS * len(PEERS), XRC_TGT=MEMBERS * len(PEERS))

    def send(member):
        for (number, peer), qp in inis.items():
            if number == member.number:
                for srqn in srqns[peer]:
                    member.send(qp, srqn)

    exchange('XRC', members, [*inis.values(), *tgts.values()], send)
    for thing in srqs + domains:
        thing.close()


def bulk(board, member, turn):
    """Large writes to the next host, in a ring, with many packets outstanding; and what was written
    is read from there."""
    ring = sorted(PEERS + [HOST])
    to, source = (ring[(ring.index(HOST) + step) % len(ring)] for step in (1, -1))
    node = member.node
    target, origin, back = node.mr(BLOCK, ALL), node.mr(BLOCK), node.mr(BLOCK)
    cap = QPCap(max_send_wr=BLOCKS, max_recv_wr=1, max_send_sge=1, max_recv_sge=1)
    there, here = (
        QP(node.pd, QPInitAttr(qp_type=QPT.IBV_QPT_RC, scq=node.cq, rcq=member.cq, cap=cap))
        for _ in 'ab'
    )
    board.put(f'bulk {turn}', [there.qp_num, here.qp_num, target.rkey, target.buf])
    _, qpn, rkey, raddr = board.get(to, f'bulk {turn}')
    there.to_rts(attrs(member, board.way(to), qpn))
    here.to_rts(attrs(member, board.way(source), board.get(source, f'bulk {turn}')[0]))
    barrier('bulk')
    put(origin, pattern(HOST, BLOCK))

    def post(opcode, memory):
        wr = SendWR(wr_id=1, opcode=opcode, num_sge=1, sg=[sge(memory)], send_flags=SIGNALED)
        wr.set_wr_rdma(rkey, raddr)
        there.post_send(wr)

    for _ in range(BLOCKS):
        post(WR.IBV_WR_RDMA_WRITE, origin)
    ok(poll(node.cq, BLOCKS, 300))
    for _ in range(READS):
        post(WR.IBV_WR_RDMA_READ, back)
    ok(poll(node.cq, READS, 300))
    assert get(back, BLOCK) == pattern(HOST, BLOCK), f'what was read from host {to} differs'
    barrier('bulk over')
    assert get(target, BLOCK) == pattern(source, BLOCK), f'what host {source} has written differs'
    for thing in there, here, target, origin, back:
        thing.close()


def main():
    board = Board()
    members = [Member(n) for n in range(MEMBERS)]
    board.put_way(members[0].node)
    board.put('type', net.TYPE)
    types = {net.TYPE} | {board.get(p, 'type') for p in PEERS}
    before = net.counters(DEVICE)
    end, turn, over = time.monotonic() + DURATION, 0, False
    while not over:
        rc(board, members, turn)
        if types == {'xroce'}:
            xrc(board, members, turn)
        bulk(board, members[0], turn)
        # The first host's clock decides.
        board.put(f'over {turn}', time.monotonic() >= end)
        over = board.get(1, f'over {turn}')
        turn += 1
    after = net.counters(DEVICE)
    if types != {'xroce'}:
        return
    names = ['retransmits', 'duplicate_request', 'out_of_seq_request', 'rcvd_seq_err']
    grown = {n: after[n] - before[n] for n in names}
    print(
        f'{turn} times: {after["sent_pkts"] - before["sent_pkts"]} packets sent, {grown}',
        flush=True,
    )
    # A host that got no CPU answers late, and is asked again.
    names = ['tail_probes', 'late_ack_requests']
    probes = sum(after.get(n, 0) - before.get(n, 0) for n in names)
    board.put('again', [grown['retransmits'], probes])
    theirs = [board.get(p, 'again') for p in PEERS]
    again = sum(sum(t) for t in theirs) + grown['retransmits'] + probes
    if CLEAN:
        if grown['duplicate_request'] <= sum(t[1] for t in theirs):
            grown['duplicate_request'] = 0
        assert not any(grown.values()), f'the wire is not clean: {grown}'
    else:
        assert again, 'no packet was sent again: is the wire lossy?'
        together = after.get('sent_super_pkts', 0) - before.get('sent_super_pkts', 0)
        assert not together, f'{together} times, packets could only be lost together'
    barrier('end')


if __name__ == '__main__':
    main()
