#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=120 debug
# Completion channels when processes fork, and what is refused.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

[ "$TYPE" = xroce ] || skip_all "other types have no vectors"

# What processes have of x1; the kernel's own is not counted.
nothing_left() { ! rdma res show cq dev x1 2>/dev/null | grep -q ' pid '; }

cases=()
for p in forked refused; do
	while read -r c; do cases+=("$p $c"); done < <("$SELFTEST_BIN/selftest-$p")
done
[ ${#cases[@]} -gt 2 ] || exit 1
plan $((${#cases[@]} + 1))
load_module
hosts_up || die "no hosts"
g1=$(gid_index x1 10.7.0.1)
for c in "${cases[@]}"; do
	read -r p name <<<"$c"
	check "$name" timeout -k 5 $((40 * SELFTEST_SLOW)) "$SELFTEST_BIN/selftest-$p" "$name" x1 "$g1"
done
check "nothing is left" until_true 10 nothing_left
hosts_clean
finish
