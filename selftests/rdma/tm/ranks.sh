#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=180 debug=long
# A short run of tools/tagged: ranks that exchange tagged messages as in MPI, matched by
# the device and by software.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

[ "$TYPE" = xroce ] || skip_all "only xroce matches tags"
tagged=$SELFTEST_BIN/xroce-tagged
[ -x "$tagged" ] || skip_all "xroce-tagged is not built"
seed=${SEED:-$RANDOM}

bad_wire() {
	local n rc
	for n in 1 2; do
		plain_link h$n e$n
		netem h$n e$n loss 1% duplicate 1% delay 1ms reorder 2% || return 1
	done
	ranks "$@"
	rc=$?
	for n in 1 2; do in_host h$n tc qdisc del dev e$n root; done
	return $rc
}
# Both ways of matching come to the end; the device has its part.
ranks() {
	local out
	out=$("$tagged" "$@") || { echo "$out"; return 1; }
	echo "$out" | awk '/^the device/ && $4 > 0 { hard = 1 } /^software/ { soft = 1 }
		/^all messages came/ { all = 1 } END { exit !(hard && soft && all) }' || { echo "$out"; return 1; }
}

plan 4
load_module
hosts_up || die "no hosts"
say "seed $seed (SEED=$seed repeats it)"
g1=$(gid_index x1 10.7.0.1) g2=$(gid_index x2 10.7.0.2)
check_stock "eight ranks, one device" ranks -r 8 -m 20 -s "$seed" x1 "$g1"
check_stock "six ranks, two hosts" ranks -r 6 -m 20 -s "$seed" x1 "$g1" x2 "$g2"
check "four ranks, a wire that loses" bad_wire -r 4 -m 10 -s "$seed" x1 "$g1" x2 "$g2"
check "the devices go" hosts_clean
finish
