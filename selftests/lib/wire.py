# SPDX-License-Identifier: GPL-2.0
"""Hand-made RoCEv2 packets: headers, ICRC, sending and capturing.

Packets are sent from host h2 to device x1 of host h1 with any source address. The
responses of x1 are read from the link. Nothing here depends on an RDMA device at h2: a
peer's queue pair need not exist.
"""
import os
import socket
import struct
import time
import zlib

import ktap
import net

SRC, DST = '10.7.0.2', '10.7.0.1'
SRC6, DST6 = 'fd07::2', 'fd07::1'
PORT = 4791
CLONE_NEWNET = 0x40000000

RC, UC, UD, XRC = 0x00, 0x20, 0x60, 0xA0
SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY, SEND_ONLY_IMM = 0x00, 0x01, 0x02, 0x04, 0x05
WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_ONLY = 0x06, 0x07, 0x08, 0x0A
WRITE_LAST_IMM, WRITE_ONLY_IMM = 0x09, 0x0B
READ, READ_RESPONSE_ONLY, ACK, ATOMIC_ACK, FETCH_ADD = 0x0C, 0x10, 0x11, 0x12, 0x14
NAK_PSN, NAK_INVALID, NAK_ACCESS = 0x60, 0x61, 0x62


def bth(opcode, qpn, psn, ack=True, pad=0, version=0, pkey=0xFFFF, mig_req=0):
    """The base transport header."""
    return struct.pack(
        '!BBHII',
        opcode,
        mig_req << 6 | pad << 4 | version,
        pkey,
        qpn,
        bool(ack) << 31 | psn & 0xFFFFFF,
    )


def reth(va, rkey, length):
    """The header of RDMA."""
    return struct.pack('!QII', va, rkey, length)


def atomiceth(va, rkey, swap_add, compare=0):
    """The header of atomic operations."""
    return struct.pack('!QIQQ', va, rkey, swap_add, compare)


def xrceth(srqn):
    """The header that names an XRC SRQ."""
    return struct.pack('!I', srqn)


def deth(qkey, src_qpn):
    """The header of datagrams."""
    return struct.pack('!II', qkey, src_qpn)


def icrc(ip, udp, body):
    """The ICRC of a packet: fields that routers change count as ones. Options and extension
    headers, which RoCEv2 does not have, count as they are."""
    ip = bytearray(ip)
    if ip[0] >> 4 == 4:
        ip[1] = ip[8] = ip[10] = ip[11] = 0xFF
    else:
        ip[0] |= 0x0F
        ip[1] = ip[2] = ip[3] = ip[7] = 0xFF
    udp = udp[:6] + b'\xff\xff'
    if len(body) > 4:
        body = body[:4] + b'\xff' + body[5:]
    # Eight bytes of ones stand for the LRH of InfiniBand.
    return struct.pack('<I', zlib.crc32(b'\xff' * 8 + bytes(ip) + udp + body))


