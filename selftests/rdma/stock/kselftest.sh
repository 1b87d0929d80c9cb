#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=200 long
# The kernel's own tests of rxe (tools/testing/selftests/rdma of linux-source), unmodified, with
# what package xroce-as-rxe brings. TYPE=rxe: with the real rxe.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/as-rxe.sh"

# systemd has it made at boot on every machine, for autoload.
tun() { [ -e /dev/net/tun ] || { mkdir -p /dev/net && mknod /dev/net/tun c 10 200; }; }
# Its output goes to /dev/null; its trace says where it ended.
script() {
	local rc=0
	timeout -k 5 $((60 * SELFTEST_SLOW)) bash -x "$1" || rc=$?
	right_module || rc=1
	return $rc
}

scripts=("$kselftests"/rdma/*.sh)
[ -e "${scripts[0]}" ] || die "linux-source has no tests in $kselftests/rdma"
tun || die "there is no /dev/net/tun"
plan $((${#scripts[@]} + 2))
check in-place in_place
for s in "${scripts[@]}"; do check "${s##*/}" script "$s"; done
check as-before as_before
finish
