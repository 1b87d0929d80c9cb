#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=60 debug
# What kernel users have: fast registration, a key for all of memory, address
# handles in atomic context (selftests/kmod/selftest_kmr.c).
. "$(dirname "$0")/../../lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

kmr=/usr/local/lib/selftests/selftest_kmr.ko
[ -e "$kmr" ] || skip_all "$kmr is not there"

kernel_user() {
	insmod $kmr device=x1 gid_index="$(gid_index x1 10.7.0.1)" || { dmesg | grep selftest_kmr: | tail; return 1; }
	rmmod selftest_kmr
}

plan 2
load_module
hosts_up || die "no hosts"
check "keys and address handles" kernel_user
check "the devices go" hosts_clean
finish
