#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=240 debug
# A device goes away while a program uses it, over RC or XRC: by name, with its net
# device, with its namespace, with the module; and a program goes away while it sends.
. "$(dirname "$0")/../../lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

busy=$SELFTEST_BIN/selftest-busy
log=$(mktemp)
module=$(module_of "$TYPE")

says() { grep -q "^$1" "$log"; }

# start DEVICE...: a program that sends on one device, or from one to another; over
# what $over says.
over=
start() {
	local args=($over) d
	for d; do args+=("$d" "$(gid_index "$d" 10.7.0."${d#x}")") || return 1; done
	: >"$log"
	timeout -k 5 $((60 * SELFTEST_SLOW)) "$busy" "${args[@]}" >"$log" 2>&1 &
	pid=$!
	until_true 30 says ready || { cat "$log"; kill $pid; wait $pid; return 1; }
}
# ended: the program saw the end and closed everything.
ended() {
	wait $pid || { echo "exit status $?"; cat "$log"; return 1; }
	says closed
}

link_del() { # DEVICE...
	fresh_hosts && start "$@" && in_host h1 rdma link del x1 && gone x1 && ended
}
netdev_del() {
	fresh_hosts && start "$@" && ip -n h1 link del e1 && until_true 20 gone x1 && ended
}
netns_del() {
	fresh_hosts && start "$@" && ip netns del h1 && until_true 20 gone x1 && ended
}
module_out() {
	fresh_hosts && start "$@" && rmmod "$module" && gone x1 && gone x2 && ended && modprobe "$module"
}
# over_xrc COMMAND...
over_xrc() { local over=xrc; "$@"; }
killed() {
	fresh_hosts && start "$@" || return 1
	# The program is the child of timeout.
	pkill -KILL -P $pid
	wait $pid
	until_true 20 no_user_qps && in_host h1 rdma link del x1 && gone x1
}
link_down_up() {
	fresh_hosts && start x1 x2 || return 1
	ip -n h1 link set e1 down && ip -n h1 link set e1 up || return 1
	# The IPv6 address went with the link.
	in_host h1 rdma link del x1 && gone x1 && ended && hosts_clean
}
again_at_once() {
	local i rounds=10
	[ -z "$SELFTEST_DEBUG" ] || rounds=3
	fresh_hosts || return 1
	for ((i = 0; i < rounds; i++)); do
		in_host h1 rdma link del x1 && add_link h1 x1 e1 || return 1
	done
	wait_gid x1 10.7.0.1
}
# KiB of the kernel's memory, rings included.
kernel_memory() { python3 -c 'import kmem; print(kmem.settled() // 1024)'; }
load_round() {
	fresh_hosts || return 1
	: >"$log"
	"$SELFTEST_BIN/selftest-rings" x1 >"$log" 2>&1 &
	pid=$!
	until_true 30 says ready && rmmod "$module" || { cat "$log"; kill $pid; return 1; }
	{ kill $pid && wait $pid; } 2>/dev/null
	modprobe "$module"
}
# Nothing of what came and went with the module is left: the bound is an eighth of
# what is lost if each round loses the smallest ring of selftest-rings. On the debug
# kernel kmemleak says it; what KASAN keeps back for a while would count.
load_loop() {
	local i rounds=10 before after grown
	if [ -n "$SELFTEST_DEBUG" ]; then
		load_round && load_round
		return
	fi
	# What the first rounds leave is there once.
	load_round && load_round && fresh_hosts && before=$(kernel_memory) || return 1
	for ((i = 0; i < rounds; i++)); do load_round || return 1; done
	fresh_hosts && after=$(kernel_memory) || return 1
	grown=$((after - before))
	echo "$grown KiB more after $rounds rounds"
	[ $grown -lt $((rounds * 64)) ]
}

load_module
plan 13
check_stock "link del under local traffic" link_del x1
check_stock "link del under traffic on the wire" link_del x1 x2
check "ip link del under local traffic" netdev_del x1
check_stock "ip link del under traffic on the wire" netdev_del x1 x2
check "ip netns del under traffic" netns_del x1 x2
check_stock "rmmod under local traffic" module_out x1
check_stock "rmmod under traffic on the wire" module_out x1 x2
if [ "$TYPE" = rxe ]; then
	skip "link del under local XRC traffic" "rxe has no XRC"
	skip "rmmod under XRC traffic on the wire" "rxe has no XRC"
else
	check_stock "link del under local XRC traffic" over_xrc link_del x1
	check "rmmod under XRC traffic on the wire" over_xrc module_out x1 x2
fi
check "kill -9 under traffic" killed x1 x2
check "net device down and up under traffic" link_down_up
check "link del and add at once" again_at_once
check "load, use, unload" load_loop
hosts_clean
rm -f "$log"
finish
