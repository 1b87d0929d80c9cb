#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=180 debug
# Verbs at their edges, through the library's own calls, within a device and on
# the wire.
. "$(dirname "$0")/../../lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

[ "$TYPE" = xroce ] || skip_all "sizes and limits are xroce's"
verbs=$SELFTEST_BIN/selftest-verbs

mapfile -t cases < <("$verbs")
[ ${#cases[@]} -gt 0 ] || exit 1
plan $((2 * ${#cases[@]} + 1))
load_module
hosts_up || die "no hosts"
g1=$(gid_index x1 10.7.0.1) g2=$(gid_index x2 10.7.0.2)
for c in "${cases[@]}"; do
	check "$c, one device" "$verbs" "$c" x1 "$g1"
	check "$c, on the wire" "$verbs" "$c" x1 "$g1" x2 "$g2"
done
check "the devices go" hosts_clean
finish
