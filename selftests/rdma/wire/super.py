#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=300 debug
"""Super-packets: packets of one burst that pass the stack as one. They arrive whole, or cut
by whoever does not take them, and the payload is the same; what is sent again goes alone.
And GRO, which makes one of packets that a net device has received one by one."""
import ctypes
import functools
import os
import socket
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]

import ktap
import net
import roce
import traffic
import verbs
import wire
from ktap import expect, expect_eq
from tap import Tap
from verbs import WCS, WR, get, pattern, put, sge

SENT, RECEIVED, MERGED = 'sent_super_pkts', 'rcvd_super_pkts', 'rcvd_gro_pkts'
# Counters of what must not happen where nothing is lost.
BAD = (
    'retransmits',
    'rcvd_icrc_err',
    'rcvd_malformed',
    'out_of_seq_request',
    'rcvd_seq_err',
    'send_err',
)
# Of these, what it costs when a packet overtakes others, because another CPU has sent it: a copy of
# one that was not lost.
OVERTAKING = ('retransmits', 'out_of_seq_request', 'rcvd_seq_err')
# All that are asked for.
PACKETS = ('sent_pkts', 'rcvd_pkts')
MARKED = 'np_ecn_marked_roce_packets'
COUNTERS = (SENT, RECEIVED, MERGED, MARKED, 'early_seq_naks', 'tail_probes', *PACKETS, *BAD)
# IBV_MTU_*
MTU1024, MTU4096 = 3, 5
# IBV_ACCESS_ON_DEMAND
ON_DEMAND = 1 << 6
# 8.6 s: where nothing is lost, nothing is sent again, however busy the machine is.
PATIENT = 21
ENDS = (('h1', 'e1'), ('h2', 'e2'))


# How often nothing was lost, and how often something was only late.
measured, late = [], []


class Rise:
    """How much counters of both devices have risen."""

    def __init__(self):
        self.before = {d: net.counters(d, COUNTERS) for d in ('x1', 'x2')}

    def __call__(self, dev, name):
        return net.counters(dev, [name])[name] - self.before[dev][name]

    def none_lost(self):
        """Nothing was lost, sent again or spoilt."""
        now = {d: net.counters(d, BAD) for d in ('x1', 'x2')}
        rise = {(d, n): now[d][n] - self.before[d][n] for d in now for n in BAD}
        bad = {what: by for what, by in rise.items() if by}
        measured.append(bad)
        if bad and all(name in OVERTAKING for _, name in bad):
            ktap.wait_for(
                f'a packet that was only late: {bad}',
                2,
                lambda: any(self(dev, 'early_seq_naks') for dev in now),
            )
            ktap.note(f'a packet was only late: {bad}')
            late.append(bad)
        else:
            expect_eq(bad, {}, 'counters')


def connect(kind='rc', version=4, mtu=MTU1024, **opts):
    """A connection from x1 to x2."""
    return traffic.connect(
        kind, 'x1', 'x2', version, mtu, timeout=opts.pop('timeout', PATIENT), **opts
    )


def work(conn, lengths=(65536, 3077, 3080)):
    """Data in both directions. Their last packets are long, short and padded, and short."""
    for n in lengths:
        traffic.write(conn, n)
        traffic.send(conn, n, imm=traffic.IMM)
        traffic.read(conn, n)


def whole(kind='rc', version=4, mtu=MTU1024):
    """Over a plain link all come whole."""
    conn, rise = connect(kind, version, mtu), Rise()
    work(conn)
    for sender, receiver in (('x1', 'x2'), ('x2', 'x1')):
        expect(rise(sender, SENT) >= 1, f'{sender} has sent no super-packet')
        # The sender counts after it has sent: the last of READ data may be here already.
        ktap.wait_for(
            f'that {receiver} has received the super-packets of {sender}',
            10,
            lambda: rise(receiver, RECEIVED) == rise(sender, SENT),
        )
        ktap.wait_for(
            f'that {receiver} has received the packets of {sender}',
            10,
            lambda: rise(receiver, PACKETS[1]) == rise(sender, PACKETS[0]),
        )
    rise.none_lost()
    conn.close()


def cut(kind='rc', version=4, sent=True, places=None):
    """They come cut, or none is sent; all is as it should be."""
    if places:
        conn = verbs.Rc(verbs.Node('x1', places[0]), verbs.Node('x2', places[1]), timeout=PATIENT)
        conn.mtu = MTU1024
    else:
        conn = connect(kind, version)
    rise = Rise()
    work(conn)
    expect_eq((rise('x1', SENT) > 0, rise('x2', SENT) > 0), (sent, sent), 'super-packets were sent')
    expect_eq((rise('x1', RECEIVED), rise('x2', RECEIVED)), (0, 0), 'super-packets that came whole')
    rise.none_lost()
    conn.close()


def offload(on, *what):
    """Turn features of the links on or off."""
    words = [word for feature in what for word in (feature, 'on' if on else 'off')]
    for host, dev in ENDS if words else ():
        net.run_in(host, 'ethtool', '-K', dev, *words)


class Off:
    """Within it, these features of the links are off."""

    def __init__(self, *what):
        self.what = what

    def __enter__(self):
        offload(False, *self.what)

    def __exit__(self, *_):
        offload(True, *self.what)


def turned_off():
    """ethtool turns them off and on, while a connection stands."""
    # On the debug kernel, which is slow, captured() does the one, and this the other.
    features = ('gso',) if ktap.DEBUG and not ktap.LONG else ('tx-gso-list', 'gso')
    for feature in features:
        with Off(feature):
            cut(sent=False)
    whole()


@functools.lru_cache(maxsize=None)
def vlans_up():
    """Make the VLAN between the hosts, once."""
    net.vlans_up()


