#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=120 debug
# What keys lead to (windows, re-registration, device memory, memory that is not
# pinned, FLUSH), resized SRQs, multicast; within a device and on the wire.
. "$(dirname "$0")/../../lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

[ "$TYPE" = xroce ] || skip_all "sizes and limits are xroce's"
mapfile -t cases < <(
	for p in memory objects; do
		"$SELFTEST_BIN/selftest-$p" | sed "s|^|$SELFTEST_BIN/selftest-$p |"
	done
)
[ ${#cases[@]} -gt 1 ] || exit 1
plan $((2 * ${#cases[@]} + 1))
load_module
hosts_up || die "no hosts"
g1=$(gid_index x1 10.7.0.1) g2=$(gid_index x2 10.7.0.2)
for c in "${cases[@]}"; do
	read -r program name <<<"$c"
	check "$name, one device" "$program" "$name" x1 "$g1"
	check "$name, on the wire" "$program" "$name" x1 "$g1" x2 "$g2"
done
check "the devices go" hosts_clean
finish
