#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=180 debug=long
"""How packets are marked. ECN: connections that have a window send as ECN capable;
marked packets are answered with congestion notification packets, and these slow their
sender down. Traffic classes, service levels and source ports are those that were
requested.

How often a sender asks for acknowledgements shows how small its window is. One packet of 64
does, or one of eight where round trips take as long as on a busy machine: then packets are
paced."""
import os
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]

import ktap
import net
import roce
import traffic
import verbs
import wire
from ktap import expect, expect_eq
from roce import CNP
from tap import Tap

ECT0, CE = 2, 3
# The type of service that has a priority: IPTOS_LOWDELAY, TC_PRIO_INTERACTIVE.
LOW_DELAY, INTERACTIVE = 0x10, 6
# What ConnectX gives notifications: DSCP 48.
CNP_TOS = 48 << 2
WRITES = range(0x06, 0x0C)
MARKED, SENT, HANDLED = 'np_ecn_marked_roce_packets', 'np_cnp_sent', 'rp_cnp_handled'


class Packet:
    """A RoCEv2 packet as it passed e1, from the outside."""

    def __init__(self, frame, outgoing):
        v6 = frame[12:14] == b'\x86\xdd'
        ip = frame[14:]
        self.out = outgoing
        self.tos = (ip[0] << 4 | ip[1] >> 4) & 0xFF if v6 else ip[1]
        self.ecn = self.tos & 3
        self.udp = ip[40:] if v6 else ip[20:]
        self.opcode, _, _, qpn, psn = struct.unpack('!BBHII', self.udp[8:20])
        self.becn, self.qpn = bool(qpn & 1 << 30), qpn & 0xFFFFFF
        self.ask = bool(psn & 1 << 31)


class RoceTap(Tap):
    """All RoCEv2 packets of e1, in both directions."""

    def __init__(self):
        super().__init__(most=128)

    def packets(self):
        """Those that have passed since the last call."""
        return [Packet(frame, outgoing) for frame, outgoing in self.frames() if roce.is_roce(frame)]


def mark(percent):
    """h2's end marks so much of what it sends; what it must not mark, it drops."""
    if percent:
        net.sh(f'plain_link h2 e2; netem h2 e2 loss {percent}% ecn')
    else:
        net.sh('tc qdisc del dev e2 root', host='h2')


class Rise:
    """How much counters of both devices have risen."""

    def __init__(self):
        self.before = {d: net.counters(d) for d in ('x1', 'x2')}

    def __call__(self, dev, name):
        return net.counters(dev)[name] - self.before[dev][name]