def is_long(frame):
    """Whether a frame is longer than any packet of the connection."""
    return len(frame) > 14 + 20 + 8 + 1024 + 100


# Trains that begin with First, Middle and Last packets of SENDs, WRITEs and READ responses: opcode,
# and bytes of headers. Those of READ responses have room for the ACK header of the Last packet. All
# have room for a seam of four bytes, and for what the First packet behind that has.
HEADERS = {0x00: 16, 0x01: 16, 0x02: 16, 0x06: 48, 0x07: 32, 0x08: 32, 0x0D: 24, 0x0E: 24, 0x0F: 24}
# Requests of XRC name a queue.
HEADERS |= {0xA0 | opcode: n + 4 * (opcode < 0x0D) for opcode, n in HEADERS.items()}
FIRST = (0x00, 0x06, 0x0D)
FIRST_OR_MIDDLE = {first + n for first in FIRST for n in (0, 1)}
MIDDLE_OR_LAST = {first + n for first in FIRST for n in (1, 2)}
# What is behind the seam.
BEHIND_SEAM = {0x00: 0, 0x06: 16, 0x0D: 4}
# The bit beside AckReq, in the headers of a train: its last packet is the Last of the message.
ENDS_BIT = 0x40


def train(body):
    """Opcode of a train, how long its last packet is, and whether that is the Last of the message.
    The last packets of work() that are in trains have 1024 or 8 bytes."""
    more = (len(body) - HEADERS[body[0]]) % 1024
    return body[0], more or 1024, bool(body[8] & ENDS_BIT)


def bodies_of(taps):
    """What is behind the UDP header of super-packets that taps have seen."""
    big = [f for t in taps for f, _ in t.frames() if roce.is_roce(f) and is_long(f)]
    return [f[14 + (28 if f[12:14] == b'\x08\x00' else 48) :] for f in big]


def captured():
    """A capture holds what it has seen: what others hold is cut for us. It sees super-packets,
    unless they are off."""
    if not ktap.DEBUG:
        work(connect())
    taps = [Tap(host, dev, supers=True) for host, dev in ENDS]
    cut()
    cut(version=6)
    cut('xrc')
    small()
    bodies = bodies_of(taps)
    # The first packet has 8 bytes of payload: here is its ICRC, which was put off.
    icrcs = {b[12 + 16 + 8 :][:4] for b in bodies if b[0] == wire.WRITE_ONLY}
    expect_eq(icrcs, {bytes(4)}, 'ICRCs in super-packets of short messages')
    # Those of long messages are trains: they have the headers of the first packet and the payload
    # of all.
    trains = [train(b) for b in bodies if b[0] != wire.WRITE_ONLY]
    opcodes = {opcode for opcode, _, _ in trains}
    begun = {opcode for opcode in HEADERS if opcode & 0x1F in FIRST}
    expect(opcodes >= begun, f'trains that begin with {opcodes}')
    # Only the Last packet of a message may be short.
    ends = {(last, ends) for _, last, ends in trains}
    expect_eq(ends, {(1024, False), (1024, True), (8, True)}, 'bytes of last packets, and ends')
    with Off('tx-gso-list'):
        cut(sent=False)
        frames = [f for t in taps for f, _ in t.frames() if roce.is_roce(f)]
        expect(frames, 'the captures have nothing')
        expect(not any(is_long(f) for f in frames), 'a capture has a super-packet')
    for t in taps:
        t.close()


# Bytes of messages that are posted together. Trains of the long ones end in front of the Last
# packet, so others begin with that; the last ones are too short for a train, or have pad bytes.
TOGETHER = (65536, 65536, 65536, 20480, 20480, 65533, 65536, 8192, 2048, 1024, 3077)


def together(conn, *ops):
    """WRITEs, SENDs and READs of these lengths, each kind posted together. SENDs raise events.
    Returns what the first packets of the WRITEs say of the memory."""
    total = sum(TOGETHER)
    offsets = [sum(TOGETHER[:i]) for i in range(len(TOGETHER))]
    near, far = conn.a.mr(total), conn.b.mr(total)
    for seed, op in enumerate(ops or (WR.IBV_WR_RDMA_WRITE, WR.IBV_WR_SEND, WR.IBV_WR_RDMA_READ)):
        data = pattern(20 + seed, total)
        src, dst = (far, near) if op == WR.IBV_WR_RDMA_READ else (near, far)
        put(src, data)
        put(dst, bytes(total))
        wrs = []
        for at, length in zip(offsets, TOGETHER):
            remote = {} if op == WR.IBV_WR_SEND else {'rkey': far.rkey, 'raddr': far.buf + at}
            flags = verbs.SIGNALED | (verbs.SOLICITED if op == WR.IBV_WR_SEND else 0)
            wrs.append(conn.send_wr(op, [sge(near, length, at)], flags=flags, **remote))
            if op == WR.IBV_WR_SEND:
                conn.post_recv(verbs.recv_wr([sge(far, length, at)]))
        for a, b in zip(wrs, wrs[1:]):
            a.next_wr = b
        conn.post(wrs[0])
        if op == WR.IBV_WR_SEND:
            got = verbs.ok(verbs.poll(conn.recv_cq, len(wrs)))
            expect_eq([wc.byte_len for wc in got], list(TOGETHER), 'lengths')
        verbs.ok(verbs.poll(conn.send_cq, len(wrs)))
        expect(get(dst, total) == data, f'payload of {op}')
    return [(far.buf + at, length) for at, length in zip(offsets, TOGETHER)]


