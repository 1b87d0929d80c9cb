#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=360
# Bulk work is done on the CPU that the affinity of a completion vector names; small
# messages are handled where they come.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/irq.sh"

[ "$TYPE" = xroce ] || skip_all "other types have no vectors"
[ "$(nproc)" -ge 2 ] || skip_all "one CPU"
tracefs=/sys/kernel/tracing
mountpoint -q $tracefs || mount -t tracefs tracefs $tracefs || skip_all "no tracefs"
# A trace of its own: later tests in this guest find the kernel's as it was.
export TRACE=$tracefs/instances/selftest
[ -d "$TRACE" ] || mkdir "$TRACE" || skip_all "no instance of tracefs"
trace=$TRACE
# The event is enabled once, because that changes the code of the running kernel, and so does
# recording the names of tasks: that of the scheduler. An emulated CPU has ended there in an oops
# (int3 in __schedule()).
echo 0 >$trace/tracing_on
echo norecord-cmd >$trace/trace_options || die "task names are recorded"
echo 1 >$trace/events/workqueue/workqueue_execute_start/enable

# flow CPUS OP SIZE: for 300 ms, from x1 to x2, by a process on these CPUs.
flow() {
	timeout $((20 * SELFTEST_SLOW)) taskset -c "$1" \
		bench-flow "${ends[@]}" 1024 RC own 1 "$2" 300 "$3" >/dev/null
}
wander() { timeout 60 "$SELFTEST_BIN/selftest-wander" "$1" "${ends[@]}" >/dev/null; }
# Whether tracing is on from the beginning, or wander turns it on.
on=1
# works COMMAND...: how often the module's work ran in softirq on each CPU during that command,
# while tracing was on.
works() {
	local c rc=0
	echo >$trace/trace
	echo "$on" >$trace/tracing_on
	"$@" || rc=1
	echo 0 >$trace/tracing_on
	[ $rc = 0 ] || return 1
	for c in 0 1; do
		grep -c "\[00$c\].*xrdma_work_bh" $trace/trace
	done | paste -sd' '
}
# elsewhere CPU AT-LEAST AT-MOST COMMAND...: so often it ran on that CPU. 2: the command failed.
elsewhere() {
	local cpu=$1 least=$2 most=$3 n out
	shift 3
	out=$(works "$@") || return 2
	read -ra n <<<"$out"
	echo "work on CPU 0: ${n[0]}, on CPU 1: ${n[1]}; on $cpu, from $least to $most were wanted"
	[ "${n[$cpu]}" -ge "$least" ] && [ "${n[$cpu]}" -le "$most" ]
}

# mostly COMMAND...: in three of at most four cases, since a process may have to wait for its CPU.
# No flow fails.
mostly() {
	local good=0 rc
	for _ in 1 2 3 4; do
		rc=0
		"$@" || rc=$?
		[ $rc -lt 2 ] || return 1
		good=$((good + 1 - rc))
		[ $good -lt 3 ] || return 0
	done
	return 1
}
# share CPUS OP SIZE: in such a flow, each CPU does more than a tenth of the work. 2: it failed.
share() {
	local n out least
	out=$(works flow "$@") || return 2
	read -ra n <<<"$out"
	echo "work on CPU 0: ${n[0]}, on CPU 1: ${n[1]}"
	least=$(((n[0] + n[1]) / 10 + 4))
	[ "${n[0]}" -ge $least ] && [ "${n[1]}" -ge $least ]
}

# The vector of the end that receives is that of CPU $1; the process is on the other one, and so
# is the vector of the other end.
to_vector() {
	local cpu=$1 op=$2 to=x2
	# What a READ brings comes to the end that asked for it.
	[ "$op" != read ] || to=x1
	move x1-comp0 $((1 - cpu)) && move x2-comp0 $((1 - cpu)) && move $to-comp0 "$cpu" || return 1
	if [ "$op" = read ]; then
		# Where the data are sent depends on where the first READ came from.
		mostly elsewhere "$cpu" 10 1000000 flow $((1 - cpu)) read 262144
	else
		mostly share $((1 - cpu)) "$op" 262144
	fi
}
# That of x2 is on CPU 0 because it was made so.
by_default() { mostly elsewhere 1 10 1000000 flow 0 write 262144; }
# The same, but somebody chose it: nothing goes elsewhere.
stays() { move x2-comp0 0 && mostly elsewhere 1 0 5 flow 0 write 262144; }
# However the scheduler moves the process, no CPU does the work of both ends for long.
apart() { mostly share 0,1 send 65536; }
# Of a ring that is not polled, by which CPU ever.
small() { move x2-comp0 1 && elsewhere 1 0 5 flow 0 write 64; }
# From there on, nothing has to be done on the CPU on which READ data were sent.
after_reads() {
	local on=0
	elsewhere 0 0 40 wander after-reads
}

# Two transmit queues, each for the packets that its CPU sends.
two_queues() {
	local n
	in_host h2 ethtool -L e2 rx 2 && in_host h1 ethtool -L e1 tx 2 || return 1
	for n in 0 1; do
		ip netns exec h1 sh -c "echo $((n + 1)) >/sys/class/net/e1/queues/tx-$n/xps_cpus" ||
			return 1
	done
	in_host h1 tc qdisc replace dev e1 root handle 1: mq
}
# sent QUEUE: packets that went through it.
sent() {
	in_host h1 tc -s class show dev e1 |
		awk -v c="1:$(($1 + 1))" '/^class/ { on = $3 == c } on && /Sent/ { print $4 }'
}
one_queue() {
	two_queues || return 1
	wander small || return 1
	echo "packets of queue 0: $(sent 0), of queue 1: $(sent 1)"
	[ "$(sent 0)" -ge 800 ] && [ "$(sent 1)" -le 20 ]
}

hosts_with() {
	hosts_clean && modprobe -r xroce && modprobe xroce "$@" && hosts_up 1500 &&
		ends=(x1 "$(gid_index x1 10.7.0.1)" x2 "$(gid_index x2 10.7.0.2)")
}

hosts_up 1500
ends=(x1 "$(gid_index x1 10.7.0.1)" x2 "$(gid_index x2 10.7.0.2)")
check "nobody has chosen a CPU: the next one" by_default
check "nor where the process runs: the two ends stay apart" apart
check "somebody has chosen that to which packets come" stays
for op in write send read; do
	for cpu in 0 1; do
		check "$op: received on CPU $cpu of the vector" to_vector $cpu $op
	done
done
check "small messages after long READs, too" after_reads
check "packets stay on one transmit queue" one_queue
hosts_with poll_rings=0
check "small messages are handled where they come" small
hosts_clean
modprobe -r xroce && modprobe xroce
check "the trace goes" rmdir "$TRACE"
finish
