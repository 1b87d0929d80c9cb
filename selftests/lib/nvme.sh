# SPDX-License-Identifier: GPL-2.0
# NVMe over RDMA: a target on device y2 of pair_up with one namespace, the file
# $dir/disk, and a host. Both work only in the initial network namespace. Sourced, after
# net.sh and ktap.sh; the test sets $dir, a directory, and $size, in bytes.

nvmet=/sys/kernel/config/nvmet
nqn=xroce-selftest

# Skips the test where the kernel cannot.
need_nvme() {
	modprobe -q nvmet-rdma && modprobe -q nvme-rdma || skip_all "no NVMe over RDMA"
	mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
}

target_up() {
	truncate -s "$size" "$dir/disk" || return 1
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

# controller: its subsysnqn in sysfs, if there is one.
controller() { grep -lx $nqn /sys/class/nvme/nvme*/subsysnqn 2>/dev/null | head -n 1; }
no_controller() { [ -z "$(controller)" ]; }
disk() { find /dev -maxdepth 1 -name 'nvme*n1' | grep .; }

# connect OPTION...: as /dev/nvme-fabrics takes them. Without host_traddr the
# host's end is on y2, too: the route to a local address has it for its source.
connect() {
	local o options="transport=rdma,traddr=10.8.0.2,trsvcid=4420,nqn=$nqn"
	for o; do options+=",$o"; done
	echo "$options" >/dev/nvme-fabrics || return 1
	until_true 10 disk >/dev/null
}

disconnect() {
	local c
	c=$(controller)
	[ -z "$c" ] || echo 1 >"${c%/*}/delete_controller"
	until_true 20 no_controller
}
