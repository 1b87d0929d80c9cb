#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=240 debug=long
# Network namespaces, in the shared and in the exclusive mode of the RDMA system.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../../tools/lib/duo.sh"

same_address_twice() {
	# Two devices with the same addresses in different namespaces do not mix.
	ip netns add h3 && ip -n h3 link add d1 type dummy && ip -n h3 link set d1 up &&
		ip -n h3 addr add 10.7.0.1/24 dev d1 && add_link h3 y1 d1 && wait_gid y1 10.7.0.1 &&
		pingpong ibv_rc_pingpong -n 50 -c && rdma link del y1
}
exclusive() {
	hosts_clean
	# Not while a namespace is being taken down.
	until_true 60 rdma system set netns exclusive || return 1
	hosts_net || return 1
	# In this mode a device is where it was made, or where it is moved to.
	local n
	for n in 1 2; do
		add_link h$n x$n e$n || return 1
		if ! in_host h$n rdma link show x$n/1 >/dev/null 2>&1; then
			rdma dev set x$n netns h$n || return 1
		fi
		in_host h$n ibv_devices | grep -q x$n || return 1
	done
	! in_host h2 ibv_devices | grep -q x1 || return 1
	GID1=$(in_host h1 bash -c ". $lib/net.sh; wait_gid x1 10.7.0.1 && gid_index x1 10.7.0.1") &&
		GID2=$(in_host h2 bash -c ". $lib/net.sh; wait_gid x2 10.7.0.2 && gid_index x2 10.7.0.2") || return 1
	ADDR1=10.7.0.1
	pingpong ibv_rc_pingpong -n 50 -c
}
back() {
	in_host h1 rdma link del x1
	in_host h2 rdma link del x2
	hosts_clean
	until_true 60 rdma system set netns shared
}
lib=$(cd "$(dirname "$0")/../../../tools/lib" && pwd)

plan 3
hosts_up || die "no hosts"
use_ip 4
check same-address-in-two-namespaces same_address_twice
if [ "$TYPE" = rxe ]; then
	skip exclusive-mode "rxe stays in the initial namespace"
else
	check exclusive-mode exclusive
fi
check shared-mode-again back
finish