def joined_in(bodies):
    """What those of these super-packets begin with that go on with the next message."""
    found = set()
    for body in bodies:
        first = max(opcode for opcode in FIRST if opcode <= body[0] & 0x1F)
        if body[0] in HEADERS and body[HEADERS[body[0]] - BEHIND_SEAM[first] - 4]:
            found.add(body[0])
    return found


# Trains that go on with the next message, by what they begin with, and what makes them. Those that
# begin with a Last packet always do.
SEAMS = {
    (WR.IBV_WR_RDMA_WRITE, 'any'): {0x06, 0x07, 0x08},
    (WR.IBV_WR_SEND, 'any'): {0x00, 0x01, 0x02},
    (WR.IBV_WR_RDMA_READ, 'any'): {0x0D, 0x0E, 0x0F},
    (WR.IBV_WR_RDMA_WRITE, 'last'): {0x02, 0x08},
}


def joined():
    """A train goes on with the next message: it arrives whole, or cut for a capture."""
    for kind, version in (('rc', 4), ('xrc', 6)):
        wanted, seams, times = dict(SEAMS), set(), 0
        while wanted and times < 600:
            conn, rise = connect(kind, version), Rise()
            together(conn)
            expect(rise('x1', RECEIVED) and rise('x2', RECEIVED), 'super-packets that came whole')
            before = rise('x1', RECEIVED), rise('x2', RECEIVED)
            taps = [Tap(host, dev, supers=True) for host, dev in ENDS]
            # The window ends trains, and READ data go on if the next request has come by then. So
            # what is seen depends on the connection, too.
            for _ in range(20):
                together(conn, *{op for op, _ in wanted})
                times += 1
                seams |= {opcode & 0x1F for opcode in joined_in(bodies_of(taps))}
                wanted = {what: any_of for what, any_of in wanted.items() if not any_of & seams}
                if not wanted:
                    break
            for tap in taps:
                tap.close()
            after = rise('x1', RECEIVED), rise('x2', RECEIVED)
            expect_eq(after, before, 'super-packets that came whole despite the captures')
            rise.none_lost()
            conn.close()
        ktap.note(f'{kind}: {times} times')
        expect(not wanted, f'trains that go on with the next message: {seams}')


def expect_whole(packets):
    """Packets of one connection in one direction, in their order: each begins a message or goes on
    with it, and has the bits that it should have."""
    since, previous = 0, None
    for packet in packets:
        kind, what = packet.opcode & 0x1F, roce.name(packet.opcode)
        follows = previous in FIRST_OR_MIDDLE
        expect_eq(kind in MIDDLE_OR_LAST, follows, f'{what} goes on with a message')
        expect(not follows or kind - previous in (0, 1, 2), f'{what} behind {previous}')
        expect_eq(packet.solicited, kind in (0x02, 0x04), f'{what} raises an event')
        expect_eq(packet.reserved7, 0, f'reserved bits of {what}')
        since = 0 if packet.ask else since + 1
        expect(since < 64 or packet.is_response, 'many packets do not ask')
        previous = kind


def on_wire(conn, times):
    """The memory of WRITEs that were posted so often, and the packets that came in: requests, and
    READ data, each in their order. None: packets were sent again."""
    taps = [Tap(host, dev, supers=True) for host, dev in ENDS]
    rise = Rise()
    memory, frames = [], ([], [])
    for _ in range(times):
        memory += together(conn)
        # A tap has room for few.
        for both, tap in zip(frames, taps):
            both += [f for f, is_ours in tap.frames() if not is_ours and roce.is_roce(f)]
    for tap in taps:
        tap.close()
    expect(rise('x1', SENT) and rise('x2', SENT), 'super-packets were sent')
    expect(not any(is_long(f) for both in frames for f in both), 'one came whole')
    for dev in ('x1', 'x2'):
        for name in ('rcvd_icrc_err', 'rcvd_malformed', 'send_err'):
            expect_eq(rise(dev, name), 0, f'{name} of {dev}')
    if any(rise(dev, 'retransmits') for dev in ('x1', 'x2')):
        return None
    answers, requests = [[roce.Packet(f) for f in both] for both in frames]
    return (
        memory,
        by_number(p for p in requests if p.opcode & 0x1F <= 0x0B),
        by_number(p for p in answers if 0x0D <= p.opcode & 0x1F <= 0x10),
    )


def by_number(packets):
    """These packets by their numbers: those of another CPU may have overtaken some. A probe is a
    copy, which does not count."""
    first = {}
    for packet in packets:
        first.setdefault(packet.psn, packet)
    # Half of all numbers are behind this one.
    least = next(iter(first)) - (1 << 23)
    return sorted(first.values(), key=lambda p: (p.psn - least) % (1 << 24))


def cut_before():
    """A queueing discipline cuts trains in front of the wire: what is on the wire is as if each
    packet had been built."""
    for host, dev in ENDS:
        # It takes no packet that is longer than its burst.
        net.sh(f'in_host {host} tc qdisc add dev {dev} root tbf rate 8gbit burst 1200 limit 64mb')
    try:
        for kind, version in (('rc', 4), ('xrc', 6)):
            conn = connect(kind, version)
            together(conn)
            # Not all that is posted together goes in trains that go on with the next message.
            seen = (on_wire(conn, 1 if ktap.DEBUG else 5) for _ in range(20))
            memory, requests, answers = next(packets for packets in seen if packets)
            expect_whole(requests)
            expect_whole(answers)
            writes = [p.fields for p in requests if p.opcode & 0x1F in (0x06, 0x0A)]
            expect_eq([(w['va'], w['dmalen']) for w in writes], memory, 'WRITEs')
            # The first and the last packet of a response say which it is. WRITEs and SENDs count as
            # well, and a READ may have been asked for in parts.
            count = answers[0].fields['msn_low'] - 1
            for packet in answers:
                what, said = packet.opcode & 0x1F, packet.fields.get('msn_low')
                if what in (0x0D, 0x10):
                    expect(said - count in (1, 1 + 2 * len(TOGETHER)), f'{said} behind {count}')
                    count = said
                elif what == 0x0F:
                    expect_eq(said, count, 'number of a response')
            conn.close()
    finally:
        for host, dev in ENDS:
            net.sh(f'in_host {host} tc qdisc del dev {dev} root')


