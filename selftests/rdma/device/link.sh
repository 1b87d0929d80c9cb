#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=240 debug
# rdma link add and del, autoload, errors, and the port following its netdev.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../../tools/lib/duo.sh"

module=$(module_of "$TYPE")
sys=/sys/class/infiniband/x1/ports/1
# fails_with TEXT COMMAND...
fails_with() {
	local want=$1 out
	shift
	out=$("$@" 2>&1) && { echo "succeeded: $*"; return 1; }
	[[ $out == *$want* ]] || { echo "said '$out', not '$want'"; return 1; }
}
port_is() { [ "$(cat $sys/state)" = "$1" ]; }
mtu_is() { ibv_devinfo -d x1 | grep -q "active_mtu:[[:space:]]*$1 "; }
no_gid() { ! has_gid "$@"; }
gone() { ! rdma link show "$1/1" >/dev/null 2>&1 && [ ! -e "/sys/class/infiniband/$1" ]; }

autoload() {
	modprobe -r "$module" || return 1
	[ ! -e "/sys/module/$module" ] || return 1
	add_link h1 x1 e1 && [ -e "/sys/module/$module" ]
}
shown() {
	wait_gid x1 10.7.0.1 fd07::1 && until_true 10 port_is '4: ACTIVE' &&
		rdma link show x1/1 | grep -q 'state ACTIVE' && ibv_devices | grep -q x1 && ibv_devinfo -v -d x1
}
delete() { rdma link del x1 && gone x1; }
again() {
	local i rounds=5
	[ -z "$SELFTEST_DEBUG" ] || rounds=2
	for ((i = 0; i < rounds; i++)); do
		add_link h1 x1 e1 && rdma link del x1 || return 1
	done
	add_link h1 x1 e1 && wait_gid x1 10.7.0.1 fd07::1
}
# Two commands at once for one net device: one device, every time.
at_once() {
	local i n rounds=5
	# Adding and removing takes seconds there.
	[ -z "$SELFTEST_DEBUG" ] || rounds=2
	rdma link del x1 || return 1
	for ((i = 0; i < rounds; i++)); do
		in_host h1 bash -c "for n in a b c d; do rdma link add x\$n type $TYPE netdev e1 2>/dev/null & done; wait"
		n=$(ls -d /sys/class/infiniband/x[abcd] 2>/dev/null)
		[ "$(wc -w <<<"$n")" = 1 ] || { echo "round $i:" $n; return 1; }
		rdma link del "${n##*/}" && gone "${n##*/}" || return 1
	done
	add_link h1 x1 e1 && wait_gid x1 10.7.0.1 fd07::1
}
addresses() {
	ip -n h1 addr add 10.7.9.9/24 dev e1 && wait_gid x1 10.7.9.9 &&
		ip -n h1 addr add fd07::99/64 dev e1 nodad && wait_gid x1 fd07::99 &&
		ip -n h1 addr del 10.7.9.9/24 dev e1 && until_true 10 no_gid x1 10.7.9.9 &&
		ip -n h1 addr del fd07::99/64 dev e1 && until_true 10 no_gid x1 fd07::99
}
mtus() {
	local m mtus="4400/4096 2300/2048 1500/1024 9000/4096 1280/1024"
	[ -z "$SELFTEST_DEBUG" ] || mtus="4400/4096 1500/1024"
	for m in $mtus; do
		ip -n h1 link set e1 mtu "${m%/*}" || return 1
		until_true 10 mtu_is "${m#*/}" || { echo "netdev ${m%/*}: $(ibv_devinfo -d x1 | grep active_mtu)"; return 1; }
	done
	ip -n h1 link set e1 mtu 1500
}
state() {
	ip -n h1 link set e1 down && until_true 10 port_is '1: DOWN' &&
		ip -n h1 link set e1 up && until_true 10 port_is '4: ACTIVE' &&
		ip -n h1 addr add fd07::1/64 dev e1 nodad && wait_gid x1 10.7.0.1 fd07::1
}
peer_down() {
	ip -n h2 link set e2 down && until_true 10 port_is '1: DOWN' &&
		ip -n h2 link set e2 up && until_true 10 port_is '4: ACTIVE'
}
# sysfs "counters", which tools of InfiniBand read, say what hw_counters do.
counted() {
	local before down
	before=$(<$sys/counters/port_xmit_packets) down=$(<$sys/counters/link_downed)
	use_ip 4 && pingpong ibv_rc_pingpong -n 50 -s 1000 || return 1
	[ $(($(<$sys/counters/port_xmit_packets) - before)) -ge 50 ] || return 1
	same_count port_xmit_packets sent_pkts 1 && same_count port_rcv_packets rcvd_pkts 1 &&
		same_count port_xmit_data sent_bytes 4 && same_count port_rcv_data rcvd_bytes 4 || return 1
	ip -n h1 link set e1 down && ip -n h1 link set e1 up || return 1
	[ "$(<$sys/counters/link_downed)" = $((down + 1)) ] && same_count link_downed link_downed 1 || return 1
	until_true 10 port_is '4: ACTIVE' && ip -n h1 addr add fd07::1/64 dev e1 nodad && wait_gid x1 10.7.0.1 fd07::1
}
same_count() { # COUNTER HW-COUNTER UNIT
	[ "$(<$sys/counters/$1)" = $(($(<$sys/hw_counters/$2) / $3)) ] ||
		{ echo "$1 $(<$sys/counters/$1), $2 $(<$sys/hw_counters/$2)"; return 1; }
}
several() {
	local n rc=0
	for n in 1 2 3; do
		ip -n h1 link add d$n type dummy && ip -n h1 link set d$n up &&
			ip -n h1 addr add 10.7.2$n.1/24 dev d$n && add_link h1 y$n d$n &&
			wait_gid y$n 10.7.2$n.1 || return 1
	done
	[ "$(ibv_devices | grep -c '[xy][1-3]')" = 4 ] || rc=1
	for n in 2 1 3; do rdma link del y$n || rc=1; done
	# The ones that are left still work.
	has_gid x1 10.7.0.1 || rc=1
	return $rc
}
rxe_there() {
	modprobe rdma_rxe && ip -n h2 link add d1 type dummy && ip -n h2 link set d1 up &&
		add_link h2 y1 d1 rxe || return 1
	fails_with 'Address already in use' add_link h2 x2 e2 || return 1
	rdma link del y1 && until_true 10 gone y1 && add_link h2 x2 e2 && rdma link del x2
}
# Cloud kernels have no rxe.
has_rxe=$(modprobe -nq rdma_rxe && echo yes)
# What package xroce-as-rxe brings: who asks for rdma_rxe gets xroce, but not beside a real one.
conf=/etc/modprobe.d/xroce-as-rxe.conf
as_rxe() {
	rdma link del x1
	modprobe -r xroce && { [ -z "$has_rxe" ] || modprobe rdma_rxe; } &&
		cp "${BASH_SOURCE[0]%/*}/../../../tools/system/xroce-as-rxe.conf" $conf || return 1
	[ -z "$has_rxe" ] ||
		{ fails_with 'Device or resource busy' modprobe xroce && rmmod rdma_rxe; } || return 1
	modprobe rdma_rxe && is_xroce || return 1
	modprobe -r rdma_rxe && [ ! -e /sys/module/xroce ] || return 1
	# The kernel asks for the module of a link type that it does not know.
	add_link h1 x1 e1 rxe && is_xroce && add_link h2 x2 e2 xroce &&
		wait_gid x1 10.7.0.1 && wait_gid x2 10.7.0.2 && use_ip 4 || return 1
	fails_with 'File exists' add_link h1 x3 e1 rxe && [ -e $sys/hw_counters/xrc_srq_err ] || return 1
	# The driver id is ours: our plug-in takes the device, and requests with another id fail.
	pingpong ibv_xsrq_pingpong -n 20 && "$SELFTEST_BIN/selftest-handles" envelopes x1 "$GID1"
}
is_xroce() { [ -e /sys/module/xroce ] && [ ! -e /sys/module/rdma_rxe ]; }
not_as_rxe() {
	rdma link del x2
	rdma link del x1
	rm -f $conf
	modprobe -r xroce && add_link h1 x1 e1 && wait_gid x1 10.7.0.1 || return 1
	[ -z "$has_rxe" ] || { modprobe rdma_rxe && [ -e /sys/module/rdma_rxe ]; }
}
# The net device goes to another namespace while its device is made: none is left behind.
moves_meanwhile() {
	local i rounds=10 mover
	[ -z "$SELFTEST_DEBUG" ] || rounds=4
	ip -n h1 link add d4 type dummy || return 1
	nap
	for ((i = 0; i < rounds; i++)); do
		# It is there already when the time comes.
		exec {mover}> >(exec ip -n h1 -batch -)
		nap
		in_host h1 rdma link add y4 type "$TYPE" netdev d4 2>/dev/null &
		read -rt "$(printf '0.%03d' $((5 + 60 * i / rounds)))" -u "$nap_fd"
		echo link set d4 netns h2 >&"$mover"
		exec {mover}>&-
		wait $!
		until_true 10 ip -n h2 link show d4 >/dev/null 2>&1 || return 1
		until_true 10 gone y4 || { echo "round $i: the device stays without its net device"; return 1; }
		ip -n h2 link set d4 netns h1 || return 1
	done
	ip -n h1 link del d4
}
netns_del() {
	# The device goes with the namespace that its net device is in.
	ip netns del h1 && until_true 20 gone x1
}

