#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=150
# A kernel user: NVMe over RDMA, host and target in this namespace. The host
# registers what it reads and writes by work requests (FRWR) and invalidates it,
# or has it invalidated by the target's answers.
. "$(dirname "$0")/../../lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

nvmet=/sys/kernel/config/nvmet
nqn=xroce-selftest
size=$((32 << 20))

modprobe -q nvmet-rdma && modprobe -q nvme-rdma || skip_all "no NVMe over RDMA"
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config

target_up() {
	truncate -s $size "$dir/disk" || return 1
	mkdir $nvmet/subsystems/$nqn $nvmet/subsystems/$nqn/namespaces/1 $nvmet/ports/1 || return 1
	echo 1 >$nvmet/subsystems/$nqn/attr_allow_any_host
	echo 1 >$nvmet/subsystems/$nqn/namespaces/1/buffered_io
	echo -n "$dir/disk" >$nvmet/subsystems/$nqn/namespaces/1/device_path
	echo 1 >$nvmet/subsystems/$nqn/namespaces/1/enable || return 1
	echo rdma >$nvmet/ports/1/addr_trtype
	echo ipv4 >$nvmet/ports/1/addr_adrfam
	echo 10.8.0.2 >$nvmet/ports/1/addr_traddr
	echo 4420 >$nvmet/ports/1/addr_trsvcid
	ln -s $nvmet/subsystems/$nqn $nvmet/ports/1/subsystems/$nqn
}

target_down() {
	rm -f $nvmet/ports/1/subsystems/$nqn
	[ ! -d $nvmet/ports/1 ] || rmdir $nvmet/ports/1
	if [ -d $nvmet/subsystems/$nqn ]; then
		echo 0 >$nvmet/subsystems/$nqn/namespaces/1/enable
		rmdir $nvmet/subsystems/$nqn/namespaces/1 $nvmet/subsystems/$nqn
	fi
}

controller() { grep -lx $nqn /sys/class/nvme/nvme*/subsysnqn 2>/dev/null | head -n 1; }
disk() { find /dev -maxdepth 1 -name 'nvme*n1' | grep .; }
no_disk() { [ -z "$(controller)" ]; }

connect() {
	echo "transport=rdma,traddr=10.8.0.2,trsvcid=4420,nqn=$nqn,nr_io_queues=2" >/dev/nvme-fabrics || return 1
	until_true 10 disk >/dev/null
}

disconnect() {
	local c
	c=$(controller)
	[ -z "$c" ] || echo 1 >"${c%/*}/delete_controller"
	until_true 20 no_disk
}

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
	connect || return 1
	target_down
	rdma link del y2 && disconnect && rdma link del y1
}

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
	check "connect, $how" connect
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