def handed_over(tap):
    """Whether the net device of a tap got a super-packet to send, and not only packets."""
    frames = [f for f, is_ours in tap.frames() if is_ours and roce.is_roce(f)]
    tap.close()
    expect(frames, 'the capture has nothing')
    return any(is_long(f) for f in frames)


def simple_devices():
    """Net devices that can do nothing, as virtio-net may be: the sender's stack cuts for them."""
    for host, dev in ENDS:
        net.sh(f'in_host {host} tc qdisc add dev {dev} root pfifo limit 1000')
    try:
        # Without it, the kernel has no GSO either.
        with Off('sg'):
            for version in (4, 6):
                taps = [Tap(host, dev, supers=True) for host, dev in ENDS]
                cut(version=version)
                for tap in taps:
                    expect_eq(handed_over(tap), False, 'veth got one whole')
    finally:
        for host, dev in ENDS:
            net.sh(f'in_host {host} tc qdisc del dev {dev} root')


def mirrored():
    """tc makes a copy of each for another interface."""
    net.sh(
        '''ip -n h2 link add m0 type dummy && ip -n h2 link set m0 up &&
        in_host h2 tc qdisc add dev e2 clsact &&
        in_host h2 tc filter add dev e2 ingress matchall action mirred egress mirror dev m0'''
    )
    try:
        conn, rise = connect(), Rise()
        work(conn)
        expect(rise('x1', SENT), 'no super-packet was sent')
        rise.none_lost()
        conn.close()
    finally:
        net.sh('in_host h2 tc qdisc del dev e2 clsact; ip -n h2 link del m0')


# Classic BPF: matches what is longer than any packet.
IS_LONG = '4,128 0 0 0,37 0 1 1200,6 0 0 1,6 0 0 0'


def never_through():
    """A wire that takes no super-packet of data: what is sent again goes alone and gets through."""
    for host, dev in ENDS:
        net.sh(
            f'''in_host {host} tc qdisc add dev {dev} clsact &&
            in_host {host} tc filter add dev {dev} ingress \\
                bpf bytecode '{IS_LONG}' classid 1:1 action drop'''
        )
    try:
        conn, rise = connect(timeout=16), Rise()
        work(conn, (20 * 1024,))
        expect(rise('x1', SENT) and rise('x1', 'retransmits'), 'nothing was lost')
        # Those of short packets, such as requests of READs, get through.
        expect(rise('x2', RECEIVED) < rise('x1', SENT), 'none was dropped')
        conn.close()
    finally:
        for host, dev in ENDS:
            net.sh(f'in_host {host} tc qdisc del dev {dev} clsact')


class Merging:
    """Within it, packets come one by one, and the links' GRO puts them together."""

    def __enter__(self):
        # veth has no GRO for a peer that cuts nothing itself.
        offload(False, 'gso', 'tso')
        offload(True, 'gro')

    def __exit__(self, *_):
        offload(False, 'gro')
        offload(True, 'gso', 'tso')


def merged():
    """All that GRO has put together arrives, with packets of all lengths between."""
    with Merging():
        for version, mtu in ((4, MTU1024), (6, MTU1024), (4, MTU4096)):
            conn, rise = connect(version=version, mtu=mtu), Rise()
            work(conn)
            for dev in ('x1', 'x2'):
                expect(rise(dev, MERGED), f'{dev} got none that was put together')
                expect_eq(rise(dev, RECEIVED), 0, 'super-packets')
            rise.none_lost()
            conn.close()
        # What others hold is cut for us.
        taps = [Tap(host, dev, supers=True) for host, dev in ENDS]
        conn, rise = connect(), Rise()
        work(conn)
        big = [any(is_long(f) for f, _ in tap.frames() if roce.is_roce(f)) for tap in taps]
        expect_eq(big, [True, True], 'the captures have packets that were put together')
        expect_eq(rise('x2', MERGED), 0, 'packets that GRO put together came whole')
        rise.none_lost()
        conn.close()
        for tap in taps:
            tap.close()


def merged_changed():
    """Each packet is checked by itself: the one that was changed is refused. What was only moved is
    cut."""
    with Merging():
        rise = changed(200, supers=False)
        expect(rise('x2', 'rcvd_icrc_err'), 'no packet was refused')
        expect(rise('x2', 'out_of_seq_request'), 'no other packet was taken')
        # Before they are put together, any of them may be hit. traffic.write() looks at the data.
        net.sh('in_host h1 tc qdisc add dev e1 root netem corrupt 10%')
        try:
            conn, rise = connect(timeout=14), Rise()
            for _ in range(4):
                traffic.write(conn, 65536)
            expect(rise('x2', MERGED), 'none were put together')
            expect(rise('x2', 'rcvd_icrc_err') > 4, 'no packet was refused')
            conn.close()
        finally:
            net.sh('in_host h1 tc qdisc del dev e1 root')
        with Written(1500, 'preserve'):
            conn, rise = connect(), Rise()
            traffic.write(conn, 65536)
            expect_eq(rise('x2', MERGED), 0, 'packets that GRO put together came whole')
            rise.none_lost()
            conn.close()