plan 21
hosts_net || die "no namespaces"
check autoload-by-type autoload
check shown shown
# What ib_core says of a name that is taken.
check name-exists fails_with 'Too many open files in system' add_link h2 x1 e2
check netdev-taken fails_with 'File exists' add_link h1 x3 e1
check no-such-netdev fails_with 'No such device' add_link h1 x3 nosuch
check no-such-type fails_with 'Invalid argument' add_link h1 x3 e1 nosuch
check delete delete
check delete-twice fails_with 'Wrong device name - x1' rdma link del x1
check add-again again
check_stock add-at-once at_once
check addresses addresses
check mtu-follows mtus
check state-follows state
check state-follows-peer peer_down
add_link h2 x2 e2 && wait_gid x2 10.7.0.2
check counters counted
rdma link del x2
check_stock several several
if [ "$TYPE" = rxe ]; then
	skip port-taken-by-rxe "this is rxe"
elif [ -z "$has_rxe" ]; then
	skip port-taken-by-rxe "this kernel has no rxe"
else
	check_stock port-taken-by-rxe rxe_there
fi
if [ "$TYPE" = rxe ]; then
	for c in as-rxe not-as-rxe; do skip $c "this is rxe"; done
else
	check_stock as-rxe as_rxe
	check_stock not-as-rxe not_as_rxe
fi
if [ "$TYPE" = rxe ]; then
	skip netdev-moves-meanwhile "rxe's devices stay"
else
	check netdev-moves-meanwhile moves_meanwhile
fi
check netns-del netns_del
finish
