#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=60 debug
"""Datagrams: the header in front of the data in a receive, over IPv4 and IPv6, queue
keys (IBTA 10.2.5, 14.2.5.6), and what a process may have in the queues of the host."""
import ipaddress
import json
import os
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]

import ktap
import net
import verbs
from ktap import case, expect, expect_eq
from pyverbs.libibverbs_enums import ibv_qp_attr_mask as MASK
from traffic import node
from verbs import GRH, QPS, WR, QPAttr, Ud, get, ok, pattern, poll, put, recv_wr, sge

KEY, OTHER = 0x11223344, 0x55667788
# Stands for the queue pair's own key.
CONTROLLED = 1 << 31
FILL = b'\xee'


def send(conn, data, imm=None, qkey=None):
    """Posts a datagram and sees it sent."""
    src = conn.a.mr(len(data))
    put(src, data)
    op = WR.IBV_WR_SEND if imm is None else WR.IBV_WR_SEND_WITH_IMM
    before, conn.qkey = conn.qkey, conn.qkey if qkey is None else qkey
    conn.post(conn.send_wr(op, [sge(src, len(data))], imm=imm or 0))
    conn.qkey = before
    ok(poll(conn.send_cq))
    src.close()


def received(conn, dst, data, imm=None):
    """The next receive has that datagram; returns what stands before it."""
    wc = ok(poll(conn.recv_cq))[0]
    expect_eq(
        (wc.byte_len, wc.src_qp, wc.qp_num),
        (GRH + len(data), conn.send_qp.qp_num, conn.recv_qpn),
        'receive',
    )
    # IBV_WC_GRH, IBV_WC_WITH_IMM
    expect_eq(wc.wc_flags & 3, 1 if imm is None else 3, 'flags')
    if imm is not None:
        expect_eq(wc.imm_data, imm, 'immediate data')
    expect(get(dst, len(data), GRH) == data, 'payload')
    expect(get(dst, 64, GRH + len(data)) == FILL * 64, 'memory behind the datagram')
    return get(dst, GRH)


def headers(a, b, version):
    """The IP header is where the GRH would be, an IPv4 one at its end."""
    conn = Ud(node(a, version), node(b, version))
    dst = conn.b.mr(2048)
    addresses = [ipaddress.ip_address(net.address(dev, version)).packed for dev in (a, b)]
    for length in (0, 1, 1023, 1024):
        put(dst, FILL * 2048)
        conn.post_recv(recv_wr([sge(dst)]))
        data = pattern(length, length)
        send(conn, data, imm=length)
        grh = received(conn, dst, data, imm=length)
        # BTH, DETH, immediate data, payload, pad, ICRC.
        inner = 8 + 12 + 8 + 4 + (length + 3 & ~3) + 4
        if version == 4:
            ip = grh[20:]
            expect_eq(
                (ip[0], int.from_bytes(ip[2:4], 'big'), ip[9]),
                (0x45, 20 + inner, 17),
                'IPv4 header',
            )
            expect_eq([ip[12:16], ip[16:20]], addresses, 'addresses')
        else:
            expect_eq(
                (grh[0] >> 4, int.from_bytes(grh[4:6], 'big'), grh[6]),
                (6, inner, 17),
                'IPv6 header',
            )
            expect_eq([grh[8:24], grh[24:40]], addresses, 'addresses')
    verbs.nothing(conn.recv_cq)
    conn.close()


class Keys:
    """A pair whose ends have keys of their own."""

    def __init__(self, own, qkey):
        self.conn = Ud(node('x1', 4), node('x2', 4), own_qkey=own, qkey=qkey)
        self.dst = self.conn.b.mr(2048)
        self.n = 0

    def arrives(self, qkey):
        put(self.dst, FILL * 2048)
        self.conn.post_recv(recv_wr([sge(self.dst)]))
        self.n += 1
        data = pattern(self.n, 100)
        send(self.conn, data, qkey=qkey)
        received(self.conn, self.dst, data)
        verbs.nothing(self.conn.recv_cq)

    def refused(self, *qkeys):
        """None of them arrives; each is counted, by the device and the port."""
        before, port = net.counters('x2'), self.conn.b.ctx.query_port(1)
        for key in qkeys:
            send(self.conn, b'wrong', qkey=key)
        ktap.wait_for(
            'they are counted',
            10,
            lambda: net.counters('x2')['rcvd_bad_qkey'] - before['rcvd_bad_qkey'] == len(qkeys),
        )
        now = self.conn.b.ctx.query_port(1)
        expect_eq(now.qkey_viol_cntr - port.qkey_viol_cntr, len(qkeys), 'violations of the port')
        expect_eq(now.bad_pkey_cntr, port.bad_pkey_cntr, 'other violations')
        verbs.nothing(self.conn.recv_cq)