class Written:
    """Within it, somebody writes to a byte of every super-packet of data that comes to h2, or of
    what GRO has put together."""

    def __init__(self, offset, how):
        self.rule = f'''in_host h2 tc filter add dev e2 ingress bpf bytecode '{IS_LONG}' \
            classid 1:1 action pedit munge offset {offset} u8 {how}'''

    def __enter__(self):
        net.sh(f'in_host h2 tc qdisc add dev e2 clsact && {self.rule}')

    def __exit__(self, *_):
        net.sh('in_host h2 tc qdisc del dev e2 clsact')


def connect_vlan(version='vlan-ipv4', mtu=MTU4096, **opts):
    """A connection over a VLAN, whose super-packets have ICRCs."""
    vlans_up()
    a, b = (verbs.Node(dev, place) for dev, place in zip(('x1', 'x2'), net.PLACES[version]))
    mtu = min(a.mtu, b.mtu, mtu)
    conn = verbs.Rc(a, b, mtu=mtu, timeout=opts.pop('timeout', PATIENT), **opts)
    conn.mtu = mtu
    return conn


def changed(offset, supers=True, conn=None):
    """What somebody has changed is refused. Returns how much counters have risen."""
    with Written(offset, 'invert'):
        conn, rise = conn or connect(timeout=16), Rise()
        traffic.write(conn, 20 * 1024)
        expect_eq(rise('x1', SENT) > 0, supers, 'super-packets were sent')
        expect(rise('x1', 'retransmits'), 'nothing was sent again')
        conn.close()
        return rise


def changed_first():
    """A byte of the first packet. The others are taken as they are."""
    rise = changed(200, conn=connect_vlan(mtu=MTU1024, timeout=16))
    expect_eq(rise('x2', 'rcvd_icrc_err'), rise('x1', SENT), 'packets refused')
    expect(rise('x2', 'out_of_seq_request'), 'no other packet was taken')


def changed_later():
    """A byte of another packet, for which the super-packet is cut."""
    rise = changed(3000, conn=connect_vlan(mtu=MTU1024, timeout=16))
    expect(rise('x2', 'rcvd_icrc_err') + rise('x2', 'rcvd_malformed'), 'no packet was refused')


def damaged():
    """A wire that damages packets, for which it cuts super-packets: the receiver refuses what is
    damaged, and all data are right in the end."""
    net.sh('in_host h1 tc qdisc add dev e1 root netem corrupt 30%')
    try:
        for version in (4, 6):
            conn, rise = connect(version=version, timeout=14), Rise()
            for _ in range(40):
                traffic.write(conn, 65536)
                cuts = rise('x1', SENT) - rise('x2', RECEIVED)
                refused = rise('x2', 'rcvd_icrc_err')
                if cuts > 2 and refused > 4:
                    break
            else:
                raise AssertionError(f'{cuts} were cut, {refused} packets were refused')
            conn.close()
    finally:
        net.sh('in_host h1 tc qdisc del dev e1 root')


def moved():
    """Somebody has the stack move bytes of packets into the first: it is cut, and nothing lost."""
    with Written(1500, 'preserve'):
        for version in (4, 6):
            conn, rise = connect(version=version), Rise()
            traffic.write(conn, 65536)
            expect(rise('x1', SENT), 'no super-packet was sent')
            expect_eq(rise('x2', RECEIVED), 0, 'super-packets that came whole')
            rise.none_lost()
            conn.close()


def waiting():
    """Queue pairs that may have to wait for memory take packets out of super-packets one by one."""
    conn = verbs.Rc(verbs.Node('x1', 4), verbs.Node('x2', 4), mtu=MTU1024, timeout=PATIENT)
    size, rise = 65536, Rise()
    access = verbs.ALL | ON_DEMAND
    src, dst, back = conn.a.mr(size, access), conn.b.mr(size, access), conn.a.mr(size, access)
    data = pattern(11, size)
    put(src, data)
    remote = {'rkey': dst.rkey, 'raddr': dst.buf}
    conn.post(conn.send_wr(WR.IBV_WR_RDMA_WRITE, [sge(src)], **remote))
    verbs.ok(verbs.poll(conn.send_cq))
    expect(get(dst, size) == data, 'payload of the WRITE')
    conn.post(conn.send_wr(WR.IBV_WR_RDMA_READ, [sge(back)], **remote))
    verbs.ok(verbs.poll(conn.send_cq))
    expect(get(back, size) == data, 'payload of the READ')
    put(dst, bytes(size))
    conn.post_recv(verbs.recv_wr([sge(dst)]))
    conn.post(conn.send_wr(WR.IBV_WR_SEND, [sge(src)]))
    verbs.ok(verbs.poll(conn.recv_cq))
    verbs.ok(verbs.poll(conn.send_cq))
    expect(get(dst, size) == data, 'payload of the SEND')
    for dev in ('x1', 'x2'):
        expect(rise(dev, RECEIVED), f'{dev} has received no super-packet')
    rise.none_lost()
    conn.close()


def faults():
    """Memory ends in the midst of a train: what is in front of that is sent, or stored."""
    size, part = 40 * 1024, 5 * 1024 + 100
    for op in (WR.IBV_WR_RDMA_WRITE, WR.IBV_WR_RDMA_READ):
        conn = connect()
        # Trains go along a route that is known to take them.
        traffic.write(conn, size)
        traffic.read(conn, size)
        near, far = conn.a.mr(part), conn.b.mr(size)
        data, rise = pattern(12, size), Rise()
        put(far, data)
        elements = [sge(near), verbs.SGE(near.buf, size - part, near.lkey ^ 0xFF)]
        conn.post(conn.send_wr(op, elements, rkey=far.rkey, raddr=far.buf))
        status = verbs.poll(conn.send_cq)[0].status
        expect_eq(status, WCS.IBV_WC_LOC_PROT_ERR, 'status')
        if op == WR.IBV_WR_RDMA_WRITE:
            # The sixth packet has bytes of both elements.
            expect_eq(rise('x1', PACKETS[0]), 5, 'packets')
        else:
            expect(get(near, 5 * 1024) == data[: 5 * 1024], 'payload')
        conn.close()


