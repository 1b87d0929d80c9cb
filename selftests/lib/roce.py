# SPDX-License-Identifier: GPL-2.0
"""Parses RoCEv2 packets, using only IBTA's tables: the operation codes of 9.2.1 and
annex A14, the headers of 9.2 to 9.6, A14 and A19, the ICRC of A17.

Nothing is assumed to be correct: wrong() checks every field that can have only one
right value (lengths, versions, reserved bytes, padding, checksums).
"""
import socket
import struct

import wire

TRANSPORTS = {
    0x00: 'Reliable Connection (RC)',
    0x20: 'Unreliable Connection (UC)',
    0x60: 'Unreliable Datagram (UD)',
    0xA0: 'Extended Reliable Connection (XRC)',
}
# Name, and the extended headers but for those that belong to the transport.
OPERATIONS = {
    0x00: ('SEND First', ''),
    0x01: ('SEND Middle', ''),
    0x02: ('SEND Last', ''),
    0x03: ('SEND Last with Immediate', 'immdt'),
    0x04: ('SEND Only', ''),
    0x05: ('SEND Only with Immediate', 'immdt'),
    0x06: ('RDMA WRITE First', 'reth'),
    0x07: ('RDMA WRITE Middle', ''),
    0x08: ('RDMA WRITE Last', ''),
    0x09: ('RDMA WRITE Last with Immediate', 'immdt'),
    0x0A: ('RDMA WRITE Only', 'reth'),
    0x0B: ('RDMA WRITE Only with Immediate', 'reth immdt'),
    0x0C: ('RDMA READ Request', 'reth'),
    0x0D: ('RDMA READ response First', 'aeth'),
    0x0E: ('RDMA READ response Middle', ''),
    0x0F: ('RDMA READ response Last', 'aeth'),
    0x10: ('RDMA READ response Only', 'aeth'),
    0x11: ('Acknowledge', 'aeth'),
    0x12: ('ATOMIC Acknowledge', 'aeth atomicacketh'),
    0x13: ('CmpSwap', 'atomiceth'),
    0x14: ('FetchAdd', 'atomiceth'),
    0x16: ('SEND Last with Invalidate', 'ieth'),
    0x17: ('SEND Only with Invalidate', 'ieth'),
    0x1C: ('FLUSH', 'feth reth'),
    0x1D: ('ATOMIC WRITE', 'reth'),
}
RESPONSES = range(0x0D, 0x13)
CNP = 0x81
# Each header's form and fields; reserved bytes belong to the field behind them.
HEADERS = {
    'xrceth': ('!I', 'srqn'),
    'deth': ('!II', 'qkey srcqp'),
    'feth': ('!I', 'flush'),
    'reth': ('!QII', 'va rkey dmalen'),
    'atomiceth': ('!QIQQ', 'va rkey swap compare'),
    'aeth': ('!BBH', 'syndrome msn_high msn_low'),
    'atomicacketh': ('!Q', 'original'),
    'immdt': ('!I', 'imm'),
    'ieth': ('!I', 'inv'),
    'cnp': ('!QQ', 'zero1 zero2'),
}


def headers(opcode):
    """The extended headers of an operation code, in their order."""
    if opcode == CNP:
        return ['cnp']
    transport, operation = opcode & 0xE0, opcode & 0x1F
    first = []
    if transport == 0xA0 and operation not in RESPONSES:
        first = ['xrceth']
    if transport == 0x60:
        first = ['deth']
    return first + OPERATIONS[operation][1].split()


def name(opcode):
    """What an operation code is called."""
    if opcode == CNP:
        return 'CNP'
    return f'{TRANSPORTS[opcode & 0xe0]} - {OPERATIONS[opcode & 0x1f][0]}'


def is_roce(frame):
    """Does the Ethernet frame, tagged or not, hold UDP to RoCEv2's port?"""
    at = 16 if frame[12:14] == b'\x81\0' else 12
    kind, ip = frame[at : at + 2], frame[at + 2 :]
    start = {b'\x08\0': 20, b'\x86\xdd': 40}.get(kind)
    if start is None or len(ip) < start + 8 or ip[9 if start == 20 else 6] != socket.IPPROTO_UDP:
        return False
    return ip[start + 2 : start + 4] == struct.pack('!H', wire.PORT)


class Packet:
    """A packet from an Ethernet frame that is_roce()."""

    def __init__(self, frame):
        self.frame = frame
        at = 14
        self.vlan = None
        if frame[12:14] == b'\x81\0':
            self.vlan, at = int.from_bytes(frame[14:16], 'big') & 0xFFF, 18
        self.packet = frame[at:]
        self.v6 = self.packet[0] >> 4 == 6
        body = 48 if self.v6 else 28
        self.ip, self.udp, self.body = (
            self.packet[: body - 8],
            self.packet[body - 8 : body],
            self.packet[body:],
        )
        self.src = self.ip[8:24] if self.v6 else self.ip[12:16]
        self.id = None if self.v6 else int.from_bytes(self.ip[4:6], 'big')
        self.sport, _, self.udp_length, self.udp_checksum = struct.unpack('!HHHH', self.udp)
        self.opcode, flags, self.pkey, qp, psn = struct.unpack('!BBHII', self.body[:12])
        self.solicited, self.mig_req, self.pad, self.version = (
            flags >> 7,
            flags >> 6 & 1,
            flags >> 4 & 3,
            flags & 15,
        )
        self.becn, self.reserved, self.qpn = qp >> 30 & 1, qp >> 24 & 0xBF, qp & 0xFFFFFF
        self.ask, self.reserved7, self.psn = psn >> 31, psn >> 24 & 0x7F, psn & 0xFFFFFF
        self.is_response = self.opcode & 0x1F in RESPONSES
        self.fields = {}
        at = 12
        for header in headers(self.opcode):
            form, names = HEADERS[header]
            values = struct.unpack_from(form, self.body, at)
            self.fields.update(zip(names.split(), values))
            at += struct.calcsize(form)
        end = len(self.body) - 4 - self.pad
        self.payload, self.padding, self.icrc = self.body[at:end], self.body[end:-4], self.body[-4:]

    @property
    def stream(self):
        """Packets of one sender to one queue pair."""
        return self.src, self.qpn, self.is_response

    def wrong(self):
        """What is not as it must be in any packet."""
        length = (
            40 + int.from_bytes(self.ip[4:6], 'big')
            if self.v6
            else int.from_bytes(self.ip[2:4], 'big')
        )
        checks = {
            'length of IP': len(self.packet) == length,
            'length of UDP': len(self.udp) + len(self.body) == self.udp_length,
            'IPv4 header': self.v6 or self.ip[0] == 0x45 and wire.checksum(self.ip) == 0,
            'fragment': self.v6 or self.ip[6:8] == b'\x40\0',
            'UDP checksum': self.udp_checksum == 0,
            'ICRC': self.icrc == wire.icrc(self.ip, self.udp, self.body[:-4]),
            'padding': not any(self.padding) and len(self.padding) == -len(self.payload) & 3,
            'BTH': (self.version, self.pkey, self.reserved, self.reserved7) == (0, 0xFFFF, 0, 0),
        }
        return [what for what, right in checks.items() if not right]
