#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs in each of several guests (tools/vm/run --hosts): ranks of Open MPI over libfabric.

   mpi.py [RANKS]

A job of RANKS ranks per host (4) runs over RC, over RC with shared receive queues, and over XRC.
All ranks exchange checked messages, also with those of their own host, by the RDMA device. Host 1
prints how many queue pairs each host has then, and how much kernel memory the connections took. XRC
must need fewer queue pairs than RC: N hosts of P ranks have P (NP - 1) queue pairs each over RC,
and 2NP over XRC.

Two libraries are preloaded, which selftests/rdma/stock/preload explains: fabricdomain has Open MPI
take the domain that is wanted, and xrcfabric helps libfabric to connect over XRC. With
LIBFABRIC=DIR, the libfabric in that directory is taken as it is, without the latter.

Host 1 starts the jobs, which start this program again, with a word:

   mpi.py rank              a rank
   mpi.py ssh HOST WORD...  what mpirun takes for ssh
   mpi.py measure           what host 1 wants to know of a host
"""
import collections
import json
import os
import random
import select
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SELF = os.path.abspath(__file__)
# Where the ranks meet, on host 1.
PORT = 7002
# Messages that are sent at once, and messages that are announced and then read.
LENGTHS = [1, 5000, 100000]
LIBRARIES = '/usr/local/bin/selftest-'
# What libfabric is told. XRC is a domain of its own, and works only with shared receive queues.
SRX = {'FI_OFI_RXM_USE_SRX': '1'}
KINDS = {
    'RC': {},
    'RC, shared receive queues': SRX,
    'XRC': SRX,
}


def rank():
    """All ranks send to all. Host 1 measures before and afterwards, while all of them wait."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    me, everybody = comm.rank, range(comm.size)
    gate = socket.create_connection(('host1', PORT)).makefile('rw')

    def pause():
        gate.write(f'{me}\n')
        gate.flush()
        assert gate.readline(), 'host 1 has gone'

    def pattern(sender, receiver, length):
        return random.Random(f'{sender} {receiver} {length}').randbytes(length)

    def connect():
        # Of two ranks that ask each other at once, one is refused, and what it has made is not
        # counted. So the first message between two is that of the lower rank.
        for turn in everybody:
            others = range(turn + 1, comm.size) if me == turn else [turn] if me > turn else []
            for other in others:
                if me == turn:
                    comm.send(me, other)
                assert comm.recv(source=other) == other
                if me > turn:
                    comm.send(me, other)

    def exchange():
        for length in LENGTHS:
            mine = b''.join(pattern(me, other, length) for other in everybody)
            wanted = b''.join(pattern(other, me, length) for other in everybody)
            got = bytearray(len(wanted))
            comm.Alltoall(mine, got)
            assert got == wanted, f'rank {me}: messages of {length} bytes differ'

    pause()
    connect()
    exchange()
    # What libfabric has let go of meanwhile is freed when it is called again.
    pause()
    exchange()
    pause()


def ssh():
    """Options and the host's name come before the command."""
    words = sys.argv[2:]
    while words[0].startswith('-'):
        words.pop(0)
    os.execvp('on-host', ['on-host', words[0], 'bash', '-c', ' '.join(words[1:])])


def measure():
    """Prints the queue pairs by type, and the bytes of kernel memory."""
    sys.path.insert(0, os.path.join(HERE, '../../tools/lib'))
    import kmem
    import net

    port = os.environ['DEVICE'] + '/1'
    qps = collections.Counter(q['type'] for q in net.rdma('qp', 'link', port))
    qps.pop('GSI', None)
    print(json.dumps([qps, kmem.settled()]))


