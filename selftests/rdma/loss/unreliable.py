#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=90 debug=long
"""UC and UD on a network that loses, duplicates and reorders packets: messages that
arrive are complete and unchanged. Over UC, each message arrives at most once and in
order. A duplicate that the network makes of a datagram counts as a datagram."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]

import ktap
import net
import verbs
from ktap import expect, expect_eq
from traffic import node
from verbs import GRH, WCO, WR, get, ok, pattern, poll, put, recv_wr, sge

ENDS = (('h1', 'e1'), ('h2', 'e2'))
WIRES = {
    # One of COUNT datagrams is as good as sure to be lost, or repeated, and one to arrive.
    'loss': 'loss 25%',
    'duplicates': 'duplicate 40%',
    'disorder': 'delay 2ms reorder 75% 50%',
    'all': 'loss 5% duplicate 5% delay 1ms reorder 5%',
}
COUNT, SIZE = 40, 4096
MARK = 0xFFFFF


class Traffic:
    """Numbered messages from x1 to x2, of up to four packets over UC."""

    def __init__(self, kind, version):
        make = {'uc': verbs.Uc, 'ud': verbs.Ud}[kind]
        options = {'mtu': 3} if kind == 'uc' else {}
        self.conn = make(node('x1', version), node('x2', version), depth=4 * COUNT, **options)
        self.kind = kind
        self.skip = GRH if kind == 'ud' else 0
        self.longest = 1024 if kind == 'ud' else SIZE
        self.src, self.dst = self.conn.a.mr(COUNT * SIZE), self.conn.b.mr(4 * COUNT * (GRH + SIZE))
        self.memory = self.conn.b.mr(COUNT * SIZE)
        for i in range(4 * COUNT - 1):
            self.post(i)

    def post(self, i):
        self.conn.post_recv(recv_wr([sge(self.dst, GRH + SIZE, i * (GRH + SIZE))], wr_id=i))

    def length(self, i):
        return 1 + i * 977 % self.longest

    def is_write(self, i):
        """Over UC every third message is a WRITE with immediate data."""
        return self.kind == 'uc' and i % 3 == 2

    def send(self, i):
        at = i % COUNT * SIZE
        put(self.src, pattern(i, self.length(i)), at)
        write = self.is_write(i)
        op = WR.IBV_WR_RDMA_WRITE_WITH_IMM if write else WR.IBV_WR_SEND_WITH_IMM
        self.conn.post(
            self.conn.send_wr(
                op,
                [sge(self.src, self.length(i), at)],
                wr_id=i,
                imm=i,
                **({'rkey': self.memory.rkey, 'raddr': self.memory.buf + at} if write else {}),
            )
        )

    def round(self, first):
        """COUNT messages; all are sent as far as the sender knows."""
        for i in range(first, first + COUNT):
            self.send(i)
        expect_eq(
            [w.wr_id for w in ok(poll(self.conn.send_cq, COUNT))],
            list(range(first, first + COUNT)),
            'sends',
        )

    def drain(self):
        """What has arrived, up to a message over the wire when it is good again."""
        self.send(MARK)
        ok(poll(self.conn.send_cq))
        got = []
        while True:
            wc = ok(poll(self.conn.recv_cq))[0]
            self.check(wc)
            self.post(wc.wr_id)
            if wc.imm_data == MARK:
                return got
            got.append(wc.imm_data)

    def check(self, wc):
        """The receive has one message, whole."""
        i = wc.imm_data
        expect(i == MARK or i < 2 * COUNT, f'message {i}')
        expect_eq(wc.byte_len, self.skip + self.length(i), 'byte_len')
        write = self.is_write(i)
        expect_eq(wc.opcode, WCO.IBV_WC_RECV_RDMA_WITH_IMM if write else WCO.IBV_WC_RECV, 'opcode')
        if write:
            # Nothing wrote there later: each place is used once a round, and rounds do not overlap.
            where, at = self.memory, i % COUNT * SIZE
        else:
            where, at = self.dst, wc.wr_id * (GRH + SIZE) + self.skip
        expect(get(where, self.length(i), at) == pattern(i, self.length(i)), f'message {i}')

    def close(self):
        self.conn.close()
        for mr in (self.src, self.dst, self.memory):
            mr.close()


def judge(t, what):
    """What arrived over such a wire; and then all of it over a good one."""
    got = t.drain()
    ktap.note(f'{t.kind}: {len(got)} of {COUNT} arrived, {len(set(got))} different')
    if t.kind == 'uc':
        expect_eq(got, sorted(set(got)), 'once and in order')
    elif 'duplicate' not in WIRES[what]:
        expect_eq(len(got), len(set(got)), 'at most once')
    if what == 'loss':
        expect(0 < len(set(got)) < COUNT, 'the wire was not bad')
    if what == 'duplicates':
        expect_eq(sorted(set(got)), list(range(COUNT)), 'all arrive')
        expect(t.kind == 'uc' or len(got) > COUNT, 'the wire was not bad')
    t.round(COUNT)
    expect_eq(t.drain(), list(range(COUNT, 2 * COUNT)), 'on a good wire')
    t.close()


def one(what, version):
    """Connections and datagrams at the same time."""
    both = [Traffic(kind, version) for kind in ('uc', 'ud')]
    net.sh('; '.join(f'netem {host} {dev} {WIRES[what]}' for host, dev in ENDS))
    try:
        for t in both:
            t.round(0)
    finally:
        # What the wire still holds is gone with it.
        net.sh('; '.join(f'in_host {host} tc qdisc del dev {dev} root' for host, dev in ENDS))
    for t in both:
        judge(t, what)


def setup():
    net.hosts_up()
    # The wire is to see single packets.
    for host, dev in ENDS:
        net.sh(f'in_host {host} ethtool -K {dev} tso off gso off gro off', check=False)


def main():
    for what in WIRES:
        ktap.add(f'{what}-ipv4', lambda w=what: one(w, 4))
    # IPv6 differs in the headers only.
    ktap.add('all-ipv6', lambda: one('all', 6), debug=False)
    if net.TYPE != 'xroce':
        ktap.skip_all('datagrams of rxe have other limits')
    ktap.main(setup, net.clean)


main()
