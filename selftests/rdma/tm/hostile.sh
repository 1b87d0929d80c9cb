#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=120 debug
# Operations on a matching list that the library would not write, and garbage in
# their ring.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

[ "$TYPE" = xroce ] || skip_all "only xroce matches tags"
ring=$SELFTEST_BIN/selftest-tagring

mapfile -t cases < <("$ring")
[ ${#cases[@]} -gt 0 ] || exit 1
nothing_left() { ! rdma res show qp 2>/dev/null | grep -q 'comm selftest-tagrin'; }

plan $((${#cases[@]} + 2))
load_module
hosts_up || die "no hosts"
g1=$(gid_index x1 10.7.0.1)
for c in "${cases[@]}"; do
	check "$c" "$ring" "$c" x1 "$g1"
done
check "nothing is left" until_true 20 nothing_left
check "the devices go" hosts_clean
finish
