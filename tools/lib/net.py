# SPDX-License-Identifier: GPL-2.0
"""Hosts and links for programs in Python; the work is done by net.sh."""
import ipaddress
import json
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
TYPE = os.environ.get('TYPE', 'xroce')


def sh(command, check=True, host=None):
    """Run a line of bash with net.sh's functions; return its output."""
    argv = ['bash', '-c', f'. {HERE}/net.sh; {command}']
    if host:
        argv = ['ip', 'netns', 'exec', host] + argv
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if check and done.returncode:
        raise RuntimeError(f'`{command}` failed ({done.returncode}):\n{done.stdout}')
    return done.stdout


def run_in(host, *argv, check=True):
    """Run a program in the namespace of a host; return its output. It takes one process, where sh()
    takes several and reads net.sh, for seconds on the debug kernel."""
    done = subprocess.run(
        ['nsenter', f'--net=/run/netns/{host}', *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if check and done.returncode:
        raise RuntimeError(f'`{" ".join(argv)}` failed ({done.returncode}):\n{done.stdout}')
    return done.stdout


def single_packets():
    """No super-packets between the hosts, so that a capture sees single packets."""
    for n in (1, 2):
        run_in(f'h{n}', 'ethtool', '-K', f'e{n}', 'tx-gso-list', 'off', check=False)


def hosts_up(mtu=1500, type1=TYPE, type2=None):
    """Namespaces h1, h2 with devices x1, x2 on the two ends of a veth pair."""
    sh(f'load_module; hosts_up {mtu} {type1} {type2 or type1}')


VLAN = 7
# The addresses of the two hosts: 4 or 6, those of the wire; or of the VLAN, which vlans_up makes.
PLACES = {
    'ipv4': (4, 4),
    'ipv6': (6, 6),
    'vlan-ipv4': ('10.7.7.1', '10.7.7.2'),
    'vlan-ipv6': ('fd77::1', 'fd77::2'),
}


def vlans_up():
    """A VLAN between the hosts; the devices on the wire have its addresses, too."""
    sh(
        f'vlan_up v {VLAN} 10.7.7 fd77 && wait_gid x1 10.7.7.1 fd77::1 &&'
        ' wait_gid x2 10.7.7.2 fd77::2'
    )


def pair_up(mtu=1500):
    """Devices y1, y2 in this namespace."""
    sh(f'load_module; pair_up {mtu}')


def clean():
    """Remove what hosts_up and pair_up made."""
    sh('hosts_clean')


ADDRESS = {
    'x1': ('10.7.0.1', 'fd07::1'),
    'x2': ('10.7.0.2', 'fd07::2'),
    'y1': ('10.8.0.1', 'fd08::1'),
    'y2': ('10.8.0.2', 'fd08::2'),
}


def address(dev, version=4):
    """The address of a device that hosts_up or pair_up made."""
    return ADDRESS[dev][version == 6]


def gid_text(addr):
    """The GID of an address, or of 16 bytes, as sysfs has it."""
    ip = ipaddress.ip_address(addr)
    raw = ip.packed if ip.version == 6 else b'\0' * 10 + b'\xff\xff' + ip.packed
    return ':'.join(raw[i : i + 2].hex() for i in range(0, 16, 2))


def gid_index(dev, version=4):
    """Index of the RoCEv2 GID of the device's address of that version, or of another one."""
    base = f'/sys/class/infiniband/{dev}/ports/1'
    want = gid_text(version if isinstance(version, str) else address(dev, version))
    for i in sorted(os.listdir(base + '/gids'), key=int):
        try:
            with open(f'{base}/gids/{i}') as f:
                if f.read().strip() != want:
                    continue
            with open(f'{base}/gid_attrs/types/{i}') as f:
                if f.read().strip() == 'RoCE v2':
                    return int(i)
        except OSError:
            continue
    raise LookupError(f'{dev} has no GID for {want}')


def counters(dev, names=None):
    """Hw counters of port 1 by name: all, or only those named, since each is a file to read."""
    base = f'/sys/class/infiniband/{dev}/ports/1/hw_counters'
    out = {}
    for name in names or os.listdir(base):
        try:
            with open(f'{base}/{name}') as f:
                out[name] = int(f.read())
        except (OSError, ValueError):
            pass
    return out


def rdma(*what):
    """What `rdma resource show` says, of all devices if nothing is named."""
    out = subprocess.run(
        ['rdma', '-j', 'res', 'show', *what], stdout=subprocess.PIPE, check=True
    ).stdout
    return json.loads(out or '[]')


def resources():
    """What `rdma resource` counts, by device."""
    return {d.pop('ifname'): {k: n for k, n in d.items() if k != 'ifindex'} for d in rdma()}
