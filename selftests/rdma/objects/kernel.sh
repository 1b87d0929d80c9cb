#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=60 debug
# Features for kernel users: fast registration, a key for all of memory, address handles
# in atomic context (selftests/kmod/selftest_kmr.c); datagrams that fail, on a queue
# pair of the test and on that of ib_mad (selftest_kud.c).
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

modules=/usr/local/lib/selftests
for name in kmr kud; do
	[ -e $modules/selftest_$name.ko ] || skip_all "selftest_$name.ko is not there"
done

# kernel_user NAME: what the module finds, while it is loaded.
kernel_user() {
	local m=selftest_$1
	insmod "$modules/$m.ko" device=x1 gid_index="$(gid_index x1 10.7.0.1)" ||
		{ dmesg | grep "$m:" | tail; return 1; }
	rmmod "$m"
}

plan 3
load_module
hosts_up || die "no hosts"
check "keys and address handles" kernel_user kmr
check "datagrams that fail" kernel_user kud
check "the devices go" hosts_clean
finish
