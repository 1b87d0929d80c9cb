#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=480 debug
# Completion vectors as the administrator sees them: names and counts in
# /proc/interrupts, affinity, CPU hotplug, the module parameters, and that they are
# removed with the device.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../../tools/lib/duo.sh"
. "$(dirname "$0")/../../lib/irq.sh"

[ "$TYPE" = xroce ] || skip_all "other types have no vectors"
vectors=$SELFTEST_BIN/selftest-vectors
kcq=/usr/local/lib/selftests/selftest_kcq.ko
possible=$(($(sed 's/.*-//' /sys/devices/system/cpu/possible) + 1))
online=$(nproc)

hotplug() { echo "$2" >"/sys/devices/system/cpu/cpu$1/online"; }
no_interrupts() { ! grep -q 'x[12]-comp' /proc/interrupts; }
send_events() { timeout $((120 * SELFTEST_SLOW)) "$vectors" send x1 "$(gid_index x1 10.7.0.1)" "$@"; }

named() {
	local i want=
	for ((i = 0; i < possible; i++)); do want+="x1-comp$i "; done
	echo "want $want, have $(vector_names x1)"
	[ "$(vector_names x1)" = "$want" ] && [ -d "/proc/irq/$(irq_of x1-comp0)/x1-comp0" ] &&
		ibv_devinfo -v -d x1 | grep -q "num_comp_vectors:[[:space:]]*$possible\$"
}
spread() {
	local i
	for ((i = 0; i < online; i++)); do
		echo "x1-comp$i: $(affinity x1-comp$i), $(effective x1-comp$i)"
		[ "$(affinity x1-comp$i)" = $i ] && [ "$(effective x1-comp$i)" = $i ] || return 1
	done
}
# What a CPU that goes had is delivered elsewhere, and comes back with it.
cpu_goes() {
	local last=$((online - 1)) before
	before=$(count x1-comp$last)
	hotplug $last 0 || return 1
	echo "without CPU $last: $(affinity x1-comp$last), $(effective x1-comp$last)"
	[ "$(effective x1-comp$last)" != $last ] && send_events $last 10 || { hotplug $last 1; return 1; }
	hotplug $last 1 || return 1
	echo "with it: $(affinity x1-comp$last)"
	[ "$(affinity x1-comp$last)" = $last ] || return 1
	before=$(count x1-comp$last $last)
	send_events $last 10 && [ "$(count x1-comp$last $last)" -gt "$before" ]
}
# An affinity that was given meanwhile stays.
cpu_goes_and_admin_moves() {
	local last=$((online - 1)) irq
	irq=$(irq_of x1-comp$last)
	hotplug $last 0 && echo 0 >"/proc/irq/$irq/smp_affinity_list"
	hotplug $last 1 || return 1
	echo "moved to 0, is at $(affinity x1-comp$last)"
	[ "$(affinity x1-comp$last)" = 0 ] && echo $last >"/proc/irq/$irq/smp_affinity_list"
}
# Nor does it forget what was given when the CPUs go one after the other: the
# first that comes back brings the whole mask.
cpus_go_with_their_mask() {
	local last=$((online - 1)) irq both
	irq=$(irq_of x1-comp$last) both=$((last - 1))-$last
	echo $both >"/proc/irq/$irq/smp_affinity_list" && hotplug $last 0 && hotplug $((last - 1)) 0
	echo "without $both: $(affinity x1-comp$last)"
	hotplug $((last - 1)) 1
	echo "with one of them: $(affinity x1-comp$last), $(effective x1-comp$last)"
	[ "$(affinity x1-comp$last)" = $both ] && [ "$(effective x1-comp$last)" = $((last - 1)) ] &&
		hotplug $last 1 && echo $last >"/proc/irq/$irq/smp_affinity_list"
}
cpu_goes_and_comes_under_load() {
	local last=$((online - 1)) i pid
	for ((i = 0; i < online; i++)); do send_events $i 300 & pid+=($!); done
	for ((i = 0; i < 3; i++)); do hotplug $last 0 && hotplug $last 1 || return 1; done
	for i in "${pid[@]}"; do wait "$i" || return 1; done
}
# irqbalance(1) lists the vector among the interrupts that it balances, and after two
# of its rounds the vector delivers as before.
irqbalance_knows() {
	local irq before seen
	irq=$(irq_of x1-comp0) before=$(affinity x1-comp0)
	# It ends when nobody reads on.
	seen=$(timeout $((120 * SELFTEST_SLOW)) irqbalance --debug --interval=1 | sed -n "/Interrupt $irq /{p;q}")
	echo "irqbalance: $seen; affinity $before, now $(affinity x1-comp0)"
	[ -n "$seen" ] && move x1-comp0 "$before" && send_events 0 10
}
# Both ends name the vector; no other of theirs counts.
perftest() { # VECTOR
	local v d before=() after=()
	for d in x1 x2; do
		for ((v = 0; v < possible; v++)); do before+=("$(count $d-comp$v)"); done
	done
	perf ib_send_bw -e -X "$1" -n 200 -s 4096 || return 1
	for d in x1 x2; do
		for ((v = 0; v < possible; v++)); do after+=("$(count $d-comp$v)"); done
	done
	echo "before: ${before[*]}, after: ${after[*]}"
	for ((v = 0; v < 2 * possible; v++)); do
		if [ $((v % possible)) = "$1" ]; then
			[ "${after[v]}" -gt "${before[v]}" ] || return 1
		else
			[ "${after[v]}" = "${before[v]}" ] || return 1
		fi
	done
}
# The connection manager's queue is a kernel user's.
kernel_user() {
	local before
	before=$(count x1-comp0)
	duo cm 40 "$rping -s -a 10.7.0.1 -v -C 5" "$rping -c -a 10.7.0.1 -v -C 5" || return 1
	[ "$(count x1-comp0)" -gt "$before" ]
}
# Every way of polling, on every vector; see selftests/kmod.
kernel_queues() {
	insmod "$kcq" device=x1 first_irq="$(irq_of x1-comp0)" ||
		{ dmesg | grep selftest_kcq: | tail; return 1; }
	rmmod selftest_kcq
}
kernel_queues_adaptive() {
	rdma dev set x1 adaptive-moderation on && kernel_queues
}
renamed_back() {
	local i rounds=5
	[ -z "$SELFTEST_DEBUG" ] || rounds=2
	for ((i = 0; i < rounds; i++)); do
		in_host h1 rdma link del x1 && ! grep -q x1-comp /proc/interrupts && add_link h1 x1 e1 || return 1
	done
	wait_gid x1 10.7.0.1 && named
}
parameter() {
	hosts_clean && no_interrupts && rmmod xroce && modprobe xroce comp_vectors=1 && hosts_up || return 1
	echo "have $(vector_names x1)"
	[ "$(vector_names x1)" = "x1-comp0 " ] && ibv_devinfo -v -d x1 | grep -q "num_comp_vectors:[[:space:]]*1\$" &&
		send_events 0 5 && ! send_events 1 1
}
# The number for one device, by its name.
wishes=/sys/module/xroce/parameters/device_vectors
add_y() { rdma link add "$1" type xroce netdev dv0; }
count_is() { # NAME COUNT
	local have want=$(($2 < possible ? $2 : possible))
	have=$(vector_names "$1" | wc -w)
	echo "$1 has $have vectors, $want wanted"
	[ "$have" = $want ] && ibv_devinfo -v -d "$1" | grep -q "num_comp_vectors:[[:space:]]*$want\$"
}
gets() { add_y "$1" && count_is "$1" "$2" && rdma link del "$1"; }
wish() { # TEXT: what is said then
	echo "$1" >$wishes && [ "$(cat $wishes)" = "$2" ]
}
refused() { # TEXT ERROR
	local before said
	before=$(cat $wishes)
	said=$(LC_ALL=C dd of=$wishes bs=8k 2>&1 <<<"$1") && { echo "accepted: ${1:0:80}"; return 1; }
	echo "${1:0:80}: $said"
	[[ $said == *"$2"* ]] && [ "$(cat $wishes)" = "$before" ]
}
name_of() { printf "%0*d" "$1" 0; }
each_device() {
	local i many=
	hosts_clean && rmmod xroce && modprobe xroce comp_vectors=1 device_vectors=y2:2,y3:0 &&
		ip link add dv0 type dummy && wish '' '' || return 1
	# All were taken out: comp_vectors.
	gets y2 1 && rmmod xroce && modprobe xroce comp_vectors=1 device_vectors=y2:2,y3:0 &&
		[ "$(cat $wishes)" = y2:2,y3:0 ] && gets y1 1 && gets y2 2 && gets y3 $possible || return 1
	# Too many are as many as can be. The others stay.
	wish y1:4294967295 y2:2,y3:0,y1:4294967295 && gets y1 $possible && gets y2 2 &&
		wish y3:1,y2: y3:1,y1:4294967295 && gets y2 1 && gets y3 1 && wish y9: y3:1,y1:4294967295 || return 1
	# A device that is there keeps what it has.
	add_y y1 && wish y1:1 y3:1,y1:1 && count_is y1 $possible && rdma link del y1 && gets y1 1 || return 1
	refused y1 'Invalid argument' && refused :1 'Invalid argument' && refused y1:x 'Invalid argument' &&
		refused y1:-1 'Invalid argument' && refused y1:4294967296 'range' && refused y1:0,,y2:1 'Invalid argument' &&
		refused y1:0,y2 'Invalid argument' && refused 'y%d:1' 'Invalid argument' &&
		refused "$(name_of 64):1" 'Invalid argument' && refused "$(name_of 5000):1" '' || return 1
	# As many names as there is room for, all of them long.
	for ((i = 0; i < 46; i++)); do many+=$(name_of 61)$((10 + i)):4294967295,; done
	echo "${many%,}" >$wishes && refused y4:1 'No space' && refused "y1:0,y4:1" 'No space' &&
		[ "$(cat $wishes)" = "y3:1,y1:1,${many%,}" ] && wish y1:0 "y3:1,y1:0,${many%,}" || return 1
	rmmod xroce && ! modprobe xroce device_vectors=y1 && modprobe xroce && [ -z "$(cat $wishes)" ] && ip link del dv0
}
many_devices() {
	local n
	hosts_clean && rmmod xroce && modprobe xroce || return 1
	for n in 1 2 3; do
		ip link add d$n type dummy && rdma link add y$n type xroce netdev d$n || return 1
	done
	[ "$(grep -c 'y[123]-comp' /proc/interrupts)" = $((3 * possible)) ] && rmmod xroce &&
		! grep -q 'y[123]-comp' /proc/interrupts && modprobe xroce
}

