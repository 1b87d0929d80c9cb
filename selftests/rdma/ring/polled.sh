#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=360 debug
# Send rings of processes that post many small messages one by one, which the kernel polls
# while a CPU is idle, and which a timer looks at while none is.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/cases.sh"

[ "$TYPE" = xroce ] || skip_all "the rings are xroce's"
[ "$(nproc)" -ge 2 ] || skip_all "one CPU"

ends() { ends=(x1 "$(gid_index x1 10.7.0.1)" x2 "$(gid_index x2 10.7.0.2)"); }
# flow MS: many messages of 8 bytes, for so long.
flow() { timeout 120 bench-flow "${ends[@]}" 1024 RC own 1 write "$1" 8 >/dev/null; }
# How often rings were looked at without a doorbell: a CPU may not be idle when it is wanted.
polls() { echo $(($(counter x1 send_ring_polls) + $(counter x1 send_ring_ticks))); }
has_polled() { [ "$(polls)" -gt "$1" ]; }

# soon COMMAND...: looks once a second, since whoever looks takes the CPU that is to poll.
soon() {
	local i k
	for ((i = 0; i < 20 * SELFTEST_SLOW; i++)); do
		! "$@" || return 0
		for ((k = 0; k < 50; k++)); do nap; done
	done
	return 1
}

# in_the_midst COMMAND...: while a process posts, and its ring is polled.
in_the_midst() {
	local before pid
	before=$(polls)
	setsid timeout 120 bench-flow "${ends[@]}" 1024 RC own 1 write 100000 8 >/dev/null 2>&1 &
	pid=$!
	soon has_polled "$before" && "$@"
	local rc=$?
	kill -9 -- -$pid
	wait $pid
	return $rc
}
# A ring that a timer looks at is polled when a CPU has become free.
polled_again() {
	local ticks polls pid rc=0
	ticks=$(counter x1 send_ring_ticks)
	setsid timeout 120 bench-flow "${ends[@]}" 1024 RC own 1 write 100000 8 >/dev/null 2>&1 &
	pid=$!
	soon more send_ring_ticks "$ticks" && polls=$(counter x1 send_ring_polls) &&
		kill "${hogs[@]}" && soon more send_ring_polls "$polls" || rc=1
	kill -9 -- -$pid
	wait $pid
	return $rc
}
more() { [ "$(counter x1 "$1")" -gt "$2" ]; }

# within OP: messages within a host, until a poller has found some.
within() {
	local before own=("${ends[@]:0:2}" "${ends[@]:0:2}")
	before=$(polls)
	for _ in $(seq 20); do
		timeout 120 bench-flow "${own[@]}" 1024 RC own 1 "$1" 300 8 >/dev/null || return 1
		! has_polled "$before" || return 0
	done
	return 1
}
# The debug kernel is slow.
within_a_host() { within write && { [ -n "$SELFTEST_DEBUG" ] || within read; }; }
killed() { in_the_midst true; until_true 20 no_user_qps; }
# Whoever needs the hosts after that makes them anew.
device_goes() { in_the_midst rdma link delete x1 && until_true 20 no_user_qps; }
one_at_a_time() {
	local before
	before=$(polls)
	timeout 60 "$SELFTEST_BIN/selftest-wander" small "${ends[@]}" && [ "$(polls)" = "$before" ]
}
not_wanted() {
	again_with 0 && flow 500 && [ "$(polls)" = 0 ]
}

# Processes that leave no CPU idle.
busy() {
	local i
	hogs=()
	for ((i = 0; i < $(nproc); i++)); do
		timeout 900 bash -c 'while :; do :; done' >/dev/null 2>&1 &
		hogs+=($!)
	done
}
idle() { kill "${hogs[@]}" 2>/dev/null; wait "${hogs[@]}" 2>/dev/null || true; }
# The debug kernel is slow.
is_timed() { [ -z "$SELFTEST_DEBUG" ] || [ "$1" = destroy ]; }

list_cases polled
timed=()
for c in "${cases[@]}"; do
	! is_timed "${c#* }" || timed+=("$c")
done
# Real-time kernels have no pollers, only timers.
case $(uname -v) in
*PREEMPT_RT*) export COUNTER=send_ring_ticks; timed=() ;;
esac
plan $((${#cases[@]} + ${#timed[@]} + 7))
# On the debug kernel no rate is high.
rate=1
[ -z "$SELFTEST_DEBUG" ] || rate=2
loaded_with() { modprobe -r xroce && modprobe xroce poll_rings="$1"; }
again_with() { hosts_clean && loaded_with "$1" && hosts_up 1500 && ends; }
# at_any_rate PROGRAM CASE: if the program says that this machine is too slow, any rate is enough.
at_any_rate() {
	"$@" "${ends[@]}"
	local rc=$?
	[ $rc = 77 ] || return $rc
	again_with 2 && "$@" "${ends[@]}"
	rc=$?
	again_with $rate && return $rc
}
loaded_with $rate
hosts_up 1500 || die "no hosts"
ends
for c in "${cases[@]}"; do
	read -r program name <<<"$c"
	ends
	# The debug kernel runs only those in which something ends.
	how=check
	[[ $name =~ ^(reset|error|destroy|on_demand)$ ]] || how=check_stock
	case $name in
	reads) $how "$name" at_any_rate "$program" "$name" ;;
	*) $how "$name" "$program" "$name" "${ends[@]}" ;;
	esac
done
busy
for c in "${timed[@]}"; do
	read -r program name <<<"$c"
	ends
	case $name in
	reads) COUNTER=send_ring_ticks check "$name, no CPU idle" at_any_rate "$program" "$name" ;;
	*) COUNTER=send_ring_ticks check "$name, no CPU idle" "$program" "$name" "${ends[@]}" ;;
	esac
done
case $(uname -v) in
*PREEMPT_RT*) skip "a CPU becomes free" "nothing is polled here" ;;
*) check_stock "a CPU becomes free" polled_again ;;
esac
idle
export TRACE=/sys/kernel/tracing/instances/selftest
mkdir "$TRACE"
check_stock "one message at a time is not polled for" one_at_a_time
rmdir "$TRACE"
check "within a host" within_a_host
check "a process is killed" killed
check "a device goes" device_goes
check_stock "nothing is polled with poll_rings=0" not_wanted
hosts_clean && loaded_with 1
check "the devices go" no_devices
finish
