# SPDX-License-Identifier: GPL-2.0
"""The output of the demonstration."""
import net

WIDTH = 78
NAMES = {'xrc': 'XRC', 'rc': 'RC'}


def say(text=''):
    """Print at once: the output is watched."""
    print(text, flush=True)


def heading(text):
    """A line that parts the output."""
    say()
    say(f'── {text} ' + '─' * max(3, WIDTH - len(text) - 4))
    say()


def title(args):
    """What will be seen."""
    say('═' * WIDTH)
    say(
        f'  {net.TYPE}: {args.clients} client processes on host h1, '
        f'{args.servers} server processes on host h2.'
    )
    say(f'  Each client sends {args.messages} checked messages of 12 to 16 KiB to each server.')
    say('═' * WIDTH)


def hosts():
    """The two hosts."""
    say()
    say('   host h1                                           host h2')
    say('  ┌───────────────────────┐                       ┌───────────────────────┐')
    say('  │ clients               │   veth, MTU 1500      │ servers               │')
    say('  │ device x1 on e1       ├───────────────────────┤ device x2 on e2       │')
    say('  │ 10.7.0.1              │   RoCEv2, UDP 4791    │ 10.7.0.2              │')
    say('  └───────────────────────┘                       └───────────────────────┘')


def connected(kind, team, count, took):
    """What was connected, and by whom."""
    clients, servers = team.qpns
    if kind == 'xrc':
        heading('XRC: one connection for each client, whatever the number of servers')
        say('  Server 0 opened the doors (target QPs); each server has its own SRQ in the')
        say('  shared domain, and gets what is addressed to that SRQ, through any door.')
        say()
        for i, client in enumerate(clients):
            door = servers[0]['qpns'][i]
            say(f'  client {i}: initiator QP {client["qpns"][0]:#08x} ═══▶ target QP {door:#08x}')
        say('  SRQ numbers of servers 0…: ' + ' '.join(f'{s["srqn"]:#x}' for s in servers))
    else:
        heading('RC: one connection for each pair of client and server')
        say('  Each server has one SRQ for all its connections, the thriftiest form of RC.')
    say()
    say(f'  QPs: {count["x1"]} on h1, {count["x2"]} on h2; connected in {took:.2f} s')
    say()


class Progress:
    """A line for each tenth of the way."""

    def __init__(self, total):
        self.total, self.done, self.shown = total, 0, 0

    def add(self, n):
        """n more messages have arrived and were found intact."""
        self.done += n
        tenth = self.done * 10 // self.total
        if tenth > self.shown:
            self.shown = tenth
            bar = '█' * (tenth * 3) + '░' * (30 - tenth * 3)
            say(f'  {bar} {tenth * 10:3} %  {self.done:6} of {self.total} messages')

    def end(self, seconds):
        """All have arrived."""
        say(f'  {self.done} messages received and checked in {seconds:.1f} s')


def matrix(kind, result):
    """Who sent what to whom."""
    say()
    say(f'  Intact messages that arrived over {NAMES[kind]}, from client (row) to server (column):')
    say()
    servers, clients = len(result.good), len(result.good[0])
    say('             ' + ''.join(f'{"s" + str(j):>6}' for j in range(servers)))
    for i in range(clients):
        say(f'    client {i:<2}' + ''.join(f'{result.good[j][i]:6}' for j in range(servers)))
    if result.damaged:
        say(f'    DAMAGED OR DUPLICATED: {result.damaged}')


def size(n):
    """Bytes for people."""
    return f'{n / 1024:.0f} KiB' if abs(n) < 10 << 20 else f'{n / (1 << 20):.1f} MiB'


def table(args, results):
    """The point of it all."""
    heading(
        f'What it took to connect {args.clients} clients with {args.servers} servers (measured)'
    )
    rows = [
        ('QPs on the client host', lambda r: r['qps']['x1'], str),
        ('QPs on the server host', lambda r: r['qps']['x2'], str),
        ('QPs together', lambda r: sum(r['qps'].values()), str),
        ('kernel memory', lambda r: r['memory'], size),
    ]
    xrc, rc = results.get('xrc'), results['rc']
    say('                             ┌──────────────┬──────────────┬───────────┐')
    say('                             │     XRC      │      RC      │ RC / XRC  │')
    say('  ┌──────────────────────────┼──────────────┼──────────────┼───────────┤')
    for name, value, text in rows:
        mine = value(xrc) if xrc else None
        left = text(mine) if xrc else '–'
        ratio = f'{value(rc) / mine:.1f}×' if mine and mine > 0 else '–'
        say(f'  │ {name:<24} │ {left:>12} │ {text(value(rc)):>12} │ {ratio:>9} │')
    say('  └──────────────────────────┴──────────────┴──────────────┴───────────┘')
    say('  Memory: all that the kernel took from before the first QP, SRQ and domain was')
    say('  made until the last QP was connected, on both hosts together.')


def command(line):
    """A command that is about to run."""
    say('  $ ' + line.split(';')[0])


def output(title_, text):
    """The telling lines of a stock program."""
    keep = [
        line
        for line in text.split('\n')
        if (
            'seconds' in line
            or 'BW' in line
            or line.strip().startswith('65536')
            or 'usec/iter' in line
            or 'status' in line
            or 'rror' in line
            or 'ailed' in line
            or 'local:' in line
            or 'remote:' in line
            or 'success' in line
        )
    ]
    for line in keep:
        say('    ' + line.strip())
    if not keep:
        say(f'    ({title_} said nothing)')
    say()


def verdict(bad):
    """The last line."""
    say('═' * WIDTH)
    say('  Every message arrived once and intact.' if not bad else f'  FAILED: {bad} errors')
    say('═' * WIDTH)
