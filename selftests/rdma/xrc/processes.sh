#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=180 debug xrc
# XRC between processes: creators that are killed, those that come later, wrong
# SRQs, a small mesh; within a host and on the wire.
. "$(dirname "$0")/../../lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

xrc=$SELFTEST_BIN/selftest-xrc

mapfile -t cases < <("$xrc")
[ ${#cases[@]} -gt 0 ] || exit 1
plan $((2 * ${#cases[@]} + 1))
load_module
hosts_up || die "no hosts"
g1=$(gid_index x1 10.7.0.1) g2=$(gid_index x2 10.7.0.2)
for c in "${cases[@]}"; do
	check "$c, one host" "$xrc" "$c" x1 "$g1" x1 "$g1"
	check "$c, on the wire" "$xrc" "$c" x1 "$g1" x2 "$g2"
done
check "the devices go" hosts_clean
finish