def allocated():
    """Pages that the kernel has allocated so far."""
    with open('/proc/vmstat') as f:
        counts = dict(line.split() for line in f)
    return sum(int(n) for name, n in counts.items() if name.startswith('pgalloc_'))


def kept():
    """The memory of trains is used again."""
    conn = connect(mtu=MTU4096)
    size, times = 65536, 200
    src, dst = conn.a.mr(size), conn.b.mr(size)
    wr = conn.send_wr(WR.IBV_WR_RDMA_WRITE, [sge(src)], rkey=dst.rkey, raddr=dst.buf)

    def write():
        conn.post(wr)
        verbs.ok(verbs.poll(conn.send_cq))

    # Trains go along a route that is known to take them.
    write()
    rise, before = Rise(), allocated()
    for _ in range(times):
        write()
    pages = allocated() - before
    expect(rise('x2', RECEIVED) >= times, 'super-packets that came whole')
    trains = times * size // os.sysconf('SC_PAGE_SIZE')
    expect(pages < trains // 2, f'{pages} pages were allocated while trains had {trains}')
    conn.close()


def marked():
    """A queue marks one long packet: that is one mark, not one for each packet that it stands
    for."""
    conn = connect()
    traffic.write(conn, 20 * 1024)
    net.sh('netem h1 e1 loss 100% ecn')
    try:
        rise = Rise()
        traffic.write(conn, 20 * 1024)
        expect(rise('x1', PACKETS[0]) >= 20, 'packets')
        marks = rise('x2', MARKED)
        expect(1 <= marks <= 6, f'{marks} marks')
        conn.close()
    finally:
        net.sh('tc qdisc del dev e1 root', host='h1')


def lost():
    """A train is lost as a whole, and little more than that is sent again."""
    conn = connect(mtu=MTU4096)
    size, count = 65536, 32
    src, dst = conn.a.mr(size), conn.b.mr(size)
    data = pattern(9, size)
    put(src, data)
    traffic.write(conn, size)
    net.sh('tc qdisc add dev e2 clsact', host='h2')
    try:
        # Of what comes in, each 20th.
        net.sh(
            'tc filter add dev e2 ingress matchall action pass random determ drop 20', host='h2'
        )
        rise = Rise()
        wrs = [
            conn.send_wr(
                WR.IBV_WR_RDMA_WRITE,
                [sge(src, size)],
                rkey=dst.rkey,
                raddr=dst.buf,
                flags=verbs.SIGNALED if i == count - 1 else 0,
            )
            for i in range(count)
        ]
        for a, b in zip(wrs, wrs[1:]):
            a.next_wr = b
        conn.post(wrs[0])
        verbs.ok(verbs.poll(conn.send_cq))
        expect(get(dst, size) == data, 'payload')
        missing = rise('x1', 'sent_pkts') - rise('x2', 'rcvd_pkts')
        # The end is found to be missing by probes.
        again = rise('x1', 'retransmits') + rise('x1', 'tail_probes')
        ktap.note(f'{missing} packets were lost, {again} sent again')
        # Others are sent again because one was only late, or the train was a short one.
        expect(0 < missing <= again <= 2 * missing + 24, 'what is sent again')
        conn.close()
    finally:
        net.sh('tc qdisc del dev e2 clsact', host='h2')


def unreliable():
    """What nobody sends again goes alone from the start."""
    conn, rise = traffic.connect('uc', 'x1', 'x2', 4, MTU1024), Rise()
    traffic.write(conn, 65536, imm=traffic.IMM)
    expect_eq(rise('x1', SENT), 0, 'super-packets')
    conn.close()


def small():
    """Short messages that are posted together go together."""
    conn, rise = connect(), Rise()
    src, dst = conn.a.mr(64 * 8), conn.b.mr(64 * 8)
    data = pattern(5, 64 * 8)
    put(src, data)
    wrs = [
        conn.send_wr(
            WR.IBV_WR_RDMA_WRITE,
            [sge(src, 8, 8 * i)],
            rkey=dst.rkey,
            raddr=dst.buf + 8 * i,
            flags=verbs.SIGNALED if i == 63 else 0,
        )
        for i in range(64)
    ]
    for a, b in zip(wrs, wrs[1:]):
        a.next_wr = b
    conn.post(wrs[0])
    verbs.ok(verbs.poll(conn.send_cq))
    expect(get(dst, 64 * 8) == data, 'payload')
    rise.none_lost()
    conn.close()


def shrunk():
    """The link gets too small for the packets, and large again."""
    # Long enough for the two commands on a slow machine: eight times 1.1 s, or 4.3 s.
    conn, rise = connect(timeout=20 if ktap.DEBUG else 18), Rise()
    src, dst = conn.a.mr(65536), conn.b.mr(65536)
    data = pattern(7, 65536)
    put(src, data)
    net.run_in('h1', 'ip', 'link', 'set', 'e1', 'mtu', '600')
    try:
        conn.post(conn.send_wr(WR.IBV_WR_RDMA_WRITE, [sge(src)], rkey=dst.rkey, raddr=dst.buf))
        ktap.wait_for('packets that were not sent', 10, lambda: rise('x1', 'send_err') > 0)
        expect_eq(rise('x1', SENT), 0, 'super-packets of packets that are too long')
    finally:
        net.run_in('h1', 'ip', 'link', 'set', 'e1', 'mtu', '4300')
    verbs.ok(verbs.poll(conn.send_cq))
    expect(get(dst, 65536) == data, 'payload')
    conn.close()
    whole()


def vlan():
    """Over a VLAN, whose tag is beside the packets, or in them."""
    tagged = ((), ('tx-vlan-hw-insert',), ('tx-vlan-hw-insert', 'rx-vlan-hw-parse'))
    kinds = (('vlan-ipv4', tagged + (('tx-gso-list',),)), ('vlan-ipv6', tagged[::2]))
    if ktap.DEBUG and not ktap.LONG:
        kinds = (('vlan-ipv4', tagged[:1]),)
    for version, wires in kinds:
        for off in wires:
            with Off(*off):
                conn, rise = connect_vlan(version), Rise()
                work(conn)
                expect(rise('x1', SENT), f'no super-packet was sent, without {off}')
                rise.none_lost()
                conn.close()


BPF_PROG_LOAD, BPF_LINK_CREATE, SYS_BPF = 5, 28, 321
BPF_PROG_TYPE_XDP, BPF_XDP = 6, 37
SKB_MODE, DRV_MODE = 2, 4


def bpf(command, attributes):
    """The system call; returns a descriptor."""
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes, 128)
    fd = libc.syscall(SYS_BPF, command, buffer, 128)
    if fd < 0:
        raise OSError(ctypes.get_errno(), f'bpf({command})')
    return fd


