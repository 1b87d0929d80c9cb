#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=240
"""xroce on one host, the kernel's rxe on the other: every operation that both have, of
RC, UC and UD, in both directions, over IPv4, IPv6 and a VLAN; all path MTUs; datagrams
and their headers.

The packets on the wire are compared with IBTA (lib/operations.py, lib/roce.py), rxe's
packets as well as xroce's. The following does not work because of errors in rxe
(drivers/infiniband/sw/rxe in Linux 7.2):

- The ICRC of rxe's FLUSH is wrong, and rxe takes the right ICRC of other devices for
  wrong: the operation has no RXE_PAYLOAD offset (rxe_opcode[], rxe_opcode.c), so
  rxe_icrc_generate() and rxe_icrc_check() (rxe_icrc.c) cover the headers twice. FLUSH
  is skipped as long as this is so.
- A receive that a SEND with invalidate completes has the kernel's flag for that
  (do_complete(), rxe_resp.c), which has another meaning for processes
  (IBV_WC_IP_CSUM_OK).

rxe has no XRC. The addresses of a VLAN are those of the device below it: rxe does not
exist on a VLAN interface itself (rxe_newlink(), rxe.c), and the kernel gives an xroce
device on one only the link-local GID (is_eth_port_of_netdev_filter(), roce_gid_mgmt.c).
"""
import functools
import ipaddress
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]

import ktap
import net
import roce
import traffic
import verbs
from ktap import expect, expect_eq
from net import PLACES, VLAN
from operations import FLUSH, GRH, IMM, MTU, QKEY, WITH_IMM, Conversation
from pyverbs.addr import AH
from pyverbs.libibverbs_enums import ibv_placement_type as PLACEMENT, ibv_selectivity_level as LEVEL
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from tap import Tap
from verbs import QPT, WCS, WR, get, ok, pattern, poll, put, recv_wr, sge

# Room for packets of 4096 bytes.
LINK_MTU = 4500
LENGTHS = (0, 1, 2, 3, 4, MTU + 4, 2 * MTU + 1, 2 * MTU + 2, 2 * MTU + 3)
DATAGRAMS = (0, 1, 2, 3, 4, 1021)
OPERATIONS = {
    'rc': ('send', 'send_imm', 'write', 'write_imm', 'read'),
    'uc': ('send', 'write', 'write_imm', 'send_imm'),
    'ud': ('send', 'send_imm'),
}
ONCE = (('cas',), ('faa',), ('atomic_write',), ('send_inv', 1), ('send_inv', 2 * MTU + 1))
WAYS = {'to-rxe': (0, 1), 'from-rxe': (1, 0)}
WITH_GRH = 1 << 0
# IB_WC_WITH_INVALIDATE, which rxe shows to processes.
RXE_WITH_INV = 1 << 2

tap = None
nodes = {}


def setup():
    global tap
    net.sh('modprobe rdma_rxe')
    net.hosts_up(LINK_MTU, 'xroce', 'rxe')
    net.vlans_up()
    for place, (a, b) in PLACES.items():
        nodes[place] = verbs.Node('x1', a), verbs.Node('x2', b)
    for pair in nodes.values():
        for node in pair:
            node.recv_cq = verbs.CQ(node.ctx, 8)
    tap = Tap()


def passed(place):
    """The RoCEv2 packets that passed since the last call, all of them sound."""
    packets = [roce.Packet(frame) for frame, _ in tap.frames() if roce.is_roce(frame)]
    for p in packets:
        expect_eq(p.wrong(), [], f'{roce.name(p.opcode)} with PSN {p.psn:#x}')
        expect_eq(
            (p.v6, p.vlan),
            (place.endswith('6'), VLAN if place.startswith('vlan') else None),
            'IPv6 and VLAN',
        )
    return packets


def ends(place, way):
    """The requester's node and the responder's."""
    return [nodes[place][i] for i in WAYS[way]]


def conversation_of(kind, place, way):
    """A Conversation, of which alone the tap knows."""
    conversation = Conversation(kind, *ends(place, way))
    if way == 'to-rxe':
        conversation.with_inv = RXE_WITH_INV
        conversation.keeps_early = False
    tap.frames()
    return conversation


def every_operation(kind, place, way):
    lengths = DATAGRAMS if kind == 'ud' else LENGTHS
    requests = [(op, length) for length in lengths for op in OPERATIONS[kind]]
    conversation = conversation_of(kind, place, way)
    for request in [*requests, *(ONCE if kind == 'rc' else ())]:
        conversation.post(*request)
    conversation.finish()
    conversation.compare(passed(place))
    conversation.close()


def invalidated(place, way):
    """A window takes a WRITE, a SEND invalidates it, and it takes none any more."""
    conversation = conversation_of('rc', place, way)
    key = conversation.window()
    conversation.post('write', 2 * MTU + 3, key)
    conversation.post('send_inv', 5, key)
    conversation.post('write', 40, key, refused=True)
    conversation.finish(WCS.IBV_WC_REM_ACCESS_ERR)
    conversation.compare(passed(place))
    conversation.close()


@functools.cache
def rxe_flushes():
    """Is the ICRC of rxe's FLUSH right?"""
    conversation = conversation_of('rc', 'ipv4', 'from-rxe')
    conversation.post('flush')
    seen = []

    def there():
        seen.extend(roce.Packet(frame) for frame, _ in tap.frames() if roce.is_roce(frame))
        return [p for p in seen if p.opcode == FLUSH]

    wrong = ktap.wait_for('a FLUSH', 10, there)[0].wrong()
    expect(wrong in ([], ['ICRC']), wrong)
    conversation.close()
    return not wrong


