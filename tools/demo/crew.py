# SPDX-License-Identifier: GPL-2.0
"""The processes of the demonstration, and how they are told what to do.

Each client and server is a process of its own in its host's network namespace. They
exchange connection data through pipes to the coordinator, as other programs would
through a TCP connection or a job launcher.
"""
import multiprocessing
import multiprocessing.connection
import os
import struct
import time
import traceback
import zlib

import verbs
from pyverbs.addr import GID
from pyverbs.qp import QP, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from verbs import SIGNALED, WR, SendWR, attributes, get, ok, poll, put, recv_wr, sge

DOMAIN = '/tmp/xroce-demo.xrcd'
SIZE = 16384
SEND_DEPTH = 16
RECV_DEPTH = 64
HEADER = struct.Struct('<4sIIII')


def message(client, server, seq):
    """A message that says where it belongs and can be checked."""
    length = SIZE - (client * 31 + server * 17 + seq * 7) % 4096
    head = HEADER.pack(b'XRC!', client, server, seq, length)
    body = head + verbs.pattern(client << 20 | server << 10 | seq, length - HEADER.size - 4)
    return body + zlib.crc32(body).to_bytes(4, 'little')


def check(server, data):
    """(client, seq) of a message for this server, or None if it is damaged."""
    magic, client, to, seq, length = HEADER.unpack_from(data)
    if magic != b'XRC!' or to != server or length != len(data):
        return None
    if zlib.crc32(data[:-4]) != int.from_bytes(data[-4:], 'little'):
        return None
    return client, seq


class Peer:
    """The other host as a QP sees it."""

    def __init__(self, gid, mtu):
        self.gid, self.mtu = GID(gid), mtu


def _init(srq=None, cq=None, depth=SEND_DEPTH):
    return QPInitAttr(
        qp_type=verbs.QPT.IBV_QPT_RC,
        scq=cq,
        rcq=cq,
        srq=srq,
        cap=QPCap(max_send_wr=depth, max_recv_wr=0, max_send_sge=1, max_recv_sge=0),
    )


class Server:
    """Receives from all clients through one SRQ."""

    def __init__(self, index, peer, clients):
        self.index, self.peer, self.clients = index, peer, clients
        self.node = verbs.Node('x2', cqe=RECV_DEPTH * 2)
        self.mr = self.node.mr(RECV_DEPTH * SIZE, verbs.LOCAL)

    def create(self, kind):
        """The receive side; returns what clients must know."""
        if kind == 'xrc':
            self.domain = verbs.Domain(self.node, DOMAIN)
            self.srq = self.domain.srq(depth=RECV_DEPTH, sges=1)
            # One process of the host opens the doors, one for each client.
            self.qps = [self.domain.tgt() for _ in range(self.clients)] if self.index == 0 else []
            return {'srqn': self.srq.get_srq_num(), 'qpns': [q.qp_num for q in self.qps]}
        self.srq = SRQ(self.node.pd, SrqInitAttr(SrqAttr(max_wr=RECV_DEPTH, max_sge=1)))
        self.qps = [QP(self.node.pd, _init(self.srq, self.node.cq)) for _ in range(self.clients)]
        return {'srqn': None, 'qpns': [q.qp_num for q in self.qps]}

    def connect(self, _kind, qpns):
        """Connect the i-th QP to the i-th client's."""
        for qp, qpn in zip(self.qps, qpns):
            qp.to_rts(attributes(self.node, self.peer, qpn))

    def work(self, _kind, messages, tell):
        """Receive and check; a message that came twice or never is an error."""
        for i in range(RECV_DEPTH):
            self.srq.post_recv(recv_wr([sge(self.mr, SIZE, i * SIZE)], wr_id=i))
        seen = set()
        damaged = 0
        total = self.clients * messages
        told = 0
        for done in range(1, total + 1):
            wc = ok(poll(self.node.cq, 1, seconds=60))[0]
            who = check(self.index, get(self.mr, wc.byte_len, wc.wr_id * SIZE))
            if who is None or who in seen:
                damaged += 1
            seen.add(who)
            if done <= total - RECV_DEPTH:
                self.srq.post_recv(recv_wr([sge(self.mr, SIZE, wc.wr_id * SIZE)], wr_id=wc.wr_id))
            if done - told >= 8 or done == total:
                tell(('progress', done - told))
                told = done
        good = [sum(1 for w in seen if w and w[0] == c) for c in range(self.clients)]
        return {'good': good, 'damaged': damaged}

    def destroy(self, kind):
        """Take the receive side down."""
        for qp in self.qps:
            qp.close()
        self.srq.close()
        if kind == 'xrc':
            self.domain.close()


class Client:
    """Sends to all servers."""

    def __init__(self, index, peer, servers):
        self.index, self.peer, self.servers = index, peer, servers
        self.node = verbs.Node('x1', cqe=SEND_DEPTH * max(servers, 2))
        self.mr = self.node.mr(SEND_DEPTH * SIZE, verbs.LOCAL)

    def create(self, kind):
        """One initiator, or a QP for each server."""
        if kind == 'xrc':
            self.qps = [verbs.initiator(self.node, depth=SEND_DEPTH, sges=1, inline=0)]
        else:
            self.qps = [QP(self.node.pd, _init(cq=self.node.cq)) for _ in range(self.servers)]
        return {'qpns': [q.qp_num for q in self.qps]}

    def connect(self, _kind, target):
        """target: QPNs at the other host, one for each of ours, and the SRQ numbers."""
        qpns, self.srqns = target
        for qp, qpn in zip(self.qps, qpns):
            qp.to_rts(attributes(self.node, self.peer, qpn))

    def work(self, kind, messages, _tell):
        """Send every message to every server, SEND_DEPTH in flight."""
        free = list(range(SEND_DEPTH))
        for seq in range(messages):
            for step in range(self.servers):
                server = (self.index + step) % self.servers
                if not free:
                    free += [wc.wr_id for wc in ok(poll(self.node.cq, 1, seconds=60))]
                slot = free.pop()
                data = message(self.index, server, seq)
                put(self.mr, data, slot * SIZE)
                wr = SendWR(
                    wr_id=slot,
                    opcode=WR.IBV_WR_SEND,
                    num_sge=1,
                    send_flags=SIGNALED,
                    sg=[sge(self.mr, len(data), slot * SIZE)],
                )
                if kind == 'xrc':
                    wr.set_qp_type_xrc(self.srqns[server])
                    self.qps[0].post_send(wr)
                else:
                    self.qps[server].post_send(wr)
        ok(poll(self.node.cq, SEND_DEPTH - len(free), seconds=60))
        return {}

    def destroy(self, _kind):
        """Take the connections down."""
        for qp in self.qps:
            qp.close()