def pass_all():
    """An XDP program that passes all."""
    code = struct.pack('<BBhi', 0xB7, 0, 0, 2) + struct.pack('<BBhi', 0x95, 0, 0, 0)
    insns, licence = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b'GPL')
    return bpf(
        BPF_PROG_LOAD,
        struct.pack(
            '<IIQQ', BPF_PROG_TYPE_XDP, 2, ctypes.addressof(insns), ctypes.addressof(licence)
        ),
    )


def attached(program, mode):
    """A program at e2, for as long as the descriptor is open."""
    here = os.open('/proc/self/ns/net', os.O_RDONLY)
    there = os.open('/run/netns/h2', os.O_RDONLY)
    os.setns(there, wire.CLONE_NEWNET)
    try:
        index = socket.if_nametoindex('e2')
        return bpf(BPF_LINK_CREATE, struct.pack('<IIII', program, index, BPF_XDP, mode))
    finally:
        os.setns(here, wire.CLONE_NEWNET)
        os.close(here)
        os.close(there)


def link_mtu(mtu):
    """Change the MTU of the link."""
    for host, dev in ENDS:
        net.run_in(host, 'ip', 'link', 'set', dev, 'mtu', str(mtu))


def xdp():
    """XDP at the receiver copies packets into memory of its own. That of the driver makes veth a
    net device that takes no super-packet whole: the sender's stack cuts them."""
    try:
        program = pass_all()
    except OSError as why:
        raise ktap.Skip(f'no XDP: {why}') from why
    conn = connect()
    # veth has XDP only for packets of less than a page.
    link_mtu(1500)
    try:
        for mode in (SKB_MODE, DRV_MODE):
            link, rise, tap = attached(program, mode), Rise(), Tap('h1', 'e1', supers=True)
            try:
                work(conn)
            finally:
                os.close(link)
            expect_eq(handed_over(tap), mode == SKB_MODE, f'veth got one whole, mode {mode}')
            expect(rise('x1', SENT), f'no super-packet was sent, mode {mode}')
            expect_eq(rise('x2', RECEIVED), 0, f'super-packets that came whole, mode {mode}')
            rise.none_lost()
    finally:
        link_mtu(4300)
        os.close(program)
    conn.close()


# What stands between the hosts instead of a plain link; e1 and e2 are their ends of it.
WIRES = '''
    hosts_clean && ip netns add h1 && ip netns add h2 && ip netns add h3 || exit 1
    between() { # the links to h3
        for n in 1 2; do
            ip link add e$n netns h$n type veth peer name p$n netns h3 &&
                ip -n h3 link set p$n up || exit 1
        done
    }
    case $WIRE in
    bridge)
        between && ip -n h3 link add b0 type bridge && ip -n h3 link set b0 up &&
            ip -n h3 link set p1 master b0 && ip -n h3 link set p2 master b0 || exit 1 ;;
    router)
        between && in_host h3 sh -ec 'echo 1 >/proc/sys/net/ipv4/ip_forward
            for n in 1 2; do
                echo 1 >/proc/sys/net/ipv4/conf/p$n/proxy_arp
                echo 0 >/proc/sys/net/ipv4/neigh/p$n/proxy_delay
                ip route add 10.7.0.$n dev p$n
            done' || exit 1 ;;
    macvlan)
        ip link add w1 netns h1 type veth peer name w2 netns h2 || exit 1
        for n in 1 2; do
            ip -n h$n link set w$n up &&
                ip -n h$n link add e$n link w$n type macvlan mode bridge || exit 1
        done ;;
    esac
    for n in 1 2; do
        ip -n h$n link set lo up
        ip -n h$n link set e$n up
        ip -n h$n addr add 10.7.0.$n/24 dev e$n
    done
    add_link h1 x1 e1 && add_link h2 x2 e2 && wait_gid x1 10.7.0.1 && wait_gid x2 10.7.0.2 || exit 1
'''


ACKNOWLEDGE, SEND_LAST = 0x11, 0x02


