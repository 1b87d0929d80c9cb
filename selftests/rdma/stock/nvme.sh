#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=150 debug=long
# A kernel user: NVMe over RDMA, host and target in this namespace. The host registers
# the memory that it reads and writes by work requests (FRWR). It invalidates the memory
# itself or lets the responses of the target do so.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/nvme.sh"

size=$((32 << 20))
two_queues() { connect nr_io_queues=2; }

# In requests of many sizes, past the page cache of the host's side.
store_and_load() {
	local d
	d=$(disk) || return 1
	dd if="$dir/data" of="$d" bs=4k count=512 oflag=direct status=none || return 1
	dd if="$dir/data" of="$d" bs=512k skip=4 seek=4 oflag=direct status=none || return 1
	cmp "$dir/data" "$dir/disk" || return 1
	dd if="$d" of="$dir/back" bs=1M count=$((size >> 20)) iflag=direct status=none || return 1
	cmp "$dir/data" "$dir/back" || return 1
	dd if="$d" of="$dir/back" bs=12k count=300 iflag=direct status=none || return 1
	cmp -n $((12288 * 300)) "$dir/data" "$dir/back"
}

busy() {
	local d reader writer rc=0
	d=$(disk) || return 1
	dd if="$d" of=/dev/null bs=256k iflag=direct status=none &
	reader=$!
	dd if="$dir/data" of="$d" bs=64k oflag=direct status=none &
	writer=$!
	wait $reader || rc=1
	wait $writer || rc=1
	[ $rc = 0 ] && cmp "$dir/data" "$dir/disk"
}

# The target's device goes while the host is connected: the host gives up.
device_goes() {
	disconnect || return 1
	two_queues || return 1
	target_down
	rdma link del y2 && disconnect && rdma link del y1
}

need_nvme
plan 9
dir=$(mktemp -d)
trap 'disconnect; target_down; rm -rf "$dir"' EXIT
load_module
head -c $size /dev/urandom >"$dir/data"
for how in copied sent; do
	if [ $how = sent ] && [ "$TYPE" = xroce ]; then
		# The same by packets, which is how two hosts do it.
		target_down
		hosts_clean && modprobe -r xroce && modprobe xroce local_copy=0 || die "no other module"
	elif [ $how = sent ]; then
		target_down
		hosts_clean
	fi
	pair_up || die "no devices"
	target_up || die "no target"
	check "connect, $how" two_queues
	check "store and load, $how" store_and_load
	check "two at a time, $how" busy
	check "disconnect, $how" disconnect
done
check "the devices go" device_goes
trap - EXIT
disconnect
target_down
rm -rf "$dir"
[ "$TYPE" != xroce ] || { hosts_clean && modprobe -r xroce && modprobe xroce; }
finish
