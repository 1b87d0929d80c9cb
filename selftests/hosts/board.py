# SPDX-License-Identifier: GPL-2.0
"""What programs in several guests tell each other (tools/vm/run --hosts): each host has a board, on
which it puts values under names, and which the others read over TCP."""
import collections
import json
import os
import socket
import socketserver
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../lib'), os.path.join(HERE, '../../tools/lib')]
sys.dont_write_bytecode = True

from pyverbs.addr import GID  # noqa: E402

HOST, HOSTS, DEVICE = int(os.environ['HOST']), int(os.environ['HOSTS']), os.environ['DEVICE']
PEERS = [i for i in range(1, HOSTS + 1) if i != HOST]
PORT = 7001


def address(host):
    """The IPv4 address of a host."""
    return f'10.9.0.{host}'


def barrier(name):
    """Wait until all hosts that live are here."""
    subprocess.run(['barrier', name], check=True)


# What verbs.attributes() wants to know of another host.
Way = collections.namedtuple('Way', 'gid mtu')


class Board:
    """This host's board, and the way to the others'. All hosts make theirs at the same time."""

    def __init__(self):
        self.notes, self.changed = {}, threading.Condition()
        board = self

        class Reader(socketserver.StreamRequestHandler):
            """Another host that reads."""

            def handle(self):
                name = self.rfile.readline().decode().strip()
                with board.changed:
                    board.changed.wait_for(lambda: name in board.notes)
                    value = board.notes[name]
                self.wfile.write(json.dumps(value).encode())

        socketserver.ThreadingTCPServer.daemon_threads = True
        server = socketserver.ThreadingTCPServer(('', PORT), Reader)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        barrier('board')

    def put(self, name, value):
        """Put a value on this host's board; it can be read from then on."""
        with self.changed:
            self.notes[name] = value
            self.changed.notify_all()

    @staticmethod
    def get(host, name):
        """What another host has put there; waits for it."""
        with socket.create_connection((address(host), PORT)) as peer:
            peer.sendall(name.encode() + b'\n')
            with peer.makefile('rb') as answer:
                return json.loads(answer.read())

    def put_way(self, node):
        """How this host is reached, by the GID of a node's."""
        self.put('way', [str(node.gid), int(node.mtu)])

    def way(self, host):
        """How another host is reached."""
        gid, mtu = self.get(host, 'way')
        return Way(GID(gid), mtu)