def sound(tap):
    """The packets that came by a tap one by one are all right, and messages are complete."""
    frames = [f for f, is_ours in tap.frames() if not is_ours and roce.is_roce(f)]
    packets = [roce.Packet(f) for f in frames]
    expect_eq([w for p in packets for w in p.wrong()], [], 'what is wrong with packets')
    requests = [p for p in packets if not p.is_response]
    data = [p for p in packets if p.is_response and p.opcode != ACKNOWLEDGE]
    expect(requests or data, 'the capture has nothing')
    # What may follow a First or a Middle packet of a SEND, a WRITE or a READ response.
    follow = {op: (0x01, 0x02, 0x03) for op in (0x00, 0x01)}
    follow.update({op: (0x07, 0x08, 0x09) for op in (0x06, 0x07)})
    follow.update({op: (0x0E, 0x0F) for op in (0x0D, 0x0E)})
    for a, b in [*zip(requests, requests[1:]), *zip(data, data[1:])]:
        if a.opcode in follow:
            expect(b.opcode in follow[a.opcode], f'{b.opcode:#x} after {a.opcode:#x}')
            expect_eq(b.psn, (a.psn + 1) & 0xFFFFFF, 'sequence number')
    # The AckReq bit and the SE bit are those of one packet each.
    asks = sum(p.ask for p in packets)
    expect(asks <= len(requests) // 2, f'{asks} of {len(requests)} requests ask')
    events = {p.opcode for p in packets if p.solicited}
    expect(events <= {SEND_LAST}, f'operation codes of packets that ask for an event: {events}')
    if requests:
        expect(asks and events, 'nothing asks')


def through(what):
    """By way of something else than a link. What does not change them passes them on."""
    traffic.node.cache_clear()
    net.sh(f'WIRE={what}; {WIRES}')
    whole()
    if what == 'router':
        # The next hop has room for the packets, not for many of them.
        net.sh('ip -n h3 link set p2 mtu 1280')
        whole()
    if what == 'bridge':
        # Ports that take none whole: they are cut on their way, and get their ICRCs.
        net.sh('for p in p1 p2; do in_host h3 ethtool -K $p tx-gso-list off || exit; done')
        conn, rise = connect(), Rise()
        taps = [Tap(host, dev, supers=True) for host, dev in ENDS]
        work(conn)
        traffic.send(conn, 65536, flags=verbs.SIGNALED | verbs.SOLICITED)
        for dev in ('x1', 'x2'):
            expect(rise(dev, SENT), f'{dev} has sent no super-packet')
            expect_eq(rise(dev, RECEIVED), 0, 'super-packets that came whole')
        rise.none_lost()
        for tap in taps:
            sound(tap)
            tap.close()
        conn.close()


def forwarded():
    """A host that forwards packets does not put them together, though it has a device of its own:
    each gets its TTL counted down."""
    traffic.node.cache_clear()
    net.sh(
        f'''WIRE=router; {WIRES}
        add_link h3 x3 p1 && in_host h3 ethtool -K p1 gro on &&
            in_host h1 ethtool -K e1 gso off tso off'''
    )
    conn, rise, tap = connect(), Rise(), Tap('h2', 'e2', supers=True)
    traffic.write(conn, 65536)
    got = [f for f, is_ours in tap.frames() if not is_ours and roce.is_roce(f)]
    tap.close()
    expect(not any(is_long(f) for f in got), 'the router has put packets together')
    expect(len(got) >= 64, f'the capture has {len(got)} packets')
    expect_eq({f[14 + 8] for f in got}, {63}, 'TTL')
    expect_eq((rise('x2', MERGED), rise('x2', RECEIVED)), (0, 0), 'packets that came as one')
    rise.none_lost()
    conn.close()


def reload(parameters):
    """The module with these parameters."""
    traffic.node.cache_clear()
    net.sh(f'hosts_clean; modprobe -r xroce && modprobe xroce {parameters}')


def up():
    """The hosts, which send super-packets if nobody says otherwise."""
    reload('')
    net.hosts_up(4300)


def down():
    """Nothing is left, and the module is as others expect it."""
    reload('')


def in_order():
    """Packets are late now and then, and not as a rule."""
    expect(3 * len(late) <= len(measured), f'{len(late)} of {len(measured)}: {late}')


def by_parameter():
    """The module was told to send none."""
    reload('super_packets=0')
    net.hosts_up(4300)
    try:
        cut(sent=False)
    finally:
        up()


if net.TYPE != 'xroce':
    ktap.skip_all('rxe has none')
ktap.add('whole', whole)
ktap.add('whole-ipv6', lambda: whole(version=6))
ktap.add('whole-mtu4096', lambda: whole(mtu=MTU4096))
ktap.add('whole-xrc', lambda: whole('xrc'))
FILTERED = (
    mirrored,
    marked,
    lost,
    never_through,
    changed_first,
    changed_later,
    damaged,
    moved,
    merged_changed,
)
PLAIN = (
    turned_off,
    captured,
    joined,
    cut_before,
    simple_devices,
    merged,
    waiting,
    faults,
    unreliable,
    small,
    xdp,
    vlan,
)
# Real-time kernels do not keep it, and the debug kernel allocates for itself.
if 'PREEMPT_RT' not in os.uname().version:
    ktap.add('kept', kept, debug=False)
# The link has no IPv6 any more after the last.
for fn in (*PLAIN, *FILTERED, shrunk):
    # The debug kernel has no filters.
    ktap.add(fn.__name__, fn, debug=fn not in FILTERED)
# The debug kernel is slow, and has no macvlan.
for name in ('bridge', 'router', 'macvlan'):
    ktap.add(name, lambda name=name: through(name), debug=False)
ktap.add('forwarded', forwarded, debug=False)
ktap.add('by_parameter', by_parameter, debug=False)
ktap.add('in_order', in_order)
ktap.main(up, down)
