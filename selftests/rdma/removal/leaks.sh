#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=60 debug
# Safe Rust that misuses crate rdma, in a module of its own (selftests/kmod/safe.rs):
# the errors that it gets, how runs of one process wait for each other, and that the
# kernel does not call the module after its removal, whatever it leaked.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

module=/usr/local/lib/selftests/selftest_safe.ko
[ -e $module ] || skip_all "selftest_safe.ko is not there"

# misuse CASE: while the module is loaded, and after.
misuse() {
	insmod $module case="$1" || { dmesg | grep selftest_safe: | tail; return 1; }
	rmmod selftest_safe || return 1
	# What is called when a net device comes, interrupts are looked at, a CPU
	# comes or a packet; and timers and work items are by themselves.
	ip link add safe0 type veth peer name safe1 && ip link del safe0 || return 1
	! grep -i safe /proc/interrupts || return 1
	if [ -e /sys/devices/system/cpu/cpu1/online ]; then
		echo 0 >/sys/devices/system/cpu/cpu1/online
		echo 1 >/sys/devices/system/cpu/cpu1/online
	fi
	! ss -Hlun sport = :4791 | grep . || return 1
}

plan 5
check "nothing is to be had without services" misuse 0
if [ -z "${SELFTEST_DEBUG:-}" ]; then
	check "the services end what was leaked" misuse 1
	check "nothing happens after the services" misuse 2
else
	skip "the services end what was leaked" "kmemleak finds it as well"
	skip "nothing happens after the services" "kmemleak finds it as well"
fi
check "numbers of a table that are taken away from each other" misuse 3
check "runs of a process that wait, and nobody for them" misuse 5
finish
