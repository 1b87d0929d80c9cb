#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=120
# Bulk work is done on the CPU that the affinity of a completion vector names; small
# messages are handled where they come.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/irq.sh"

[ "$TYPE" = xroce ] || skip_all "other types have no vectors"
[ "$(nproc)" -ge 2 ] || skip_all "one CPU"
trace=/sys/kernel/tracing
mountpoint -q $trace || mount -t tracefs tracefs $trace || skip_all "no tracefs"

# flow CPU OP SIZE: for 300 ms, from x1 to x2, by a process on that CPU.
flow() {
	timeout 60 taskset -c "$1" bench-flow x1 "$(gid_index x1 10.7.0.1)" x2 "$(gid_index x2 10.7.0.2)" \
		1024 RC own 1 "$2" 300 "$3" >/dev/null
}
# on CPU...: how often the module's work ran in softirq on each CPU during that command.
works() {
	echo >$trace/trace
	echo 1 >$trace/events/workqueue/workqueue_execute_start/enable
	"$@" || return 1
	echo 0 >$trace/events/workqueue/workqueue_execute_start/enable
	for c in 0 1; do
		echo "$(grep -c "\[00$c\].*xrdma_work_bh" $trace/trace)"
	done | paste -sd' '
}

# The vector of the end that receives is that of CPU $1; the process is on the other one, and so
# is the vector of the other end.
to_vector() {
	local cpu=$1 op=$2 to=x2 n
	# What a READ brings comes to the end that asked for it.
	[ "$op" != read ] || to=x1
	move x1-comp0 $((1 - cpu)) && move x2-comp0 $((1 - cpu)) && move $to-comp0 "$cpu" || return 1
	read -ra n <<<"$(works flow $((1 - cpu)) "$op" 262144)"
	echo "work on CPU 0: ${n[0]}, on CPU 1: ${n[1]}; wanted on $cpu"
	[ "${n[$cpu]}" -ge 20 ]
}
# A vector that was moved to the CPU of the process: nothing goes elsewhere.
stays() {
	local n
	move x1-comp0 1 && move x2-comp0 1 || return 1
	read -ra n <<<"$(works flow 1 write 262144)"
	echo "work on CPU 0: ${n[0]}, on CPU 1: ${n[1]}"
	[ "${n[0]}" -le 5 ]
}
small() {
	local n
	move x1-comp0 1 && move x2-comp0 0 || return 1
	read -ra n <<<"$(works flow 1 write 64)"
	echo "work on CPU 0: ${n[0]}, on CPU 1: ${n[1]}"
	[ "${n[0]}" -le 5 ]
}

hosts_up 1500
for op in write send read; do
	for cpu in 0 1; do
		check "$op: received on CPU $cpu of the vector" to_vector $cpu $op
	done
done
check "a vector of the CPU to which packets come" stays
check "small messages are handled where they come" small
hosts_clean
finish
