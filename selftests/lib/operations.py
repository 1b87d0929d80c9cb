# SPDX-License-Identifier: GPL-2.0
"""Every operation of ibv_wr_*(), and the packets that IBTA specifies for it.

A Conversation is a number of requests from one node to another. The packets that it
expects on the wire are computed here, from the requests and the path MTU, packet by
packet.
"""
from pyverbs.addr import AH
from pyverbs.base import inc_rkey
from pyverbs.cq import CQ
from pyverbs.libibverbs_enums import (
    ibv_mw_type as MW_TYPE,
    ibv_placement_type as PLACEMENT,
    ibv_qp_create_send_ops_flags as OPS,
    ibv_selectivity_level as LEVEL,
)
from pyverbs.mr import MW, MWBindInfo
from pyverbs.qp import QPEx

import verbs
from ktap import expect, expect_eq
from verbs import (
    ACC,
    ALL,
    INIT,
    QPT,
    SGE,
    WCO,
    WCS,
    QPCap,
    QPInitAttrEx,
    get,
    ok,
    pattern,
    poll,
    put,
)

# Bytes of payload in a packet, and of memory for each of DEPTH requests: odd, so
# that little is aligned.
MTU, SLOT, DEPTH = 256, 1201, 64
FIRST_PSN = 0xFFFFF0
QKEY = 0x11223344
# The same in both byte orders: which one wr_send_imm() takes is pyverbs' affair.
IMM = 0x5AA5A55A
# What stands in front of a received datagram.
GRH = 40
# Of a completion's flags.
WITH_IMM, WITH_INV = 1 << 1, 1 << 3
# NAKs: PSN sequence error, remote access error.
OUT_OF_ORDER, REFUSED = 0x60, 0x62
FLUSH_GLOBAL, MW_BIND = int(ACC.IBV_ACCESS_FLUSH_GLOBAL), int(ACC.IBV_ACCESS_MW_BIND)

_DATA = OPS.IBV_QP_EX_WITH_SEND | OPS.IBV_QP_EX_WITH_SEND_WITH_IMM
_CONNECTED = _DATA | OPS.IBV_QP_EX_WITH_RDMA_WRITE | OPS.IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM
_RELIABLE = (
    _CONNECTED
    | OPS.IBV_QP_EX_WITH_SEND_WITH_INV
    | OPS.IBV_QP_EX_WITH_RDMA_READ
    | OPS.IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP
    | OPS.IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD
    | OPS.IBV_QP_EX_WITH_FLUSH
    | OPS.IBV_QP_EX_WITH_ATOMIC_WRITE
)
# The queue pair's type, what it is made for, the base of its operation codes.
KINDS = {
    'rc': (QPT.IBV_QPT_RC, _RELIABLE | OPS.IBV_QP_EX_WITH_BIND_MW, 0x00),
    'uc': (QPT.IBV_QPT_UC, _CONNECTED, 0x20),
    'ud': (QPT.IBV_QPT_UD, _DATA, 0x60),
    'xrc': (QPT.IBV_QPT_XRC_SEND, _RELIABLE, 0xA0),
}
# First, middle, last and only packet.
CODES = {
    'send': (0x00, 0x01, 0x02, 0x04),
    'send_imm': (0x00, 0x01, 0x03, 0x05),
    'send_inv': (0x00, 0x01, 0x16, 0x17),
    'write': (0x06, 0x07, 0x08, 0x0A),
    'write_imm': (0x06, 0x07, 0x09, 0x0B),
}
RESPONSES = (0x0D, 0x0E, 0x0F, 0x10)
WRITE_ONLY = 0x0A
READ, ACK, ATOMIC_ACK, CAS, FAA, FLUSH, ATOMIC_WRITE = 0x0C, 0x11, 0x12, 0x13, 0x14, 0x1C, 0x1D


def swapped(value):
    """32 bits in the other byte order: which one pyverbs shows is its affair."""
    return int.from_bytes(value.to_bytes(4, 'little'), 'big')


