#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=1200 debug=long
# perftest with few iterations: every operation on every kind of queue pair, in all
# sizes, and its other modes.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../../tools/lib/duo.sh"

# The multicast group 239.7.7.8 as perftest wants it. Its own default has the scope of
# an interface, and Linux lets no such packet out, nor in.
group="-M 0:0:0:0:0:0:0:0:0:0:255:255:239:7:7:8"

# Each a name, a program and its options. What does not touch is done at one go.
connected=( # %c is RC or XRC
	"%c-send-bw-all-sizes ib_send_bw -c %c -n 5 -a"
	"%c-write-bw-all-sizes ib_write_bw -c %c -n 5 -a"
	"%c-read-bw-all-sizes ib_read_bw -c %c -n 5 -a"
	"%c-atomic-bw-cas ib_atomic_bw -c %c -n 200 -A CMP_AND_SWAP"
	"%c-atomic-bw-faa ib_atomic_bw -c %c -n 200 -A FETCH_AND_ADD"
	"%c-send-lat-inline ib_send_lat -c %c -n 50 -s 512 -I 512"
	"%c-write-lat ib_write_lat -c %c -n 100 -s 8"
	"%c-read-lat ib_read_lat -c %c -n 100 -s 8"
	"%c-atomic-lat ib_atomic_lat -c %c -n 100"
	"%c-send-bw-events ib_send_bw -c %c -n 200 -s 4096 -e"
	"%c-send-lat-events ib_send_lat -c %c -n 100 -s 4096 -e"
	"%c-send-bw-4-qps ib_send_bw -c %c -n 100 -s 8192 -q 4"
	"%c-send-bw-both-ways ib_send_bw -c %c -n 100 -s 8192 -b -e -q 2"
	"%c-write-bw-both-ways ib_write_bw -c %c -n 100 -s 65536 -b"
	"%c-read-bw-events ib_read_bw -c %c -n 100 -s 8192 -b -e -q 2 -o 4"
)
others=(
	"UC-send-bw-all-sizes ib_send_bw -c UC -n 5 -a"
	"UC-write-bw-all-sizes ib_write_bw -c UC -n 5 -a"
	"UC-send-lat-inline ib_send_lat -c UC -n 100 -s 512 -I 512"
	"UC-write-lat ib_write_lat -c UC -n 100 -s 8"
	"UC-send-bw-events ib_send_bw -c UC -n 100 -s 4096 -b -e -q 2"
	"UC-write-bw-both-ways-4-qps ib_write_bw -c UC -n 100 -s 8192 -b -q 4"
	"UD-send-bw-all-sizes ib_send_bw -c UD -n 50 -a"
	"UD-send-lat-inline ib_send_lat -c UD -n 100 -s 128 -I 128"
	"UD-send-lat-events ib_send_lat -c UD -n 100 -s 1024 -e"
	"UD-send-bw-both-ways ib_send_bw -c UD -n 100 -s 1024 -b -e -q 4"
	"UD-multicast-bw ib_send_bw -g $group -n 100 -s 1024"
)
modes=(
	"RC-send-bw-srq ib_send_bw -n 100 -s 4096 --use-srq -q 4"
	"RC-write-imm-lat ib_write_lat --write_with_imm -n 50 -s 200 -I 200"
	"UC-write-imm-bw ib_write_bw --write_with_imm -c UC -n 100 -s 8192"
	"XRC-write-imm-bw ib_write_bw --write_with_imm -c XRC -n 100 -s 8192"
	"RC-lists ib_send_bw -n 96 -s 2048 -l 8 --recv_post_list 8 -Q 8 -t 32 -r 64 -m 512 -S 3 -u 16 --tclass 96 --flow_label 5,6 --reversed"
	"RC-old-api ib_send_bw -n 100 -s 2048 --use_old_post_send -N -b --report-both"
	"XRC-old-api ib_write_bw -c XRC -n 100 -s 2048 --use_old_post_send -l 4"
	"RC-odp ib_read_bw -n 50 -s 65536 --odp"
)

# run LINE: one of the above; rxe has no XRC. A program takes some seconds, most of which it needs
# to start. XRC repeats one of each kind of RC's operations, and all sizes are those of RC's and UD's
# SENDs; with --long, all of them.
few='^RC-(write|read)-bw-all'
few+='|^XRC-(send-bw-all|write-bw|read-bw|atomic-bw-faa|send-lat-inline|atomic-lat|send-bw-both)'
few+='|^XRC-send-(lat-events|bw-4)|^UC-(send|write)-bw-all-sizes|^U[CD]-send-lat-inline'
run() {
	local name args how=check
	read -r name args <<<"$1"
	[[ ! $name =~ $few ]] || how=check_long
	if [ "$TYPE" = rxe ] && [[ $name = XRC* ]]; then
		skip "$name" "rxe has no XRC"
	else
		$how "$name" perf $args
	fi
}

plan $((2 * ${#connected[@]} + ${#others[@]} + ${#modes[@]} + 1))
hosts_up || die "no hosts"
use_ip 4
for c in RC XRC; do
	for line in "${connected[@]//%c/$c}"; do run "$line"; done
done
for line in "${others[@]}" "${modes[@]}"; do run "$line"; done
use_ip 6
check RC-write-bw-ipv6 perf ib_write_bw -n 100 -s 65536
finish