def flush(place, way):
    """To visibility it works; to persistence it is refused: xroce does not offer it, and rxe
    registers no memory for it but that of NVDIMMs (rxe_mr_fill_pages_from_sgt(), rxe_mr.c)."""
    if not rxe_flushes():
        raise ktap.Skip("the ICRC of rxe's FLUSH is wrong")
    conversation = conversation_of('rc', place, way)
    conversation.post('flush')
    conversation.finish()
    conversation.compare(passed(place))
    qp, dst = conversation.qp, conversation.dst
    qp.wr_start()
    qp.wr_flags = verbs.SIGNALED
    qp.wr_flush(dst.rkey, dst.buf, 64, PLACEMENT.IBV_FLUSH_PERSISTENT, LEVEL.IBV_FLUSH_RANGE)
    qp.wr_complete()
    (wc,) = poll(conversation.cq)
    expect(
        wc.status in (WCS.IBV_WC_REM_INV_REQ_ERR, WCS.IBV_WC_REM_ACCESS_ERR),
        verbs.status_name(wc.status),
    )
    conversation.close()


def every_mtu(kind, version, way, mtu):
    a, b = (('x1', 'x2')[i] for i in WAYS[way])
    conn = traffic.connect(kind, a, b, version, mtu)
    if kind == 'rc':
        traffic.every_opcode(conn, False)
    else:
        traffic.unreliable(conn, False)
    conn.close()
    # The packets are too many to keep.
    tap.frames()


def datagram_queue(node, mr):
    """A UD queue pair, with a receive in the memory region."""
    cap = QPCap(max_send_wr=4, max_recv_wr=4, max_send_sge=1, max_recv_sge=1)
    qp = QP(node.pd, QPInitAttr(qp_type=QPT.IBV_QPT_UD, scq=node.cq, rcq=node.recv_cq, cap=cap))
    attr = QPAttr(port_num=1)
    attr.qkey = QKEY
    qp.to_rts(attr)
    qp.post_recv(recv_wr([sge(mr)]))
    return qp


def say(qp, ah, to, mr, data):
    """A datagram with immediate data."""
    put(mr, data)
    wr = verbs.SendWR(
        opcode=WR.IBV_WR_SEND_WITH_IMM, num_sge=1, sg=[sge(mr, len(data))], imm_data=IMM
    )
    wr.set_wr_ud(ah, to, QKEY)
    qp.post_send(wr)


def raw(node):
    """The 16 bytes of a node's GID."""
    return ipaddress.ip_address(node.gid.gid).packed


def answered(place, way):
    """The receiver finds the sender's address in front of a datagram, and answers."""
    a, b = ends(place, way)
    v6 = place.endswith('6')
    there, back = pattern(1, 4096), pattern(2, 999)
    out, a_in, b_in, reply = (node.mr(8192) for node in (a, a, b, b))
    one, two = datagram_queue(a, a_in), datagram_queue(b, b_in)

    def heard(node, mr, data, peer, sender):
        """The completion of the receive, which must be right."""
        (wc,) = ok(poll(node.recv_cq))
        expect_eq(
            (wc.byte_len, wc.src_qp, wc.wc_flags & (WITH_GRH | WITH_IMM), wc.imm_data),
            (GRH + len(data), sender.qp_num, WITH_GRH | WITH_IMM, IMM),
            'receive',
        )
        expect(get(mr, len(data), GRH) == data, 'payload')
        front = get(mr, GRH)
        if v6:
            expect_eq(
                (front[0] >> 4, front[8:24], front[24:40]), (6, raw(peer), raw(node)), 'IPv6 header'
            )
        else:
            # In the second half; what is before it is undefined.
            expect_eq(
                (front[20], front[32:36], front[36:40]),
                (0x45, raw(peer)[12:], raw(node)[12:]),
                'IPv4 header',
            )
        if node is nodes[place][0]:
            # xroce says of what kind they are, as mlx5 does.
            expect_eq(wc.sl, 9 if v6 else 10, 'type of the packet')
        return wc

    way_there = AH(a.pd, attr=a.ah_attr(b))
    say(one, way_there, two.qp_num, out, there)
    wc = heard(b, b_in, there, a, one)
    way_back = AH(b.pd, wc=wc, grh=b_in.buf, port_num=1)
    say(two, way_back, one.qp_num, reply, back)
    heard(a, a_in, back, b, two)
    for node in (a, b):
        ok(poll(node.cq))
    for what in (way_there, way_back, one, two, out, a_in, b_in, reply):
        what.close()
    tap.frames()


def main():
    if net.TYPE != 'xroce':
        ktap.skip_all('rxe against rxe is not ours to test')
    for place in PLACES:
        for way in WAYS:
            for name, fn in (('invalidated', invalidated), ('flush', flush)):
                if place in ('ipv4', 'ipv6'):
                    ktap.add(f'{place}-{way}-{name}', lambda f=fn, p=place, w=way: f(p, w))
            for kind in OPERATIONS:
                ktap.add(
                    f'{place}-{way}-{kind}', lambda k=kind, p=place, w=way: every_operation(k, p, w)
                )
            ktap.add(f'{place}-{way}-answered', lambda p=place, w=way: answered(p, w))
    for mtu, size in verbs.MTU_BYTES.items():
        for way in WAYS:
            for kind in ('rc', 'uc'):
                version = 4 if mtu % 2 else 6
                ktap.add(
                    f'mtu-{size}-{way}-{kind}',
                    lambda k=kind, v=version, w=way, m=mtu: every_mtu(k, v, w, m),
                )
    # No clean-up here: rxe's device waits for the programs that have it open, and this is one.
    ktap.main(setup)


main()
