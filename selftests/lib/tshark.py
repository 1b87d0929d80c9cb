# SPDX-License-Identifier: GPL-2.0
"""How tshark dissects packets, compared with the expected result."""
import html
import re
import struct
import subprocess
import tempfile

import roce

# RoCEv2's UDP checksum is zero over IPv6, too (RFC 6935).
SETTINGS = ('udp.ignore_ipv6_zero_checksum:TRUE', 'ip.check_checksum:TRUE')
# Those who guess what the payload is. Ours is nothing; what is shorter than they
# expect, or empty, is "malformed" to some, and what follows is not looked at.
GUESSERS = (
    'smcr_infiniband',
    'smb_direct_infiniband',
    'rpcrdma_infiniband',
    'nvme_rdma',
    'lnet_ib',
    'iser_infiniband',
    'eth_over_ib',
    'mellanox_eoib',
    'sdp_infiniband',
    'fc_infiniband',
    'drbd_rdma',
)
# What is asked for by name, `R`, and as it is, `U`. An atomic's address and key
# are shown as those of a RETH; immediate data and keys twice.
BTH = (
    'bth.se',
    'bth.m',
    'bth.padcnt',
    'bth.tver',
    'bth.p_key',
    'bth.destqp',
    'bth.a',
    'bth.reserved7',
    'bth.psn',
)
REST = (
    'deth.q_key',
    'deth.srcqp',
    'reth.va',
    'reth.r_key',
    'reth.dmalen',
    'atomiceth.swapdt',
    'atomiceth.cmpdt',
    'aeth.syndrome',
    'aeth.msn',
    'atomicacketh.origremdt',
    'immdt',
    'ieth',
    'feth.sel',
    'feth.plt',
    'invariant.crc',
)
BELOW = ('vlan.id', 'ip.id', 'ip.checksum.status', 'udp.checksum.status', '_ws.expert.message')
NAME = 'infiniband.bth.opcode'
COLUMNS = [(NAME, 'R'), *((f'infiniband.{f}', 'U') for f in BTH + REST), *((f, 'U') for f in BELOW)]

# What tshark (4.6) does not know. Its names of XRC's operations are right, SEND
# with invalidate, FLUSH and ATOMIC WRITE included, but it has no XRCETH, and takes
# all that follows the BTH of an XRC packet, responses and ICRC included, for a
# vendor's. It has no name for a congestion notification packet.
OPAQUE = {roce.CNP, *(0xA0 | operation for operation in roce.OPERATIONS)}


def _pcap(file, frames):
    file.write(struct.pack('<IHHiIII', 0xA1B2C3D4, 2, 4, 0, 0, 1 << 16, 1))
    for frame in frames:
        file.write(struct.pack('<IIII', 0, 0, len(frame), len(frame)) + frame)
    file.flush()


def dissect(frames):
    """For each frame a dictionary by the fields of COLUMNS; '' where there is no such field."""
    columns = ','.join(f'"c","%Cus:{field}:0:{how}"' for field, how in COLUMNS)
    command = ['tshark', '-n', '-T', 'psml', '-o', 'gui.column.format:' + columns]
    for setting in SETTINGS:
        command += ['-o', setting]
    for guesser in GUESSERS:
        command += ['--disable-heuristic', guesser]
    with tempfile.NamedTemporaryFile(suffix='.pcap') as file:
        _pcap(file, frames)
        done = subprocess.run(
            command + ['-r', file.name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    if done.returncode:
        raise RuntimeError(f'tshark failed ({done.returncode}): {done.stderr}')
    names = [field for field, _ in COLUMNS]
    got = []
    for packet in re.findall(r'<packet>(.*?)</packet>', done.stdout, re.DOTALL):
        values = (
            html.unescape(text).strip('"')
            for text in re.findall(r'<section>(.*?)</section>', packet)
        )
        got.append(dict(zip(names, values)))
        # "SEND only" of UD alone is not in capitals.
        got[-1][NAME] = got[-1][NAME].lower()
    return got


def expected(packet):
    """What dissect() says of a roce.Packet that is as it should be."""
    f = packet.fields
    out = dict.fromkeys((field for field, _ in COLUMNS), '')
    out.update(
        {
            NAME: str(roce.CNP) if packet.opcode == roce.CNP else roce.name(packet.opcode).lower(),
            'infiniband.bth.se': str(packet.solicited),
            'infiniband.bth.m': str(packet.mig_req),
            'infiniband.bth.padcnt': str(packet.pad),
            'infiniband.bth.tver': '0',
            'infiniband.bth.p_key': '65535',
            'infiniband.bth.destqp': f'0x{packet.qpn:06x}',
            'infiniband.bth.a': str(packet.ask),
            'infiniband.bth.reserved7': '0',
            'infiniband.bth.psn': str(packet.psn),
            'udp.checksum.status': 'Not present',
        }
    )
    if packet.vlan is not None:
        out['vlan.id'] = str(packet.vlan)
    if not packet.v6:
        out.update({'ip.id': f'0x{packet.id:04x}', 'ip.checksum.status': 'Good'})
    if packet.opcode in OPAQUE:
        return out

    def show(field, form, value):
        out['infiniband.' + field] = form.format(value)

    def twice(field, value):
        text = ':'.join(f'{byte:02x}' for byte in value.to_bytes(4, 'big'))
        out['infiniband.' + field] = f'{text},{text}'

    if 'qkey' in f:
        show('deth.q_key', '0x{:016x}', f['qkey'])
        show('deth.srcqp', '0x{:08x}', f['srcqp'])
    if 'va' in f:
        show('reth.va', '0x{:016x}', f['va'])
        show('reth.r_key', '0x{:08x}', f['rkey'])
    if 'dmalen' in f:
        show('reth.dmalen', '{}', f['dmalen'])
    if 'swap' in f:
        show('atomiceth.swapdt', '{}', f['swap'])
        show('atomiceth.cmpdt', '{}', f['compare'])
    if 'syndrome' in f:
        show('aeth.syndrome', '{}', f['syndrome'])
        show('aeth.msn', '{}', f['msn_high'] << 16 | f['msn_low'])
    if 'original' in f:
        show('atomicacketh.origremdt', '{}', f['original'])
    if 'imm' in f:
        twice('immdt', f['imm'])
    if 'inv' in f:
        twice('ieth', f['inv'])
    if 'flush' in f:
        show('feth.sel', '{}', f['flush'] >> 4 & 3)
        show('feth.plt', '{}', f['flush'] & 15)
    show('invariant.crc', '0x{}', packet.icrc.hex())
    return out
