#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=200 long
# The kernel's own tests of rxe (tools/testing/selftests/rdma of linux-source), unmodified, with
# what package xroce-as-rxe brings. TYPE=rxe: with the real rxe.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

dir=/kernel/stock/tools/testing/selftests/rdma
conf=/etc/modprobe.d/xroce-as-rxe.conf

out() { rmmod xroce; rmmod rdma_rxe; } 2>/dev/null
in_place() {
	hosts_clean
	out
	# systemd has it made at boot on every machine, for autoload.
	[ -e /dev/net/tun ] || { mkdir -p /dev/net && mknod /dev/net/tun c 10 200; } || return 1
	[ "$TYPE" = rxe ] || cp "${BASH_SOURCE[0]%/*}/../../../tools/system/xroce-as-rxe.conf" $conf
}
# Its output goes to /dev/null; its trace says where it ended.
script() {
	local rc=0
	timeout -k 5 $((60 * SELFTEST_SLOW)) bash -x "$1" || rc=$?
	# Only the right module was there, if any is left.
	[ ! -e "/sys/module/$([ "$TYPE" = rxe ] && echo xroce || echo rdma_rxe)" ] || { echo "the wrong module"; rc=1; }
	return $rc
}
as_before() {
	rm -f $conf
	out
	load_module && [ -e "/sys/module/$(module_of "$TYPE")" ]
}

scripts=("$dir"/*.sh)
[ -e "${scripts[0]}" ] || die "linux-source has no tests in $dir"
plan $((${#scripts[@]} + 2))
check in-place in_place
for s in "${scripts[@]}"; do check "${s##*/}" script "$s"; done
check as-before as_before
finish