class Job:
    """A job over one kind of transport, as host 1 sees it."""

    def __init__(self, kind, hosts, ranks):
        self.hosts, self.number = hosts, hosts * ranks
        self.listener = socket.create_server(('', PORT), backlog=self.number)
        device = os.environ['DEVICE']
        preload = [LIBRARIES + 'fabricdomain.so']
        if kind == 'XRC' and 'LIBFABRIC' not in os.environ:
            preload.append(LIBRARIES + 'xrcfabric.so')
        # Python loads Open MPI where these would not find what they call.
        preload.append('libfabric.so.1')
        env = {
            'FABRIC_DOMAIN': device + ('-xrc' if kind == 'XRC' else ''),
            'FI_VERBS_DEVICE_NAME': device,
            'FI_LOG_LEVEL': 'warn',
            # Without complaints of devices that there are not.
            'FI_LOG_SUBSYS': 'ep_ctrl',
            'LD_LIBRARY_PATH': os.environ.get('LIBFABRIC', ''),
            'LD_PRELOAD': ':'.join(preload),
            **KINDS[kind],
        }
        options = [
            *('--bind-to', 'none', '--mca', 'mpi_yield_when_idle', '1'),
            *('--mca', 'pml', 'cm', '--mca', 'mtl', 'ofi'),
            *('--mca', 'mtl_ofi_provider_include', 'verbs;ofi_rxm'),
            *('--prtemca', 'plm_ssh_agent', f'{SELF} ssh'),
            *('--host', ','.join(f'host{i}:{ranks}' for i in range(1, hosts + 1))),
        ]
        for name, value in env.items():
            options += ['-x', f'{name}={value}']
        limit = str(120 * int(os.environ.get('SELFTEST_SLOW', '1')))
        mpirun = ['timeout', limit, 'mpirun', '--allow-run-as-root', '-np', str(self.number)]
        self.mpirun = subprocess.Popen([*mpirun, *options, SELF, 'rank'], stdin=subprocess.DEVNULL)

    def meet(self):
        """The ranks, once all of them have connected."""
        peers = []
        while len(peers) < self.number:
            if select.select([self.listener], [], [], 1)[0]:
                peers.append(self.listener.accept()[0].makefile('rw'))
            assert self.mpirun.poll() is None, f'mpirun: status {self.mpirun.returncode}'
        self.listener.close()
        return peers

    def measured(self):
        """What each host says."""
        return [
            json.loads(subprocess.check_output(['on-host', str(i), SELF, 'measure']))
            for i in range(1, self.hosts + 1)
        ]

    def run(self):
        """Queue pairs by type, and bytes of kernel memory, of each host."""
        peers, results = self.meet(), []
        for _ in range(3):
            for peer in peers:
                assert peer.readline(), 'a rank has ended'
            results.append(self.measured())
            for peer in peers:
                peer.write('go on\n')
                peer.flush()
        assert self.mpirun.wait() == 0, f'mpirun: status {self.mpirun.returncode}'
        before, _, after = results
        return [(qps, memory - none) for (_, none), (qps, memory) in zip(before, after)]


def main(ranks):
    """Host 1 starts the jobs."""
    host, hosts = int(os.environ['HOST']), int(os.environ['HOSTS'])
    if host == 1:
        table = {kind: Job(kind, hosts, ranks).run() for kind in KINDS}
        print(f'{hosts} hosts of {ranks} ranks: queue pairs and kernel memory of each host')
        for kind, results in table.items():
            cells = [
                f'{" + ".join(f"{n} {t}" for t, n in sorted(qps.items()))}, {memory >> 10} KiB'
                for qps, memory in results
            ]
            print(f'{kind:26} ', '; '.join(cells), flush=True)
        for kind, results in table.items():
            types = {'XRC_INI', 'XRC_TGT'} if kind == 'XRC' else {'RC'}
            assert all(set(qps) == types for qps, _ in results), f'{kind}: other queue pairs'
        for (rc, _), (xrc, _) in zip(table['RC'], table['XRC']):
            assert sum(xrc.values()) < sum(rc.values()), 'XRC needs as many queue pairs'
    subprocess.run(['barrier', 'the jobs are over'], check=True)


if __name__ == '__main__':
    word = sys.argv[1] if len(sys.argv) > 1 else '4'
    if word.isdigit():
        main(int(word))
    else:
        {'rank': rank, 'ssh': ssh, 'measure': measure}[word]()