def asked(packets, opcodes):
    """The share of packets of the second half that asked for an acknowledgement."""
    half = [p.ask for p in packets if not p.out and p.opcode & 0x1F in opcodes]
    half = half[len(half) // 2 :]
    return sum(half) / len(half)


def patient(kind, a, b, version=4):
    """A connection that repeats nothing because this machine was busy."""
    return {'rc': verbs.Rc, 'xrc': verbs.Xrc}[kind](
        traffic.node(a, version), traffic.node(b, version), timeout=20
    )


def handled(rise, dev, count):
    """All notifications come to be handled, after the last answer perhaps."""
    ktap.wait_for(f'{count} notifications are handled', 10, lambda: rise(dev, HANDLED) >= count)
    expect_eq(rise(dev, HANDLED), count, 'notifications handled')


def writes(kind, version):
    """x2 writes to x1: unmarked, marked, unmarked again."""
    traffic.node('x1', version).traffic_class = 0x28
    conn = patient(kind, 'x2', 'x1', version)
    length = 3 << 20
    traffic.write(conn, length)
    tap, rise = RoceTap(), Rise()
    traffic.write(conn, length)
    before = tap.packets()
    expect_eq({p.ecn for p in before}, {ECT0}, 'ECN of an unmarked connection')
    expect(asked(before, WRITES) < 0.2, f'asks {asked(before, WRITES)} without marks')
    expect_eq((rise('x1', MARKED), rise('x1', SENT), rise('x2', HANDLED)), (0, 0, 0), 'counters')

    mark(100)
    try:
        start = time.monotonic()
        traffic.write(conn, length)
        seconds = time.monotonic() - start
    finally:
        mark(0)
    during = tap.packets()
    notices = [p for p in during if p.opcode == CNP]
    expect_eq({p.ecn for p in during if not p.out}, {CE}, 'ECN of what x1 got')
    expect(notices, 'no notification')
    expect_eq(
        {(p.out, p.ecn, p.becn, p.qpn, len(p.udp)) for p in notices},
        {(True, 0, True, conn.send_qp.qp_num, 8 + 28 + 4)},
        'notifications',
    )
    # Theirs is a traffic class of their own, whatever the answers between them have.
    expect_eq({p.tos for p in notices}, {CNP_TOS}, 'traffic class of notifications')
    expect_eq(
        {p.tos for p in during if p.out and p.opcode != CNP},
        {0x28 | ECT0},
        'traffic class of answers',
    )
    # Not more often than every 50 us.
    expect(len(notices) <= seconds / 50e-6 + 1, f'{len(notices)} notifications in {seconds} s')
    expect_eq(rise('x1', SENT), len(notices), 'notifications sent')
    handled(rise, 'x2', len(notices))
    expect_eq(rise('x1', MARKED), sum(not p.out for p in during), 'marked packets')
    expect(asked(during, WRITES) > 0.9, f'asks only {asked(during, WRITES)} with marks')

    traffic.write(conn, length)
    # The window grows by a packet for each round trip.
    for _ in range(5):
        traffic.write(conn, length)
        after = tap.packets()
        expect_eq({p.opcode for p in after if p.opcode == CNP}, set(), 'notifications afterwards')
        if asked(after, WRITES) < 0.25:
            break
    expect(asked(after, WRITES) < 0.25, f'asks {asked(after, WRITES)} after marks')
    # A packet that a softirq sends on another CPU may overtake others, and x1 asks for those.
    retransmits = rise('x2', 'retransmits')
    expect(retransmits < length // 1024 // 100, f'{retransmits} packets were sent again')
    ktap.wait_for(
        f'that {retransmits} packets come that were only late',
        2,
        lambda: not retransmits or rise('x1', 'early_seq_naks') > 0,
    )
    expect_eq(rise('x1', 'rcvd_icrc_err'), 0, 'losses')
    conn.close()


def reads(kind):
    """x1 reads from x2, whose responses are marked: both ends slow down."""
    conn = patient(kind, 'x1', 'x2')
    traffic.read(conn, 1 << 20)
    tap, rise = RoceTap(), Rise()
    mark(100)
    try:
        traffic.read(conn, 1 << 20)
    finally:
        mark(0)
    during = tap.packets()
    asked_for = sum(p.out and p.opcode & 0x1F == 0x0C for p in during)
    notices = [p for p in during if p.opcode == CNP]
    expect_eq(
        {(p.out, p.becn, p.qpn) for p in notices}, {(True, True, conn.recv_qpn)}, 'notifications'
    )
    handled(rise, 'x2', len(notices))
    expect(asked_for > 100, f'only {asked_for} requests: the window is large')
    traffic.read(conn, 1 << 20)
    tap.packets()
    expect_eq(rise('x1', 'retransmits'), 0, 'losses')
    conn.close()


def not_capable():
    """UC has no window to shrink: it does not say that it is capable."""
    conn = traffic.connect('uc', 'x2', 'x1', 4)
    tap = RoceTap()
    traffic.write(conn, 4096, imm=traffic.IMM)
    expect_eq({p.ecn for p in tap.packets()}, {0}, 'ECN')
    conn.close()


def sent(conn, tap, count=1):
    """The packets of so many messages of a connection, as x1 sent them."""
    src, dst = conn.a.mr(64), conn.b.mr(128)
    for _ in range(count):
        conn.post_recv(verbs.recv_wr([verbs.sge(dst)]))
        conn.post(conn.send_wr(verbs.WR.IBV_WR_SEND, [verbs.sge(src)]))
        verbs.ok(verbs.poll(conn.send_cq))
        verbs.ok(verbs.poll(conn.recv_cq))
    return [
        roce.Packet(f)
        for f, out in tap.frames()
        if out and roce.is_roce(f) and roce.Packet(f).qpn == conn.recv_qpn
    ]


def pcp(packet):
    """The priority in the VLAN tag."""
    return packet.frame[14] >> 5


KINDS = {'rc': verbs.Rc, 'xrc': verbs.Xrc, 'uc': verbs.Uc, 'ud': verbs.Ud}


def ways(dev='x1', peer='x2', **change):
    """Ends of a connection, the first with attributes of its way."""
    a, b = verbs.Node(dev), verbs.Node(peer)
    for name, value in change.items():
        setattr(a, name, value)
    return a, b


def whose_ecn():
    """All of the traffic class is the user's but for its ECN bits."""
    tap = Tap()
    for kind, ecn in (('rc', ECT0), ('xrc', ECT0), ('uc', 0), ('ud', 0)):
        for bits in range(4):
            conn = KINDS[kind](*ways(traffic_class=0x54 | bits))
            expect_eq({p.ip[1] for p in sent(conn, tap)}, {0x54 | ecn}, f'TOS of {kind}, {bits}')
            if kind != 'ud':
                expect_eq(
                    conn.send_qp.query(verbs.MASK.IBV_QP_AV)[0].ah_attr.traffic_class,
                    0x54 | bits,
                    'query',
                )
            conn.close()
    tap.close()


def source_port(flow_label, local, remote):
    """rdma_get_udp_sport() of ib_verbs.h."""
    if not flow_label:
        flow_label = local * remote
        flow_label ^= flow_label >> 20
        flow_label ^= flow_label >> 40
    return 0xC000 | (flow_label ^ (flow_label & 0xFC000) >> 14) & 0x3FFF


def source_ports():
    """A flow label is the source port, of datagrams, too; without one it follows from both QP
    numbers, so that datagrams of different queue pairs may take different ways."""
    tap, seen = Tap(), set()
    for label in (0, 0x12345, 0):
        for kind in ('rc', 'ud'):
            conn = KINDS[kind](*ways(flow_label=label))
            port = source_port(label, conn.send_qp.qp_num, conn.recv_qpn)
            expect_eq(
                {p.sport for p in sent(conn, tap, 2)},
                {port},
                f'source port of {kind}, label {label:#x}',
            )
            seen.add(port)
            if kind == 'ud' and not label:
                # Another peer by the same address handle.
                other = verbs.Ud(conn.a, conn.b)
                ah, other.ah = other.ah, conn.ah
                port = source_port(0, other.send_qp.qp_num, other.recv_qpn)
                expect_eq({p.sport for p in sent(other, tap)}, {port}, 'source port of the other')
                other.ah = ah
                other.close()
            conn.close()
    expect(len(seen) > 2, f'all have {seen}')
    tap.close()


def service_levels():
    """A service level is the priority in the VLAN tag, by the interface's map. One that the
    connection manager made from the type of service by that map means what the map makes of
    that."""
    net.vlans_up()
    net.sh(f'ip -n h1 link set v1 type vlan egress 3:3 5:5 7:7 {INTERACTIVE}:2')
    tap = Tap()
    here, there = net.PLACES['vlan-ipv4']
    for sl, tos, wanted in (
        (0, 0, 0),
        (3, 0, 3),
        (5, LOW_DELAY, 5),
        (7, 0, 7),
        (0, LOW_DELAY, 2),
        (2, LOW_DELAY, 2),
        (13, 0, 5),
    ):
        for kind in ('rc', 'ud'):
            a, b = verbs.Node('x1', here), verbs.Node('x2', there)
            a.sl, a.traffic_class = sl, tos
            conn = KINDS[kind](a, b)
            packets = sent(conn, tap)
            expect_eq(
                {(p.vlan, pcp(p)) for p in packets},
                {(net.VLAN, wanted)},
                f'tag of {kind}, level {sl}, TOS {tos}',
            )
            if kind == 'rc':
                expect_eq(conn.send_qp.query(verbs.MASK.IBV_QP_AV)[0].ah_attr.sl, sl, 'query')
            conn.close()
    tap.close()


def forged():
    """Notifications from elsewhere, or of no use, change nothing."""
    conn = traffic.connect('rc', 'x2', 'x1', 4)
    link, rise = wire.Wire(), Rise()
    for qpn, src in ((conn.recv_qpn, '10.7.0.77'), (0x7FFFF0, '10.7.0.2'), (1, '10.7.0.2')):
        link.send(CNP, qpn, 0, bytes(16), ack=False, src=src)
    ktap.wait_for('three are refused', 10, lambda: rise('x1', 'rcvd_unknown_qp') == 3)
    for length in (0, 15, 17, 64):
        link.send(CNP, conn.recv_qpn, 0, bytes(length), ack=False)
    ktap.wait_for('four are malformed', 10, lambda: rise('x1', 'rcvd_malformed') == 4)
    expect_eq(rise('x1', HANDLED), 0, 'handled')
    for _ in range(100):
        link.send(CNP, conn.recv_qpn, 0, bytes(16), ack=False)
    ktap.wait_for('a hundred are handled', 10, lambda: rise('x1', HANDLED) == 100)
    traffic.every_opcode(conn, False)
    conn.close()


def setup():
    # Packets that a process sends from two CPUs may overtake each other, and are sent again.
    os.sched_setaffinity(0, {0})
    net.hosts_up()
    # Nobody has to ask for addresses over a link that drops what it cannot mark.
    net.sh(
        '''for n in 1 2; do
        p=$((3 - n))
        mac=$(in_host h$p cat /sys/class/net/e$p/address)
        ip -n h$n neigh replace 10.7.0.$p lladdr $mac dev e$n nud permanent
        ip -n h$n neigh replace fd07::$p lladdr $mac dev e$n nud permanent
    done'''
    )


if net.TYPE != 'xroce':
    ktap.skip_all('rxe knows no congestion notification')
ktap.add('rc-writes', lambda: writes('rc', 4))
ktap.add('xrc-writes', lambda: writes('xrc', 4))
ktap.add('rc-writes-ipv6', lambda: writes('rc', 6))
ktap.add('rc-reads', lambda: reads('rc'))
ktap.add('xrc-reads', lambda: reads('xrc'))
ktap.add('uc-not-capable', not_capable)
ktap.add('forged', forged)
for fn in (whose_ecn, source_ports, service_levels):
    ktap.add(fn.__name__, fn)
ktap.main(setup, net.clean)
