# SPDX-License-Identifier: GPL-2.0
# Persistent memory for tests: the guest's NVDIMM as a character device, which can be
# mapped and pinned. Sourced, after ktap.sh.

# devdax: the device in $DEVDAX, made of the NVDIMM of tools/vm/run, as ndctl
# would. Data of the machine it is when another one; then the test is skipped, as
# it is on kernels without the drivers.
devdax() {
	local bus=/sys/bus/nd dax m
	DEVDAX=/dev/dax0.0
	grep -qw vm.nvdimm /proc/cmdline || skip_all "no NVDIMM that is anybody's"
	for m in nfit nd_pmem dax_pmem device_dax; do
		modprobe -q "$m" || skip_all "the kernel has no $m"
	done
	# Of an earlier run in this guest.
	[ ! -e $DEVDAX ] || return 0
	# Its probes run on their own; this waits for them.
	cat $bus/devices/ndbus0/wait_probe >/dev/null
	dax=$bus/devices/$(cat $bus/devices/region0/dax_seed) || die "no NVDIMM"
	[ ! -e $bus/devices/namespace0.0/driver ] ||
		echo namespace0.0 >$bus/devices/namespace0.0/driver/unbind
	echo ram >"$dax/mode"
	echo 4096 >"$dax/align"
	cat /proc/sys/kernel/random/uuid >"$dax/uuid"
	echo namespace0.0 >"$dax/namespace"
	echo "${dax##*/}" >$bus/drivers/dax_pmem/bind
	[ -e $DEVDAX ] || die "no $DEVDAX"
}
