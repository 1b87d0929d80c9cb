#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=60 xrc
# XRC objects until there are no more, by number. The large numbers only with
# --long: they take a minute each and a guest with 3 GiB.
. "$(dirname "$0")/../../lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

limits=$SELFTEST_BIN/selftest-limits

mapfile -t cases < <("$limits")
[ ${#cases[@]} -gt 0 ] || exit 1
plan $((${#cases[@]} + 1))
load_module
hosts_up || die "no hosts"
for c in "${cases[@]}"; do
	check "$c" "$limits" "$c" x1
done
check "the devices go" hosts_clean
finish
