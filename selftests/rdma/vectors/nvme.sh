#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=300
# Completion vectors that a kernel user chooses: NVMe over RDMA with an I/O queue for
# each CPU. The host's queue N, of block queue N - 1, uses vector N - 1. The target
# numbers its queues in the order of their creation, the admin queue first, and each
# queue uses the vector with its number. Requests from a CPU must raise the interrupts
# of these vectors and of no others.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/irq.sh"
. "$(dirname "$0")/../../lib/nvme.sh"

[ "$TYPE" = xroce ] || skip_all "other types have no vectors"
need_nvme
online=$(nproc)
possible=$(($(sed 's/.*-//' /sys/devices/system/cpu/possible) + 1))
[ "$online" -gt 1 ] || skip_all "one CPU"
cpus=$(seq 0 $((online - 1)))
requests=256
slice=$((requests * 4096))
size=$((slice * online))

# Host on y1, target on y2. No keep-alives, which would count on vector 0.
join() { connect host_traddr=10.8.0.1 keep_alive_tmo=3600 "$@"; }
qps() { rdma res show qp | grep -c "link $1/.*type RC"; }
no_qps() { ! rdma res show qp | grep -q 'type RC'; }
connected() {
	join nr_io_queues="$online" || return 1
	rdma res show qp
	[ "$(qps y1)" = $((online + 1)) ] && [ "$(qps y2)" = $((online + 1)) ]
}

block_queues() {
	local c
	c=$(controller)
	ls -d "${c%/*}"/nvme*n1/mq/*
}
# queue_of CPU: the block queue of its requests.
queue_of() {
	local q
	for q in $(block_queues); do
		! tr ',' '\n' <"$q/cpu_list" | grep -qw "$1" || echo "${q##*/}"
	done
}
own_queues() {
	local c
	[ "$(block_queues | wc -l)" = "$online" ] || return 1
	[ "$(for c in $cpus; do queue_of "$c"; done | sort -n | tr '\n' ' ')" = "$(echo $cpus) " ]
}

# write_from CPU, read_from CPU: 4 KiB at a time, past the page cache of the
# host's side, to and from a part of the disk for each CPU.
write_from() {
	head -c $slice /dev/urandom >"$dir/data$1"
	taskset -c "$1" dd if="$dir/data$1" of="$(disk)" bs=4k seek=$(($1 * requests)) oflag=direct status=none &&
		cmp -n $slice -i 0:$(($1 * slice)) "$dir/data$1" "$dir/disk"
}
read_from() {
	taskset -c "$1" dd if="$(disk)" of="$dir/back$1" bs=4k count=$requests skip=$(($1 * requests)) iflag=direct status=none &&
		cmp "$dir/data$1" "$dir/back$1"
}

# only DEVICES VECTORS COMMAND...: of the vectors of DEVICES, a regular expression,
# COMMAND raises VECTORS, each on the CPU that its affinity says, and no others.
# An interrupt may answer several requests. What else happens, the kernel's look at
# a new disk, is much less.
only() {
	local devices="^$1-comp" want= v before after
	for v in $2; do want+="$v/$(effective "$v") "; done
	shift 2
	before=$(counts "$devices")
	"$@" || return 1
	after=$(counts "$devices")
	echo "$*: $want"
	paste -d ' ' <(echo "$before") <(echo "$after") | awk -v n=$requests -v want="$want" '
		BEGIN { split(want, list, " "); for (i in list) wanted[list[i]] }
		{
			at = $1 "/" $2
			grown = $6 - $3
			print at, grown
			if (at in wanted ? grown < n / 2 : grown > n / 8)
				wrong++
			delete wanted[at]
		}
		END { for (at in wanted) wrong++; exit wrong != 0 }'
}

host_vector() { echo "y1-comp$(($(queue_of "$1") % possible % online))"; }
target_vector() { echo "y2-comp$((($(queue_of "$1") + 1) % possible % online))"; }
from_cpu() {
	local v
	v="$(host_vector "$1") $(target_vector "$1")"
	only 'y[12]' "$v" write_from "$1" && only 'y[12]' "$v" read_from "$1"
}

# The vectors of the last CPU's queue change places, one end after the other.
moved() {
	local c=$((online - 1)) host target at_host at_target
	host=$(host_vector $c) target=$(target_vector $c)
	at_host=$(effective "$host") at_target=$(effective "$target")
	move "$host" "$at_target" && [ "$(effective "$host")" = "$at_target" ] && from_cpu $c || return 1
	move "$target" "$at_host" && [ "$(effective "$target")" = "$at_host" ] && from_cpu $c || return 1
	move "$host" "$at_host" && move "$target" "$at_target" && from_cpu $c
}

work() { until [ -e "$dir/stop" ]; do write_from "$1" && read_from "$1" || return 1; done; }
more() { [ "$(count "$1" "$2")" -gt "$3" ]; }
# moves VECTORS: each goes to every CPU, and counts there.
moves() {
	local v to before
	for to in $(tac <<<"$cpus") $cpus; do
		for v in $1; do
			before=$(count "$v" "$to")
			move "$v" "$to" && until_true 20 more "$v" "$to" "$before" ||
				{ echo "$v does not count on CPU $to"; return 1; }
		done
	done
}
moved_under_load() {
	local c vectors= pids=() rc=0
	for c in $cpus; do vectors+="$(host_vector "$c") $(target_vector "$c") "; done
	for c in $cpus; do work "$c" & pids+=($!); done
	moves "$vectors" || rc=1
	touch "$dir/stop"
	for c in "${pids[@]}"; do wait "$c" || rc=1; done
	for c in $cpus; do move "y1-comp$c" "$c" && move "y2-comp$c" "$c" || rc=1; done
	return $rc
}

# Block queue 0 for all writes, 1 for all reads: whoever asks, it is the queue's
# vector that answers.
by_direction() {
	local c
	until_true 10 no_qps && join nr_io_queues=1 nr_write_queues=1 || return 1
	for c in $cpus; do
		only y1 y1-comp0 write_from "$c" && only y1 y1-comp1 read_from "$c" || return 1
	done
}

# ib_core says of each dummy that its speed is unknown.
complaints() { dmesg --level=emerg,alert,crit,err,warn | grep -v 'speed is unknown'; }
no_complaints() { diff <(echo "$said") <(complaints); }
gone() {
	until_true 10 no_qps && target_down && hosts_clean && [ -z "$(vector_names 'y[12]')" ]
}

plan $((9 + online))
dir=$(mktemp -d)
trap 'disconnect; target_down; rm -rf "$dir"' EXIT
load_module
said=$(complaints)
pair_up || die "no devices"
# The connection manager refuses a request (the host sees ECONNRESET) if no route
# leads back by the device that it came to, and what is local has none.
ip route add 10.8.0.1 dev d2 || die "no way back"
target_up || die "no target"
check "connect" connected || die "no connection"
check "a queue for each CPU" own_queues
for c in $cpus; do
	check "CPU $c raises its queue's vectors" from_cpu "$c"
done
check "affinity moves them" moved
check_long "and under load" moved_under_load
check "disconnect" disconnect
check "queues for writes and for reads" by_direction
check "disconnect again" disconnect
check "nothing is left" gone
check "no complaints in the kernel log" no_complaints
finish
