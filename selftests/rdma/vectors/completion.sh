#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=400 debug
# Completion vectors as a program sees them: which interrupt counts and on which CPU,
# arming, channels, moderation, errors; and the device is removed at the same time.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/cases.sh"

[ "$TYPE" = xroce ] || skip_all "other types have no vectors"
vectors=$SELFTEST_BIN/selftest-vectors
log=$(mktemp)

says() { grep -q "^$1" "$log"; }
adaptive=
fresh() { hosts_clean && hosts_up && { [ -z "$adaptive" ] || rdma dev set x1 adaptive-moderation on; }; }
gone() { [ ! -e "/sys/class/infiniband/$1" ]; }
no_interrupts() { ! grep -q 'x1-comp' /proc/interrupts; }

# start: a program that takes events on x1.
start() {
	fresh || return 1
	: >"$log"
	timeout -k 5 $((60 * SELFTEST_SLOW)) "$vectors" busy x1 "$(gid_index x1 10.7.0.1)" >"$log" 2>&1 &
	pid=$!
	until_true 30 says ready || { cat "$log"; kill $pid; wait $pid; return 1; }
}
ended() {
	wait $pid || { echo "exit status $?"; cat "$log"; return 1; }
	says closed && no_interrupts
}
link_del() { start && in_host h1 rdma link del x1 && gone x1 && ended; }
netdev_del() { start && ip -n h1 link del e1 && until_true 20 gone x1 && ended; }
module_out() { start && rmmod xroce && gone x1 && ended && modprobe xroce; }
killed() {
	start || return 1
	pkill -KILL -P $pid
	wait $pid
	in_host h1 rdma link del x1 && no_interrupts
}

# What goes while adaptive moderation is at work.
adapting() { local adaptive=1; "$@"; }

programs="vectors adaptive arming channels"
# What is left out takes minutes there.
[ -z "$SELFTEST_DEBUG" ] || [ -n "$SELFTEST_LONG" ] || programs="arming channels"
list_cases $programs
plan $((${#cases[@]} + 7))
two_hosts
for c in "${cases[@]}"; do
	read -r program name <<<"$c"
	check "$name" timeout -k 5 $((60 * SELFTEST_SLOW)) "$program" "$name" x1 "$g1"
done
check "link del while events fly" link_del
check_stock "ip link del while events fly" netdev_del
check_stock "rmmod while events fly" module_out
check_stock "kill while events fly" killed
check_stock "link del while queues adapt" adapting link_del
check_stock "rmmod while queues adapt" adapting module_out
check_stock "kill while queues adapt" adapting killed
hosts_clean
rm -f "$log"
finish
