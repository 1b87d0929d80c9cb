# SPDX-License-Identifier: GPL-2.0
"""xroce, rxe and TCP: how each of them is set up and measured."""
import json
import os
import signal
import subprocess
import time

import net

# A net device MTU that carries the RoCE MTU with its headers.
NETDEV_MTU = {1024: 1500, 2048: 2300, 4096: 4400}
LIMIT = 60
LISTEN = '0A'


class Failed(Exception):
    """A measurement that did not come to its end."""


def _run(*argv):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Failed(f'`{" ".join(argv)}`: {done.stdout.strip()[-300:]}')
    return done.stdout


def _listening(pid, port):
    for name in ('tcp', 'tcp6'):
        try:
            with open(f'/proc/{pid}/net/{name}') as f:
                for line in f.readlines()[1:]:
                    word = line.split()
                    if word[3] == LISTEN and int(word[1].split(':')[1], 16) == port:
                        return True
        except OSError:
            pass
    return False


class Contender:
    """A pair of network namespaces with a veth pair between them."""

    def __init__(self, name, tag, subnet, mtu):
        self.name, self.mtu = name, mtu
        self.ns = [f'{tag}1', f'{tag}2']
        self.addr = [f'10.{subnet}.0.1', f'10.{subnet}.0.2']
        for ns in self.ns:
            _run('ip', 'netns', 'add', ns)
        size = str(NETDEV_MTU[mtu])
        _run('ip', 'link', 'add', 'e1', 'netns', self.ns[0], 'mtu', size, 'type', 'veth',
             'peer', 'name', 'e2', 'netns', self.ns[1], 'mtu', size)
        for i in (0, 1):
            _run('ip', '-n', self.ns[i], 'link', 'set', 'lo', 'up')
            _run('ip', '-n', self.ns[i], 'link', 'set', f'e{i + 1}', 'up')
            _run('ip', '-n', self.ns[i], 'addr', 'add', self.addr[i] + '/24', 'dev', f'e{i + 1}')

    def ends(self, place):
        """(index of the server's end, index of the client's end)"""
        return (0, 1) if place == 'wire' else (0, 0)

    def duo(self, place, port, server, client):
        """Run server and client to their end; return the client's output."""
        s, c = self.ends(place)
        serving = subprocess.Popen(['ip', 'netns', 'exec', self.ns[s], *server],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            end = time.monotonic() + 20
            while not _listening(serving.pid, port):
                if serving.poll() is not None or time.monotonic() > end:
                    raise Failed('the server does not listen')
                time.sleep(0.01)
            try:
                done = subprocess.run(['ip', 'netns', 'exec', self.ns[c], *client], timeout=LIMIT,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                serving.wait(timeout=10)
            except subprocess.TimeoutExpired:
                raise Failed('timeout') from None
            if done.returncode:
                raise Failed(f'status {done.returncode}: {done.stdout.strip()[-200:]}')
            return done.stdout
        finally:
            if serving.poll() is None:
                serving.send_signal(signal.SIGKILL)
            serving.communicate()

    def measure(self, row, seconds):
        """The figure of a row, or None if there is none for this contender."""
        raise NotImplementedError

    def memory(self):
        """Kernel memory per connected QP in bytes, or None."""
        return None

    def remove(self):
        """Take the namespaces away."""
        for ns in self.ns:
            subprocess.run(['ip', 'netns', 'del', ns], check=False)


class Rdma(Contender):
    """perftest over a soft-RoCE device."""
    connection = 'RC'

    def __init__(self, name, tag, subnet, mtu, kind, share=None):
        self.owner = share is None
        if share:
            self.__dict__.update(share.__dict__, name=name, owner=False)
            return
        super().__init__(name, tag, subnet, mtu)
        self.kind = kind
        self.devs = [f'{tag}dev1', f'{tag}dev2']
        for i in (0, 1):
            _run('ip', 'netns', 'exec', self.ns[i], 'rdma', 'link', 'add', self.devs[i], 'type', kind,
                 'netdev', f'e{i + 1}')
            net.sh(f'wait_gid {self.devs[i]} {self.addr[i]}')
        self.gid = [net.sh(f'gid_index {self.devs[i]} {self.addr[i]}').strip() for i in (0, 1)]

    def measure(self, row, seconds):
        place, mtu, what, size = row
        op, figure = what.split()
        op, _, events = op.partition('-')
        prog = f'ib_{op}_{"lat" if figure == "latency" else "bw"}'
        s, c = self.ends(place)
        args = ['-F', '-c', self.connection, '-m', str(mtu), '-s', str(size)]
        # Sleeps for completion events instead of polling.
        args += ['-e'] if events else []
        # Latency is a median of single iterations, which the timed mode lacks.
        args += ['-n', str(500 * seconds)] if figure == 'latency' else ['-D', str(seconds)]
        # A software device sends within the post. With perftest's 128 requests of this size it would
        # post for as long as the measurement lasts, and count nothing meanwhile.
        args += ['-t', '16'] if size >= 1 << 20 else []
        out = self.duo(place, 18515, [prog, '-d', self.devs[s], '-x', self.gid[s], *args],
                       [prog, '-d', self.devs[c], '-x', self.gid[c], *args, self.addr[s]])
        line = [w for w in (x.split() for x in out.split('\n')) if w and w[0] == str(size)]
        if not line:
            raise Failed('no figure in: ' + out.strip()[-200:])
        w = line[-1]
        if figure == 'latency':
            return float(w[4])
        return float(w[3]) if figure == 'bandwidth' else float(w[4]) * 1e6

    def memory(self):
        out = _run('python3', os.path.join(os.path.dirname(__file__), 'qpmem.py'), *self.devs,
                   *self.gid, self.connection)
        return float(out)

    def remove(self):
        if self.owner:
            for dev in self.devs:
                subprocess.run(['rdma', 'link', 'del', dev], check=False)
            super().remove()


class Xrc(Rdma):
    """xroce over XRC, on the same devices as xroce over RC."""
    connection = 'XRC'


class Tcp(Contender):
    """iperf3, one stream."""

    def measure(self, row, seconds):
        place, _mtu, what, size = row
        if what != 'send bandwidth':
            return None
        out = self.duo(place, 5201, ['iperf3', '-s', '-1'],
                       ['iperf3', '-c', self.addr[0], '-t', str(seconds), '-l', str(size), '-J'])
        return json.loads(out)['end']['sum_received']['bits_per_second'] / 8 / (1 << 20)


def make(names, mtu):
    """The contenders by name, set up for a RoCE MTU."""
    for module in ('ib_uverbs', 'rdma_ucm'):
        subprocess.run(['modprobe', module], check=True)
    out = {}
    for name in names:
        if name == 'tcp':
            out[name] = Tcp(name, 'bt', 31, mtu)
        elif name == 'rxe':
            subprocess.run(['modprobe', 'rdma_rxe'], check=True)
            out[name] = Rdma(name, 'br', 32, mtu, 'rxe')
        elif name == 'xroce':
            subprocess.run(['modprobe', 'xroce'], check=True)
            out[name] = Rdma(name, 'bx', 33, mtu, 'xroce')
        else:
            out[name] = Xrc(name, None, None, mtu, 'xroce', share=out['xroce'])
    return out
