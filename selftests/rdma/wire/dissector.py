#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=240
"""Packets of every operation on RC, UC, UD and XRC, over IPv4, IPv6 and a VLAN, as they
pass the link with segmentation offload off and on.

The expected contents of each packet follow from the work requests (lib/operations.py).
Lengths, padding, checksums and ICRCs are computed independently (lib/roce.py). tshark's
dissector has to read the same in all packets and must not complain (lib/tshark.py,
which lists what tshark does not know, mainly the headers and ICRC of XRC)."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]

import ktap
import net
import roce
import tshark
import verbs
import wire
from ktap import expect, expect_eq
from net import PLACES, VLAN
from operations import MTU, Conversation
from tap import Tap
from verbs import QP, QPT, QPCap, QPInitAttr, WCS, attributes, get

# All paddings, in one packet and in the last of two and of three.
LENGTHS = (0, 1, 2, 3, 4, MTU + 4, 2 * MTU + 1, 2 * MTU + 2, 2 * MTU + 3)
GHOST, PSN = 0xABCDEF, 0xFFFFFE
CE = 3

tap = None
nodes = {}
# All packets that passed, for tshark.
seen = []


def setup():
    global tap
    net.hosts_up()
    net.vlans_up()
    for place, (a, b) in PLACES.items():
        nodes[place] = verbs.Node('x1', a), verbs.Node('x2', b)
    tap = Tap()


def passed():
    """The RoCEv2 packets that passed since the last call: all sound, each flow numbered."""
    packets = [roce.Packet(frame) for frame, _ in tap.frames() if roce.is_roce(frame)]
    ids, ports = {}, {}
    for p in packets:
        expect_eq(p.wrong(), [], f'{roce.name(p.opcode)} with PSN {p.psn:#x}')
        expect(p.sport >= 0xC000, f'UDP source port {p.sport}')
        expect_eq(ports.setdefault(p.stream, p.sport), p.sport, 'UDP source port')
        if not p.v6:
            expect_eq(p.id, ids.get(p.stream, p.id), 'identification')
            ids[p.stream] = p.id + 1 & 0xFFFF
    return packets


def converse(kind, place, requests, last=WCS.IBV_WC_SUCCESS):
    """The requests, and the packets that they had to become."""
    conversation = Conversation(kind, *nodes[place])
    for request in requests:
        conversation.post(*request)
    conversation.finish(last)
    packets = conversation.compare(passed())
    conversation.close()
    for p in packets:
        expect_eq(
            (p.v6, p.vlan),
            (place.endswith('6'), VLAN if place.startswith('vlan') else None),
            'IPv6 and VLAN',
        )
        expect_eq((p.mig_req, p.becn), (1, 0), 'MigReq and BECN')
    seen.extend(packets)


def segmentation(state):
    """Offload of segmentation on the link, 'on' or 'off'."""
    for host, dev in (('h1', 'e1'), ('h2', 'e2')):
        net.sh(
            f'ethtool -K {dev} gso {state} &&'
            f' ethtool -k {dev} | grep -q "^generic-segmentation-offload: {state}"',
            host=host,
        )


def every_operation(kind, place):
    ops = {'ud': ('send', 'send_imm'), 'uc': ('send', 'write', 'write_imm', 'send_imm')}.get(
        kind, ('send', 'send_imm', 'write', 'write_imm', 'read')
    )
    lengths = (*LENGTHS[:5], 1021) if kind == 'ud' else LENGTHS
    requests = [(op, length) for length in lengths for op in ops]
    if kind in ('rc', 'xrc'):
        requests += [('cas',), ('faa',), ('flush',), ('atomic_write',)]
    if kind == 'rc':
        requests += [('send_inv', 1), ('send_inv', 2 * MTU + 1)]
    converse(kind, place, requests)
    if kind == 'xrc':
        # An XRC target has nothing to invalidate: windows are bound to other queue pairs.
        for length in (1, 2 * MTU + 1):
            converse(
                kind, place, [('send_inv', length, 0x12345678, True)], WCS.IBV_WC_REM_ACCESS_ERR
            )


def migration():
    """The migration bit makes no difference, and is 1 in the answers, but not in a
    congestion notification: that has none of it (A17.9.3)."""
    a, b = nodes['ipv4']
    mr = a.mr(64)
    cap = QPCap(max_send_wr=8, max_recv_wr=8, max_send_sge=1, max_recv_sge=1)
    qp = QP(a.pd, QPInitAttr(qp_type=QPT.IBV_QPT_RC, scq=a.cq, rcq=a.cq, cap=cap))
    qp.to_rts(attributes(a, b, GHOST, mtu=1, peer_psn=PSN))
    link = wire.Wire()
    got = []
    for n, (mig_req, mark) in enumerate(((1, 0), (0, 0), (0, CE))):

        def spoil(packet, mark=mark):
            packet[1] |= mark

        psn, data = PSN + n & 0xFFFFFF, b'no %d' % n
        link.send(
            wire.WRITE_ONLY,
            qp.qp_num,
            psn,
            wire.reth(mr.buf + 4 * n, mr.rkey, 4) + data,
            mig_req=mig_req,
            spoil=spoil,
        )

        def answered(psn=psn, mark=mark):
            got.extend(passed())
            return any(p.is_response and p.psn == psn for p in got) and (
                not mark or any(p.opcode == roce.CNP for p in got)
            )

        ktap.wait_for('an answer', 10, answered)
        expect_eq(get(mr, 4, 4 * n), data, 'what was written')
    expect_eq(
        [
            (roce.name(p.opcode), p.mig_req, p.becn, p.fields['syndrome'] >> 5)
            for p in got
            if p.is_response
        ],
        [(roce.name(wire.ACK), 1, 0, 0)] * 3,
        'answers',
    )
    expect_eq([p.mig_req for p in got if p.qpn == qp.qp_num], [1, 0, 0], 'requests')
    expect_eq(
        [(p.mig_req, p.becn, p.qpn, *p.fields.values()) for p in got if p.opcode == roce.CNP],
        [(0, 1, GHOST, 0, 0)],
        'notifications',
    )
    link.close()
    qp.close()
    seen.extend(got)


def all_were_there():
    """Every operation that IBTA has for each transport, everywhere."""
    limits = {0x00: 0x1F, 0x20: 0x0B, 0x60: 0x05, 0xA0: 0x1F}
    wanted = {
        base | op
        for base, most in limits.items()
        for op in roce.OPERATIONS
        if op <= most and (base != 0x60 or op >= 4)
    }
    for v6 in (False, True):
        for vlan in (None, VLAN):
            there = {p.opcode for p in seen if (p.v6, p.vlan) == (v6, vlan)} - {roce.CNP}
            expect_eq(
                {hex(op) for op in wanted ^ there},
                set(),
                f'operations over IPv{6 if v6 else 4}, VLAN {vlan}',
            )


def tshark_agrees():
    got = tshark.dissect([p.frame for p in seen])
    expect_eq(len(got), len(seen), 'packets that tshark saw')
    for packet, fields in zip(seen, got):
        wanted = tshark.expected(packet)
        wrong = {k: (fields.get(k), v) for k, v in wanted.items() if fields.get(k) != v}
        expect_eq(
            wrong, {}, f'{roce.name(packet.opcode)} of {len(packet.frame)} bytes: (tshark\'s, ours)'
        )
    ktap.note(f'{len(seen)} packets')


if net.TYPE != 'xroce':
    ktap.skip_all('identification and padding of rxe are not ours')
for _state in ('off', 'on'):
    ktap.add('gso-' + _state, lambda state=_state: segmentation(state))
    for _place in PLACES:
        for _kind in ('rc', 'uc', 'ud', 'xrc'):
            ktap.add(
                f'gso-{_state}-{_place}-{_kind}',
                lambda kind=_kind, place=_place: every_operation(kind, place),
            )
ktap.add('migration', migration)
ktap.add('every-operation', all_were_there)
ktap.add('tshark-agrees', tshark_agrees)
ktap.main(setup, net.clean)
