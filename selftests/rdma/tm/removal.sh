#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=120 debug
# A device is removed during tagged traffic: by name, with the module. Also a program
# that is killed.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

[ "$TYPE" = xroce ] || skip_all "only xroce matches tags"
log=$(mktemp)

says() { grep -q "^$1" "$log"; }
nothing_left() { ! rdma res show qp 2>/dev/null | grep -q 'comm selftest-tagbus'; }

# start DEVICE...: a program that sends on the first device to the last.
start() {
	local args=() d
	for d; do args+=("$d" "$(gid_index "$d" 10.7.0."${d#x}")") || return 1; done
	: >"$log"
	timeout -k 5 $((60 * SELFTEST_SLOW)) "$SELFTEST_BIN/selftest-tagbusy" until-gone "${args[@]}" >"$log" 2>&1 &
	pid=$!
	until_true 30 says ready || { cat "$log"; kill $pid; wait $pid; return 1; }
}
# The program saw the end and closed everything.
ended() {
	wait $pid || { echo "exit status $?"; cat "$log"; return 1; }
	says closed
}
# Devices that went come again.
fresh() {
	local n
	for n in 1 2; do
		! gone x$n || add_link h$n x$n e$n || return 1
	done
	wait_gid x1 10.7.0.1 && wait_gid x2 10.7.0.2
}
link_del() { fresh && start "$@" && in_host h1 rdma link del x1 && gone x1 && ended; }
# The queue's device goes: the sender learns it from its connection alone.
queue_del() {
	fresh && start x2 x1 && in_host h1 rdma link del x1 && gone x1 || return 1
	kill $pid 2>/dev/null
	wait $pid
	until_true 20 nothing_left
}
module_out() {
	fresh && start "$@" && rmmod xroce && gone x1 && gone x2 && ended && modprobe xroce
}
killed() {
	fresh && start "$@" || return 1
	# The program is the child of timeout.
	pkill -KILL -P $pid
	wait $pid
	until_true 20 nothing_left && in_host h1 rdma link del x1 && gone x1
}

n=5
[ -z "$SELFTEST_LONG" ] || n=8
plan $n
load_module
hosts_up || die "no hosts"
[ -z "$SELFTEST_LONG" ] || check "link del, one device" link_del x1
check "link del of the senders' device" link_del x1 x2
check_stock "link del of the queue's device" queue_del
[ -z "$SELFTEST_LONG" ] || check "rmmod, one device" module_out x1
check "rmmod, on the wire" module_out x1 x2
[ -z "$SELFTEST_LONG" ] || check "kill -9, one device" killed x1
check "kill -9, on the wire" killed x1 x2
check "the devices go" hosts_clean
rm -f "$log"
finish
