#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=180 debug=long
# A matching list of 10^5 tags; many senders to one queue, within a device, on the wire,
# and on a network that loses, duplicates and reorders packets.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

[ "$TYPE" = xroce ] || skip_all "only xroce matches tags"
load=$SELFTEST_BIN/selftest-tagload

retransmitted() {
	local d n sum=0
	for d in x1 x2; do
		for n in /sys/class/infiniband/$d/ports/1/hw_counters/*retr*; do
			sum=$((sum + $(cat "$n")))
		done
	done
	echo $sum
}

# bad_wire NAME NETEM-ARGUMENT...
bad_wire() {
	local name=$1 n rc before
	shift
	for n in 1 2; do
		plain_link h$n e$n
		netem h$n e$n "$@" || return 1
	done
	before=$(retransmitted)
	"$load" senders x1 "$g1" x2 "$g2"
	rc=$?
	for n in 1 2; do in_host h$n tc qdisc del dev e$n root; done
	[ "$name" != loss ] || [ "$(retransmitted)" -gt "$before" ] || { echo "nothing was lost"; return 1; }
	return $rc
}

n=5
[ -z "$SELFTEST_LONG" ] || n=7
plan $n
load_module
hosts_up || die "no hosts"
g1=$(gid_index x1 10.7.0.1) g2=$(gid_index x2 10.7.0.2)
check_stock "a list of 10^5 tags" "$load" long-list x1 "$g1"
check_stock "many senders, one device" "$load" senders x1 "$g1"
check_stock "many senders, on the wire" "$load" senders x1 "$g1" x2 "$g2"
check "many senders, loss" bad_wire loss loss 3%
[ -z "$SELFTEST_LONG" ] || check "many senders, duplicates and disorder" bad_wire disorder duplicate 2% delay 1ms reorder 75% 50%
[ -z "$SELFTEST_LONG" ] || check "many senders, all" bad_wire all loss 1% duplicate 1% delay 1ms reorder 2%
check "the devices go" hosts_clean
finish