load_module
plan $((15 + online))
hosts_up || die "no hosts"
use_ip 4
check "a vector for each possible CPU, named" named
check "spread over the CPUs" spread
if [ "$online" -gt 1 ] && [ -w /sys/devices/system/cpu/cpu$((online - 1))/online ]; then
	check "a CPU goes and comes back" cpu_goes
	check "an affinity given meanwhile stays" cpu_goes_and_admin_moves
	check "CPUs go and come while events fly" cpu_goes_and_comes_under_load
else
	for c in "a CPU goes and comes back" "an affinity given meanwhile stays" "CPUs go and come while events fly"; do
		skip "$c" "no CPU can go"
	done
fi
check_stock "perftest names vector 0" perftest 0
for ((v = 1; v < online; v++)); do
	check_stock "perftest names vector $v" perftest $v
done
check_stock "the connection manager's events count" kernel_user
if [ "$online" -gt 1 ] && command -v irqbalance >/dev/null; then
	check_stock "irqbalance knows them" irqbalance_knows
else
	skip "irqbalance knows them" "it needs two CPUs, and to be installed"
fi
if [ "$online" -gt 2 ] && [ -w /sys/devices/system/cpu/cpu$((online - 2))/online ]; then
	check "a mask comes back whole" cpus_go_with_their_mask
else
	skip "a mask comes back whole" "two CPUs must be able to go"
fi
if [ -e "$kcq" ]; then
	check "kernel queues in each context" kernel_queues
	# ib_core's handler uses a queue after it has said that it is done with it:
	# ib_free_cq() must not be faster. And a load that grows changes it.
	check "the same with adaptive moderation" kernel_queues_adaptive
else
	skip "kernel queues in each context" "$kcq is not there"
	skip "the same with adaptive moderation" "$kcq is not there"
fi
check "they go and come with the device" renamed_back
check_stock "the module parameter" parameter
# Of two, a device's own number can hardly differ from that of all CPUs: make test-long runs this
# once more with four.
how=check_stock
[ $possible -gt 2 ] || [ -n "$SELFTEST_DEBUG" ] || how=check_long
$how "a number for each device" each_device
check_stock "several devices, and the module goes" many_devices
hosts_clean
check "nothing is left" no_interrupts
finish
