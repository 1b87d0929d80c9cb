#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=500 debug=long
# perftest over RC and XRC with few iterations: every operation, all sizes.
. "$(dirname "$0")/../../lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/duo.sh"

kinds="RC XRC"
[ "$TYPE" != rxe ] || kinds=RC
set -- $kinds
plan $((13 * $# + 3))
hosts_up || die "no hosts"
use_ip 4
for c in $kinds; do
	check "$c-send-bw-all-sizes" perf ib_send_bw -c $c -n 10 -a
	check "$c-write-bw-all-sizes" perf ib_write_bw -c $c -n 10 -a
	check "$c-read-bw-all-sizes" perf ib_read_bw -c $c -n 10 -a
	check "$c-atomic-bw-cas" perf ib_atomic_bw -c $c -n 200 -A CMP_AND_SWAP
	check "$c-atomic-bw-faa" perf ib_atomic_bw -c $c -n 200 -A FETCH_AND_ADD
	check "$c-send-lat" perf ib_send_lat -c $c -n 100 -s 8
	check "$c-write-lat" perf ib_write_lat -c $c -n 100 -s 8
	check "$c-read-lat" perf ib_read_lat -c $c -n 100 -s 8
	check "$c-atomic-lat" perf ib_atomic_lat -c $c -n 100
	check "$c-send-bw-events" perf ib_send_bw -c $c -n 200 -s 4096 -e
	check "$c-send-lat-events" perf ib_send_lat -c $c -n 100 -s 4096 -e
	check "$c-send-bw-4-qps" perf ib_send_bw -c $c -n 100 -s 8192 -q 4
	check "$c-write-bw-both-ways" perf ib_write_bw -c $c -n 100 -s 65536 -b
done
check RC-send-bw-srq perf ib_send_bw -n 100 -s 4096 --use-srq -q 4
check UD-send-bw perf ib_send_bw -c UD -n 200 -s 1024
use_ip 6
check RC-write-bw-ipv6 perf ib_write_bw -n 100 -s 65536
finish
