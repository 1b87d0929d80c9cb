#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=180 debug xrc
# XRC receive QPs by number: which processes keep them alive, which get their events,
# what is refused; the calls of OFED 1.3; and a device that is removed while a process is
# registered.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/cases.sh"

prog=$SELFTEST_BIN/selftest-rcvqp
log=$(mktemp)

says() { grep -q "^$1" "$log"; }
gids() { g1=$(gid_index x1 10.7.0.1) g2=$(gid_index x2 10.7.0.2); }

# removed COMMAND...: the device goes by COMMAND under a process that is registered.
removed() {
	fresh_hosts && gids || return 1
	timeout -k 5 $((60 * SELFTEST_SLOW)) "$prog" until_removed x1 "$g1" x2 "$g2" >"$log" 2>&1 &
	local pid=$!
	until_true 30 says ready || { cat "$log"; kill $pid; wait $pid; return 1; }
	"$@" && gone x1 || { cat "$log"; return 1; }
	wait $pid || { echo "exit status $?"; cat "$log"; return 1; }
	says closed
}
link_del() { in_host h1 rdma link del x1; }
module_out() { rmmod xroce && modprobe xroce; }
# The calls on a device of rxe, which has a namespace without a device of ours.
elsewhere() {
	ip link add d1 type dummy && ip link set d1 up && rdma link add y1 type rxe netdev d1 &&
		"$SELFTEST_BIN/selftest-rcvqp_ofed" elsewhere y1 && rdma link del y1 && ip link del d1
}

list_cases rcvqp rcvqp_refused rcvqp_ofed
# Between hosts only what has to do with packets.
wire="traffic maker_killed persistent modified_by_other events"
plan $((${#cases[@]} + $(wc -w <<<"$wire") + 4))
two_hosts
for c in "${cases[@]}"; do
	read -r program name <<<"$c"
	check "$name" "$program" "$name" x1 "$g1"
done
for c in $wire; do
	how=check_stock
	[ "$c" != maker_killed ] || how=check
	$how "$c, on the wire" "$prog" "$c" x1 "$g1" x2 "$g2"
done
if modprobe -q rdma_rxe; then
	check_stock "a device of another driver" elsewhere
else
	skip "a device of another driver" "there is no rxe"
fi
check "link del with a registration" removed link_del
check "rmmod with a registration" removed module_out
check "the devices go" hosts_clean
rm -f "$log"
finish
