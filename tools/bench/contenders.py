# SPDX-License-Identifier: GPL-2.0
"""xroce, rxe and TCP: how each of them is set up and measured."""
import os
import signal
import subprocess
import time

import net
from rounds import Failed, output

# A net device MTU that carries the RoCE MTU with its headers.
NETDEV_MTU = {1024: 1500, 2048: 2300, 4096: 4400}
LIMIT = 60
LISTEN = '0A'
PERCENTILES = (50, 99, 99.9)
PORT = 5201


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


def start_server(port, argv):
    """A server that listens."""
    serving = subprocess.Popen(
        [str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    end = time.monotonic() + 20
    while not _listening(serving.pid, port):
        if serving.poll() is not None or time.monotonic() > end:
            stop_server(serving)
            raise Failed('the server does not listen')
        time.sleep(0.01)
    return serving


def stop_server(serving):
    """It is gone afterwards."""
    if serving.poll() is None:
        serving.send_signal(signal.SIGKILL)
    serving.communicate()


def perftest(connection, mtu, what, size, seconds, iterations):
    """Program and arguments that measure `what`, without those for its end."""
    op, figure = what.split()
    op, _, events = op.partition('-')
    args = ['-F', '-c', connection, '-m', mtu, '-s', size]
    # Sleeps for completion events instead of polling.
    args += ['-e'] if events else []
    # Latency is that of single iterations, which the timed mode lacks.
    args += ['-n', iterations] if figure == 'latency' else ['-D', seconds]
    # A software device sends within the post. With perftest's 128 requests of this size it would
    # post for as long as the measurement lasts, and count nothing meanwhile.
    args += ['-t', '16'] if size >= 65536 else []
    return [f'ib_{op}_{"lat" if figure == "latency" else "bw"}', *args]


def perftest_figures(what, size, out):
    """What it printed, by percentile or by size: µs, MiB/s or messages per second."""
    lines = [w for w in (x.split() for x in out.split('\n')) if w and w[0] == str(size)]
    if not lines:
        raise Failed('no figure in: ' + out.strip()[-200:])
    word = lines[-1]
    if what.endswith('latency'):
        return dict(zip(PERCENTILES, map(float, (word[4], word[7], word[8]))))
    return {size: float(word[3]) if what.endswith('bandwidth') else float(word[4]) * 1e6}


class Contender:
    """A pair of network namespaces with a veth pair between them."""

    def __init__(self, name, tag, subnet, mtu):
        self.name, self.mtu = name, mtu
        self.ns = [f'{tag}1', f'{tag}2']
        self.addr = [f'10.{subnet}.0.1', f'10.{subnet}.0.2']
        for ns in self.ns:
            output('ip', 'netns', 'add', ns)
        size = str(NETDEV_MTU[mtu])
        output(
            'ip',
            'link',
            'add',
            'e1',
            'netns',
            self.ns[0],
            'mtu',
            size,
            'type',
            'veth',
            'peer',
            'name',
            'e2',
            'netns',
            self.ns[1],
            'mtu',
            size,
        )
        for i in (0, 1):
            output('ip', '-n', self.ns[i], 'link', 'set', 'lo', 'up')
            output('ip', '-n', self.ns[i], 'link', 'set', f'e{i + 1}', 'up')
            output('ip', '-n', self.ns[i], 'addr', 'add', self.addr[i] + '/24', 'dev', f'e{i + 1}')

    def ends(self, place):
        """(index of the server's end, index of the client's end)"""
        return (0, 1) if place == 'wire' else (0, 0)

    def within(self, i):
        """The beginning of a command that runs at that end."""
        return ['nsenter', f'--net=/run/netns/{self.ns[i]}']

    def duo(self, place, port, server, client):
        """Run server and client to their end; return the client's output."""
        s, c = self.ends(place)
        serving = start_server(port, self.within(s) + server)
        try:
            out = output(*self.within(c), *client, limit=LIMIT)
            serving.wait(timeout=10)
            return out
        except subprocess.TimeoutExpired:
            raise Failed('the server does not end') from None
        finally:
            stop_server(serving)

    def flow(self, place, op, ms, sizes, processes=1, crowd=False):
        """Messages per second by size."""
        raise NotImplementedError

    def latency(self, place, what, iterations):
        """Microseconds by percentile."""
        raise NotImplementedError

    def memory(self):
        """Bytes of kernel memory by number of QPs (or of ends of connections)."""
        raise NotImplementedError

    def remove(self):
        """Take the namespaces away."""
        for ns in self.ns:
            subprocess.run(['ip', 'netns', 'del', ns], check=False)


class Rdma(Contender):
    """A soft-RoCE device at each end."""

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
            output(
                'ip',
                'netns',
                'exec',
                self.ns[i],
                'rdma',
                'link',
                'add',
                self.devs[i],
                'type',
                kind,
                'netdev',
                f'e{i + 1}',
            )
            net.sh(f'wait_gid {self.devs[i]} {self.addr[i]}')
        self.gid = [net.sh(f'gid_index {self.devs[i]} {self.addr[i]}').strip() for i in (0, 1)]

    def flow(self, place, op, ms, sizes, processes=1, crowd=False):
        s, c = self.ends(place)
        out = output(
            'bench-flow',
            self.devs[c],
            self.gid[c],
            self.devs[s],
            self.gid[s],
            self.mtu,
            self.connection,
            'all' if crowd else 'own',
            processes,
            op,
            ms,
            *sizes,
        )
        return dict(zip(sizes, map(float, out.split()), strict=True))

    def perftest(self, place, what, size, seconds=2, iterations=1000):
        """The same by perftest, with a process for each end."""
        s, c = self.ends(place)
        prog, *args = perftest(self.connection, self.mtu, what, size, seconds, iterations)
        out = self.duo(
            place,
            18515,
            [prog, '-d', self.devs[s], '-x', self.gid[s], *args],
            [prog, '-d', self.devs[c], '-x', self.gid[c], *args, self.addr[s]],
        )
        return perftest_figures(what, size, out)

    def latency(self, place, what, iterations):
        return self.perftest(place, what, 8, iterations=iterations)

    def registration(self, size, ms):
        """Microseconds that registering and deregistering take."""
        return [float(word) for word in output('bench-register', self.devs[0], size, ms).split()]

    def memory(self):
        out = output(
            'python3',
            os.path.join(os.path.dirname(__file__), 'qpmem.py'),
            *self.devs,
            *self.gid,
            self.connection,
        )
        return {int(n): float(size) for n, size in (line.split() for line in out.splitlines())}

    def remove(self):
        if self.owner:
            for dev in self.devs:
                subprocess.run(['rdma', 'link', 'del', dev], check=False)
            super().remove()


class Xrc(Rdma):
    """xroce over XRC, on the same devices as xroce over RC."""

    connection = 'XRC'


class Tcp(Contender):
    """Connections of TCP."""

    def flow(self, place, op, ms, sizes, processes=1, crowd=False):
        out = self.duo(
            place,
            PORT,
            ['bench-tcp', 'serve', PORT, processes * len(sizes)],
            # A stream begins slowly, and fills its buffers.
            ['bench-tcp', 'stream', self.addr[0], PORT, processes, 2 * ms, *sizes],
        )
        return dict(zip(sizes, map(float, out.split()), strict=True))

    def latency(self, place, what, iterations):
        out = self.duo(
            place,
            PORT,
            ['bench-tcp', 'serve', PORT, 1],
            ['bench-tcp', 'latency', self.addr[0], PORT, iterations],
        )
        return dict(zip(PERCENTILES, map(float, out.split()), strict=True))


def make(names, mtu, number=0):
    """The contenders by name, set up for a RoCE MTU; those of another one have another number."""
    for module in ('ib_uverbs', 'rdma_ucm'):
        subprocess.run(['modprobe', module], check=True)
    out, subnet = {}, 31 + 10 * number
    for name in names:
        if name == 'tcp':
            out[name] = Tcp(name, f'bt{number}', subnet, mtu)
        elif name == 'rxe':
            subprocess.run(['modprobe', 'rdma_rxe'], check=True)
            out[name] = Rdma(name, f'br{number}', subnet + 1, mtu, 'rxe')
        elif name == 'xroce':
            subprocess.run(['modprobe', 'xroce'], check=True)
            out[name] = Rdma(name, f'bx{number}', subnet + 2, mtu, 'xroce')
        else:
            out[name] = Xrc(name, None, None, mtu, 'xroce', share=out['xroce'])
    return out
