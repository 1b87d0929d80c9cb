#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=90 debug
# SQE: a failed send of UC or UD stops the send queue and nothing else, until
# ibv_modify_qp brings it back; within a device and on the wire.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/cases.sh"

[ "$TYPE" = xroce ] || skip_all "rxe has no SQE"
list_cases sqe
plan $((2 * ${#cases[@]} + 1))
two_hosts
for c in "${cases[@]}"; do
	read -r program name <<<"$c"
	check "$name, on the wire" "$program" "$name" x1 "$g1" x2 "$g2"
	# These services have no shorter way within a device.
	check_stock "$name, one device" "$program" "$name" x1 "$g1"
done
check "the devices go" hosts_clean
finish