def checksum(header):
    """The Internet checksum of an even number of bytes; 0 if it is among them and right."""
    total = sum(struct.unpack(f'!{len(header) // 2}H', header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


class Wire:
    """The link of host h2. The hosts send no super-packets any more."""

    def __init__(self):
        net.single_packets()
        here = os.open('/proc/self/ns/net', os.O_RDONLY)
        there = os.open('/run/netns/h2', os.O_RDONLY)
        os.setns(there, CLONE_NEWNET)
        try:
            self.tx = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
            self.tx6 = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_RAW)
            self.rx = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
            self.rx.bind(('e2', 0x0800))
        finally:
            os.setns(here, CLONE_NEWNET)
            os.close(here)
            os.close(there)
        self.rx.setblocking(False)
        self.id = 0

    def packet(self, payload, src=SRC, spoil=None, covered=False, options=b''):
        """An IP packet with payload over UDP; covered: it ends with its ICRC already; options: of
        the IP header.

        spoil(packet) may change the finished packet (a bytearray)."""
        self.id = self.id % 0xFFFF + 1
        size = 20 + len(options)
        length = size + 8 + len(payload) + (0 if covered else 4)
        ip = (
            struct.pack(
                '!BBHHHBBH4s4s',
                0x40 | size // 4,
                0,
                length,
                self.id,
                0x4000,
                64,
                17,
                0,
                socket.inet_aton(src),
                socket.inet_aton(DST),
            )
            + options
        )
        udp = struct.pack('!HHHH', 49153, PORT, length - size, 0)
        packet = bytearray(ip + udp + payload + (b'' if covered else icrc(ip, udp, payload)))
        if spoil:
            spoil(packet)
        return packet

    def raw(self, payload, **options):
        """Send payload over UDP; options: see packet()."""
        self.tx.sendto(self.packet(payload, **options), (DST, 0))

    def send_all(self, packets):
        """Send finished IP packets, one right behind the other."""
        for packet in packets:
            self.tx.sendto(packet, (DST, 0))

    def repeat(self, payload, count):
        """Send the same payload over UDP, as often and as fast as can be."""
        packet = self.packet(payload)
        for _ in range(count):
            self.tx.sendto(packet, (DST, 0))

    def raw_in_fragments(self, payload):
        """Send payload over UDP in IP fragments; it may be as long as UDP allows."""
        self.id = self.id % 0xFFFF + 1
        length = 8 + len(payload) + 4

        def ip(size, where):
            return struct.pack(
                '!BBHHHBBH4s4s',
                0x45,
                0,
                20 + size,
                self.id,
                where,
                64,
                17,
                0,
                socket.inet_aton(SRC),
                socket.inet_aton(DST),
            )

        udp = struct.pack('!HHHH', 49153, PORT, length, 0)
        # The ICRC is of what the other end puts together.
        whole = udp + payload + icrc(ip(length, 0), udp, payload)
        for at in range(0, length, 1480):
            part = whole[at : at + 1480]
            more = 0x2000 if at + 1480 < length else 0
            self.tx.sendto(ip(len(part), more | at // 8) + part, (DST, 0))

    def raw6(self, payload, first=17, extension=b'', crc_over=None):
        """Send payload over UDP and IPv6, with extension headers of which the first is of kind
        first.

        crc_over: bytes of headers that the ICRC covers, else all."""
        length = 8 + len(payload) + 4
        ip = struct.pack(
            '!IHBB16s16s',
            6 << 28,
            len(extension) + length,
            first,
            64,
            socket.inet_pton(socket.AF_INET6, SRC6),
            socket.inet_pton(socket.AF_INET6, DST6),
        )
        udp = struct.pack('!HHHH', 49153, PORT, length, 0)
        headers = (ip + extension + udp)[:crc_over]
        self.tx6.sendto(
            ip + extension + udp + payload + icrc(headers[:-8], headers[-8:], payload), (DST6, 0)
        )

    def send(self, opcode, qpn, psn, rest=b'', **options):
        """Send a packet with a right ICRC; rest: extended headers and payload."""
        way = {k: options.pop(k) for k in ('src', 'spoil', 'options') if k in options}
        self.raw(bth(opcode, qpn, psn, **options) + rest, **way)

    def answers(self, qpn):
        """What x1 sent to qpn and is here: (opcode, PSN, what follows the BTH)."""
        got = []
        while True:
            try:
                packet = self.rx.recv(65536)
            except BlockingIOError:
                return got
            if packet[9] != 17 or packet[12:16] != socket.inet_aton(DST):
                continue
            udp = packet[(packet[0] & 15) * 4 :]
            length = struct.unpack('!H', udp[4:6])[0]
            if struct.unpack('!H', udp[2:4])[0] != PORT or length < 24:
                continue
            body = udp[8:length]
            opcode, _, _, dest, psn = struct.unpack('!BBHII', body[:12])
            if dest & 0xFFFFFF == qpn:
                got.append((opcode, psn & 0xFFFFFF, body[12:-4]))

    def answer(self, qpn, seconds=10):
        """The next packet for qpn; fails if there is none, or more than one."""
        end = ktap.deadline(seconds)
        got = []
        while not got:
            got = self.answers(qpn)
            if time.monotonic() > end:
                raise AssertionError('no answer')
        ktap.expect_eq(len(got), 1, 'answers')
        return got[0]

    def close(self):
        """Close the sockets."""
        self.tx.close()
        self.tx6.close()
        self.rx.close()