def _process(role, index, host, pipe, others):
    """A worker's life: do what the coordinator says until told to stop."""
    with open('/run/netns/' + host) as ns:
        os.setns(ns.fileno(), os.CLONE_NEWNET)
    try:
        peer = Peer(*pipe.recv())
        worker = role(index, peer, others)
        pipe.send(('done', {'pid': os.getpid()}))
        while True:
            verb, args = pipe.recv()
            if verb == 'stop':
                os._exit(0)
            if verb == 'work':
                args += (pipe.send,)
            pipe.send(('done', getattr(worker, verb)(*args)))
    except EOFError:
        pass
    except Exception:
        pipe.send(('failed', f'{role.__name__.lower()} {index}:\n{traceback.format_exc()}'))
    os._exit(1)


class Result:
    """Who got what from whom."""

    def __init__(self, servers):
        self.good = [s['good'] for s in servers]
        self.damaged = sum(s['damaged'] for s in servers)
        self.seconds = self.bytes = 0

    def errors(self, messages):
        """Messages damaged, lost or duplicated."""
        lost = sum(messages - n for row in self.good for n in row)
        return self.damaged + lost


class Team:
    """All processes, seen from the coordinator."""

    def __init__(self, clients, servers):
        if os.path.exists(DOMAIN):
            os.unlink(DOMAIN)
        self.result = None
        # The addresses are looked up once, in a process that ends.
        with multiprocessing.get_context('fork').Pool(1) as pool:
            one, two = pool.map(_address, ['x1', 'x2'])
        self.clients = [self._start(Client, i, 'h1', two, servers) for i in range(clients)]
        self.servers = [self._start(Server, i, 'h2', one, clients) for i in range(servers)]
        self._all(None)

    @staticmethod
    def _start(role, index, host, peer, others):
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context('fork').Process(
            target=_process, args=(role, index, host, theirs, others), daemon=True
        )
        process.start()
        theirs.close()
        ours.send(peer)
        return ours

    def _answer(self, pipe, progress=None):
        while True:
            word, value = pipe.recv()
            if word == 'failed':
                raise RuntimeError(value)
            if word == 'done':
                return value
            if progress:
                progress.add(value)

    def _all(self, verb, clients=(), servers=()):
        """Tell everyone, then wait for everyone."""
        everyone = [(p, clients) for p in self.clients] + [(p, servers) for p in self.servers]
        if verb:
            for pipe, args in everyone:
                pipe.send((verb, args))
        answers = [self._answer(p) for p, _ in everyone]
        return answers[: len(self.clients)], answers[len(self.clients) :]

    def connect(self, kind):
        """Create and connect everything; returns the seconds it took."""
        start = time.monotonic()
        ours, theirs = self._all('create', (kind,), (kind,))
        srqns = [s['srqn'] for s in theirs]
        self.qpns = ours, theirs
        for i, pipe in enumerate(self.servers):
            if kind == 'xrc':
                qpns = [c['qpns'][0] for c in ours] if i == 0 else []
            else:
                qpns = [c['qpns'][i] for c in ours]
            pipe.send(('connect', (kind, qpns)))
        for pipe in self.servers:
            self._answer(pipe)
        for i, pipe in enumerate(self.clients):
            if kind == 'xrc':
                qpns = [theirs[0]['qpns'][i]]
            else:
                qpns = [s['qpns'][i] for s in theirs]
            pipe.send(('connect', (kind, (qpns, srqns))))
        for pipe in self.clients:
            self._answer(pipe)
        return time.monotonic() - start

    def traffic(self, kind, messages, progress):
        """Every client sends to every server; fills self.result."""
        start = time.monotonic()
        for pipe in self.servers + self.clients:
            pipe.send(('work', (kind, messages)))
        waiting = {p: i for i, p in enumerate(self.servers)}
        results = [None] * len(self.servers)
        clients = set(self.clients)
        while waiting or clients:
            for pipe in multiprocessing.connection.wait(list(waiting) + list(clients)):
                word, value = pipe.recv()
                if word == 'failed':
                    raise RuntimeError(value)
                if word == 'progress':
                    progress.add(value)
                elif pipe in clients:
                    clients.discard(pipe)
                else:
                    results[waiting.pop(pipe)] = value
        self.result = Result(results)
        self.result.seconds = time.monotonic() - start
        progress.end(self.result.seconds)

    def disconnect(self, kind):
        """Destroy what connect() made."""
        self._all('destroy', (kind,), (kind,))

    def close(self):
        """Let all processes end."""
        for pipe in self.clients + self.servers:
            pipe.send(('stop', ()))


def _address(dev):
    node = verbs.Node(dev)
    gid, mtu = str(node.gid), node.mtu
    node.close()
    return gid, mtu