@case
def wrong_key():
    """Dropped, with its receive left for the next; the sender does not hear of it."""
    keys = Keys(own=OTHER, qkey=KEY)
    keys.conn.post_recv(recv_wr([sge(keys.dst)]))
    keys.refused(KEY ^ 1, 0, OTHER, 0x7FFFFFFF)
    put(keys.dst, FILL * 2048)
    send(keys.conn, b'right', qkey=KEY)
    received(keys.conn, keys.dst, b'right')
    keys.conn.close()


@case
def controlled_key():
    """With the top bit, the request's key is the queue pair's own, whatever the other bits are."""
    keys = Keys(own=OTHER, qkey=KEY)
    keys.arrives(KEY)
    keys.refused(CONTROLLED, CONTROLLED | KEY)
    keys.conn.close()
    keys = Keys(own=KEY, qkey=KEY)
    keys.arrives(CONTROLLED)
    keys.arrives(CONTROLLED | OTHER)
    keys.refused(OTHER)
    keys.conn.close()


@case
def key_changes():
    """The receiver's key is the one that its queue pair has now."""
    keys = Keys(own=KEY, qkey=KEY)
    keys.arrives(KEY)
    attr = QPAttr(qp_state=QPS.IBV_QPS_RTS)
    attr.qkey = OTHER
    keys.conn.recv_qp.modify(attr, MASK.IBV_QP_STATE | MASK.IBV_QP_QKEY)
    expect_eq(keys.conn.recv_qp.query(MASK.IBV_QP_QKEY)[0].qkey, OTHER, 'key')
    keys.refused(KEY, CONTROLLED)
    keys.arrives(OTHER)
    keys.conn.close()


def flood(count, length):
    """Sends from a process of its own."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            conn = Ud(verbs.Node('x1'), verbs.Node('x2'))
            src = conn.a.mr(length)
            wr = conn.send_wr(WR.IBV_WR_SEND, [sge(src)])
            for _ in range(0, count, 32):
                for _ in range(32):
                    conn.post(wr)
                ok(poll(conn.send_cq, 32))
            status = 0
        except BaseException:  # pylint: disable=broad-except
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    expect_eq(os.waitpid(pid, 0)[1], 0, 'the process that sends')


@case(debug=False)
def share_of_the_queues():
    """A process that sends more than the network takes fills 16 MiB of the queues of the host, and
    others can send."""
    mac = json.loads(net.sh('ip -j link show e2', host='h2'))[0]['address']
    net.sh(f'ip neigh replace {net.address("x2")} lladdr {mac} dev e1 nud permanent', host='h1')
    try:
        # A kilobyte a second, and room for more than anybody sends.
        net.sh('tc qdisc add dev e1 root tbf rate 8kbit burst 4kb limit 1000000000', host='h1')
    except RuntimeError as ex:
        raise ktap.Skip('no tbf') from ex
    try:
        backlog = lambda: json.loads(net.sh('tc -s -j qdisc show dev e1', host='h1'))[0]['qlen']
        errors = lambda: net.counters('x1')['send_err']
        before = errors()
        flood(9600, 1024)
        sent = backlog()
        # A packet takes between 2 and 4.5 KiB of memory.
        expect(3500 < sent < 8500, f'{sent} packets are waiting')
        expect(errors() - before > 0, 'nothing was dropped')
        before = errors()
        flood(256, 1024)
        expect_eq(errors() - before, 0, "another process's packets that were dropped")
        # Some may have left meanwhile.
        expect(backlog() > sent + 128, 'they are not waiting')
    finally:
        net.sh('tc qdisc del dev e1 root', host='h1')
        net.sh(f'ip neigh del {net.address("x2")} dev e1', host='h1')


def main():
    for version in (4, 6):
        ktap.add(f'headers-ipv{version}-wire', lambda v=version: headers('x1', 'x2', v))
        ktap.add(f'headers-ipv{version}-one-device', lambda v=version: headers('x1', 'x1', v))
    if net.TYPE != 'xroce':
        ktap.skip_all('counters are those of xroce')
    ktap.main(net.hosts_up, net.clean)


main()
