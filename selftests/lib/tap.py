# SPDX-License-Identifier: GPL-2.0
"""A tap on the link of a host: it records the packets on the link, in both directions.

A packet is in the tap before its receiver gets it, and stays there until a test asks
for it. So a test need not wait for a packet whose effect it has already seen.
"""
import os
import socket
import struct

import net
import wire
from ktap import expect_eq

SO_RCVBUFFORCE, ETH_P_ALL, PACKET_OUTGOING = 33, 3, 4
SOL_PACKET, PACKET_STATISTICS, PACKET_AUXDATA = 263, 6, 8
AUXDATA = struct.Struct('=IIIHHHH')
TP_STATUS_VLAN_VALID = 0x10


class Tap:
    """All packets of a host's link from now on, or the first bytes of each.

    The hosts send no super-packets any more, unless there may be some."""

    def __init__(self, host='h1', dev='e1', most=65536, supers=False):
        self.most = most
        if not supers:
            net.single_packets()
        here = os.open('/proc/self/ns/net', os.O_RDONLY)
        there = os.open('/run/netns/' + host, os.O_RDONLY)
        os.setns(there, wire.CLONE_NEWNET)
        try:
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        finally:
            os.setns(here, wire.CLONE_NEWNET)
            os.close(here)
            os.close(there)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self.socket.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self.socket.bind((dev, ETH_P_ALL))
        self.socket.setblocking(False)

    def frames(self):
        """Those that have passed since the last call: the frame as it was on the
        wire, and whether the host sent it."""
        got = []
        while True:
            try:
                frame, extra, _, where = self.socket.recvmsg(
                    self.most, socket.CMSG_SPACE(AUXDATA.size)
                )
            except BlockingIOError:
                break
            # A VLAN tag travels beside the packet within a host.
            for _, _, data in extra:
                status, _, _, _, _, tci, tpid = AUXDATA.unpack(data[: AUXDATA.size])
                if status & TP_STATUS_VLAN_VALID:
                    frame = frame[:12] + struct.pack('!HH', tpid or 0x8100, tci) + frame[12:]
            got.append((frame, where[2] == PACKET_OUTGOING))
        missed = struct.unpack('=II', self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
        expect_eq(missed, 0, 'packets that the tap missed')
        return got

    def close(self):
        """Hear no more."""
        self.socket.close()