def cut(codes, data, mtu):
    """The operation and the payload of each packet of a message."""
    parts = [data[at : at + mtu] for at in range(0, len(data), mtu)] or [b'']
    first, middle, last, only = codes
    if len(parts) == 1:
        return [(only, data)]
    return list(zip([first] + [middle] * (len(parts) - 2) + [last], parts))


class Expected:
    """A packet that has to come: PSN, operation code, fields of its headers, payload."""

    def __init__(self, psn, opcode, payload=b'', solicited=0, **fields):
        self.psn, self.opcode, self.payload, self.solicited, self.fields = (
            psn,
            opcode,
            payload,
            solicited,
            fields,
        )

    def check(self, packet):
        """The roce.Packet is that."""
        what = f'{self.opcode:#04x} with PSN {self.psn:#x}: '
        expect_eq(hex(packet.opcode), hex(self.opcode), what + 'opcode')
        expect_eq(packet.solicited, self.solicited, what + 'solicited event')
        expect_eq(packet.pad, -len(self.payload) & 3, what + 'pad count')
        expect_eq(packet.payload, self.payload, what + 'payload')
        expect_eq(
            {k: v for k, v in packet.fields.items() if k in self.fields},
            self.fields,
            what + 'headers',
        )


class Conversation:
    """Requests of a kind of queue pair ('rc', 'uc', 'ud', 'xrc') from node a to node b.

    post() them, finish(), then compare() what was on the wire."""

    def __init__(self, kind, a, b):
        self.kind, self.a, self.b = kind, a, b
        self.mtu = verbs.MTU_BYTES[a.mtu] if kind == 'ud' else MTU
        self.cq, self.bind_cq, self.recv_cq = (
            CQ(a.ctx, 2 * DEPTH),
            CQ(b.ctx, 8),
            CQ(b.ctx, 2 * DEPTH),
        )
        self.domain = self.srq = self.ah = None
        self._connect()
        self.src, self.back = a.mr(DEPTH * SLOT), a.mr(DEPTH * SLOT)
        self.far, self.cell = b.mr(DEPTH * SLOT), b.mr(24)
        self.dst = b.mr(DEPTH * SLOT, ALL | FLUSH_GLOBAL | MW_BIND)
        put(self.src, pattern(1, DEPTH * SLOT))
        put(self.far, pattern(2, DEPTH * SLOT))
        self.psn, self.posted, self.windows = FIRST_PSN, 0, []
        # What each receive must say: its operation, flags and immediate data or key.
        self.received = []
        # What says that a receive holds a key that is no more good.
        self.with_inv = WITH_INV
        # The responder keeps requests that come before an earlier one.
        self.keeps_early = True
        # What must be on the wire, responses by PSN; and in memory.
        self.requests, self.responses, self.landed = [], {}, []

    def _queue_pair(self, node, send_cq, recv_cq):
        qp_type, ops, self.base = KINDS[self.kind]
        receives = 0 if self.kind == 'xrc' else DEPTH
        cap = QPCap(
            max_send_wr=DEPTH,
            max_recv_wr=receives,
            max_send_sge=1,
            max_recv_sge=min(receives, 1),
            max_inline_data=64,
        )
        return QPEx(
            node.ctx,
            QPInitAttrEx(
                qp_type=qp_type,
                scq=send_cq,
                rcq=recv_cq,
                cap=cap,
                pd=node.pd,
                send_ops_flags=ops,
                comp_mask=INIT.IBV_QP_INIT_ATTR_PD | INIT.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
            ),
        )

    def _connect(self):
        a, b = self.a, self.b
        self.qp = self._queue_pair(a, self.cq, self.cq)
        if self.kind == 'xrc':
            self.domain = verbs.Domain(b)
            self.srq = self.domain.srq(self.recv_cq, depth=DEPTH, sges=1)
            self.peer, self.receiver = self.domain.tgt(), self.srq
        else:
            self.peer = self.receiver = self._queue_pair(b, self.bind_cq, self.recv_cq)
        # The timeout is so long that nothing is repeated because this machine was busy.
        attr = verbs.attributes(a, b, self.peer.qp_num, mtu=1, psn=FIRST_PSN, timeout=20)
        access = ALL | FLUSH_GLOBAL if self.kind in ('rc', 'xrc') else ALL
        back = verbs.attributes(
            b, a, self.qp.qp_num, mtu=1, peer_psn=FIRST_PSN, timeout=20, access=access
        )
        if self.kind == 'ud':
            attr.qkey = back.qkey = QKEY
            self.ah = AH(a.pd, attr=a.ah_attr(b))
        self.peer.to_rts(back)
        self.qp.to_rts(attr)

    def window(self):
        """The key of a window on the destination that is bound to the peer's queue pair."""
        window = MW(self.b.pd, mw_type=MW_TYPE.IBV_MW_TYPE_2)
        self.windows.append(window)
        key = inc_rkey(window.rkey)
        self.peer.wr_start()
        self.peer.wr_flags = verbs.SIGNALED
        self.peer.wr_bind_mw(
            window,
            key,
            MWBindInfo(self.dst, self.dst.buf, DEPTH * SLOT, int(ACC.IBV_ACCESS_REMOTE_WRITE)),
        )
        self.peer.wr_complete()
        ok(poll(self.bind_cq))
        return key

    def _next(self, count=1):
        psn = self.psn
        self.psn = psn + count & 0xFFFFFF
        return psn

    def _expect(self, parts, first, last):
        """The packets of a request; the fields of the first's headers and of the last's."""
        common = {}
        if self.srq:
            common = {'srqn': self.srq.get_srq_num()}
        elif self.ah:
            common = {'qkey': QKEY, 'srcqp': self.qp.qp_num}
        for i, (code, payload) in enumerate(parts):
            ends = i == len(parts) - 1
            fields = {**common, **(first if i == 0 else {}), **(last if ends else {})}
            self.requests.append(
                Expected(
                    self._next(), self.base | code, payload, int(ends and 'imm' in last), **fields
                )
            )

    def _answer(self, psn, code, payload=b'', **fields):
        self.responses[psn] = Expected(psn, self.base | code, payload, **fields)

    def post(self, op, length=0, key=None, refused=False):
        """Posts a request for length bytes, and notes what is to be seen of it.

        key: what a WRITE goes through, not the destination's; what a SEND invalidates, not a
        window of its own. refused: the key is not good, and the peer says so."""
        at = self.posted * SLOT
        if op == 'send_inv' and key is None:
            key = self.window()
        if op.startswith('send') or op == 'write_imm':
            self.received.append(
                None
                if refused
                else {
                    'send': (WCO.IBV_WC_RECV, 0, None),
                    'send_imm': (WCO.IBV_WC_RECV, WITH_IMM, IMM),
                    'write_imm': (WCO.IBV_WC_RECV_RDMA_WITH_IMM, WITH_IMM, IMM),
                    'send_inv': (WCO.IBV_WC_RECV, WITH_INV, key),
                }[op]
            )
            head = GRH if self.ah else 0
            self.receiver.post_recv(
                verbs.recv_wr(
                    []
                    if op == 'write_imm'
                    else [SGE(self.dst.buf + at, length + head, self.dst.lkey)]
                )
            )
        qp = self.qp
        qp.wr_start()
        qp.wr_id = self.posted
        qp.wr_flags = verbs.SIGNALED | (verbs.SOLICITED if op.endswith('imm') else 0)
        local = SGE(self.src.buf + at, length, self.src.lkey)
        if op in CODES:
            first, last, data = {}, {}, get(self.src, length, at)
            rkey = self.dst.rkey if key is None else key
            if op.startswith('write'):
                first = {'va': self.dst.buf + at, 'rkey': rkey, 'dmalen': length}
            if op == 'send':
                qp.wr_send()
            elif op == 'send_imm':
                qp.wr_send_imm(IMM)
                last = {'imm': IMM}
            elif op == 'send_inv':
                qp.wr_send_inv(key)
                last = {'inv': key}
            elif op == 'write':
                qp.wr_rdma_write(rkey, self.dst.buf + at)
            elif op == 'write_imm':
                qp.wr_rdma_write_imm(rkey, self.dst.buf + at, IMM)
                last = {'imm': IMM}
            self._expect(cut(CODES[op], data, self.mtu), first, last)
            if refused:
                self._answer(self.requests[-1].psn, ACK, syndrome=REFUSED)
            else:
                self.landed.append((self.dst, at + (GRH if self.ah else 0), data))
        elif op == 'read':
            local = SGE(self.back.buf + at, length, self.back.lkey)
            self._read(length, at)
        else:
            local = SGE(self.back.buf + at, 8, self.back.lkey) if op in ('cas', 'faa') else None
            getattr(self, '_' + op)()
        if self.srq:
            qp.wr_set_xrc_srqn(self.srq.get_srq_num())
        if self.ah:
            qp.wr_set_ud_addr(self.ah, self.peer.qp_num, QKEY)
        if local:
            qp.wr_set_sge(local)
        qp.wr_complete()
        self.posted += 1

    def _read(self, length, at):
        data = get(self.far, length, at)
        self.qp.wr_rdma_read(self.far.rkey, self.far.buf + at)
        parts = cut(RESPONSES, data, self.mtu)
        for i, (code, part) in enumerate(parts):
            self._answer(self.psn + i & 0xFFFFFF, code, part)
        self._expect(
            [(READ, b'')], {'va': self.far.buf + at, 'rkey': self.far.rkey, 'dmalen': length}, {}
        )
        # Each packet of the response has a number.
        self._next(len(parts) - 1)
        self.landed.append((self.back, at, data))

    def _cas(self):
        cell, swap = self.cell, 0x0123456789ABCDEF
        self.qp.wr_atomic_cmp_swp(cell.rkey, cell.buf, 0, swap)
        self._answer(self.psn, ATOMIC_ACK, original=0)
        self._expect(
            [(CAS, b'')], {'va': cell.buf, 'rkey': cell.rkey, 'swap': swap, 'compare': 0}, {}
        )

    def _faa(self):
        cell = self.cell
        self.qp.wr_atomic_fetch_add(cell.rkey, cell.buf + 8, 3)
        self._answer(self.psn, ATOMIC_ACK, original=0)
        self._expect([(FAA, b'')], {'va': cell.buf + 8, 'rkey': cell.rkey, 'swap': 3}, {})

    def _atomic_write(self):
        cell, data = self.cell, b'8 bytes.'
        self.qp.wr_atomic_write(cell.rkey, cell.buf + 16, data)
        self._answer(self.psn, RESPONSES[3])
        self._expect(
            [(ATOMIC_WRITE, data)], {'va': cell.buf + 16, 'rkey': cell.rkey, 'dmalen': 8}, {}
        )
        self.landed.append((cell, 16, data))

    def _flush(self):
        dst = self.dst
        self.qp.wr_flush(dst.rkey, dst.buf, 64, PLACEMENT.IBV_FLUSH_GLOBAL, LEVEL.IBV_FLUSH_RANGE)
        self._answer(self.psn, RESPONSES[3])
        self._expect(
            [(FLUSH, b'')], {'va': dst.buf, 'rkey': dst.rkey, 'dmalen': 64, 'flush': 1}, {}
        )

    def finish(self, last=WCS.IBV_WC_SUCCESS):
        """Waits until all is done, the last request with that status; looks where the data went."""
        statuses = [wc.status for wc in poll(self.cq, self.posted)]
        expect_eq(
            statuses, [int(WCS.IBV_WC_SUCCESS)] * (self.posted - 1) + [int(last)], 'completions'
        )
        for wc, wanted in zip(poll(self.recv_cq, len(self.received)), self.received):
            if wanted is None:
                expect(wc.status != WCS.IBV_WC_SUCCESS, 'a receive for what was refused')
                continue
            opcode, flags, value = wanted
            ok([wc])
            flags = self.with_inv if flags == WITH_INV else flags
            expect_eq(
                (wc.opcode, wc.wc_flags & (WITH_IMM | self.with_inv)), (opcode, flags), 'receive'
            )
            if value is not None:
                expect(
                    wc.imm_data in (value, swapped(value)), f'{wc.imm_data:#x} came, not {value:#x}'
                )
        for mr, at, data in self.landed:
            expect(get(mr, len(data), at) == data, f'{len(data)} bytes at {at} differ')

    def compare(self, packets):
        """These roce.Packets are what the requests had to become, no more and no less,
        but for repeats, echoes and ACKs. Returns them without the repeats and the echoes."""
        once, newest = {}, {}
        for p in packets:
            last = newest.get(p.stream, p.psn)
            is_old = (p.psn - last) % (1 << 24) >= 1 << 23
            # A requester that waits for a READ sends an empty WRITE with the number before.
            is_empty = p.opcode == self.base | WRITE_ONLY and p.fields['dmalen'] == 0
            if not (is_old and is_empty):
                once.setdefault((*p.stream, p.opcode, p.psn), p)
            newest[p.stream] = last if is_old else p.psn
        once = list(once.values())
        requests = [p for p in once if (p.qpn, p.is_response) == (self.peer.qp_num, False)]
        answers = [p for p in once if (p.qpn, p.is_response) == (self.qp.qp_num, True)]
        expect_eq(len(requests) + len(answers), len(once), 'packets of these queue pairs')
        expect_eq(
            [hex(p.psn) for p in requests],
            [hex(e.psn) for e in self.requests],
            'PSNs of the requests',
        )
        for packet, wanted in zip(requests, self.requests):
            wanted.check(packet)
        reliable = self.kind in ('rc', 'xrc')
        expect(reliable or not answers, 'answers to what is unreliable')
        acks = {e.psn for e in self.requests} - set(self.responses)
        asked = [p for p in packets if (p.qpn, p.is_response) == (self.peer.qp_num, False)]
        was_repeated, missing = len(asked) > len(requests), set(self.responses)
        for packet in answers:
            is_ack = packet.opcode == self.base | ACK and packet.fields['syndrome'] < 0x20
            is_nak = packet.opcode == self.base | ACK and packet.fields['syndrome'] == OUT_OF_ORDER
            if is_nak and not self.keeps_early:
                # The requests were sent in order, as was just seen. A packet that one CPU sends can
                # be received before one that another CPU has sent: the doorbell sends on the CPU of
                # the process, an ACK has others sent on the CPU to which it comes.
                expect(packet.psn in {e.psn for e in self.requests}, 'NAK for no request')
                Expected(packet.psn, self.base | ACK, syndrome=OUT_OF_ORDER).check(packet)
            elif packet.psn in acks:
                Expected(packet.psn, self.base | ACK).check(packet)
                expect(packet.fields['syndrome'] < 0x20, 'ACK is none')
            elif not (was_repeated and is_ack):
                # A request that is repeated after it was executed is answered by an ACK of the
                # newest number, which may be that of a response.
                self.responses[packet.psn].check(packet)
                missing.discard(packet.psn)
        expect_eq(missing, set(), 'responses that have not come')
        return once

    def close(self):
        """Destroys it all."""
        for what in (
            self.ah,
            self.qp,
            self.peer,
            *self.windows,
            self.srq,
            self.src,
            self.back,
            self.far,
            self.cell,
            self.dst,
            self.cq,
            self.bind_cq,
            self.recv_cq,
            self.domain,
        ):
            if what:
                what.close()
