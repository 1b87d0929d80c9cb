#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=300 debug=long xrc
# Creates as many objects as possible, mainly those of XRC, and counts them. The large
# numbers are tested only with --long, and on the stock kernel: they take minutes and a
# guest with 3 GiB.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

limits=$SELFTEST_BIN/selftest-limits

mapfile -t cases < <("$limits")
[ ${#cases[@]} -gt 0 ] || exit 1
plan $((${#cases[@]} + 1))
load_module
hosts_up || die "no hosts"
gid=$(gid_index x1 10.7.0.1)
for c in "${cases[@]}"; do
	run=check_stock
	[ "$c" != users ] || run=check
	$run "$c" "$limits" "$c" x1 "$gid"
done
check "the devices go" hosts_clean
finish
