#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=150
# FLUSH to persistence: which memory, who may do it, and how much leaves the CPU caches;
# within a device and on the wire. The debug kernel has no drivers for such memory;
# memory.c tests what is possible there.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/cases.sh"
. "$(dirname "$0")/../../lib/devdax.sh"

[ "$TYPE" = xroce ] || skip_all "rxe takes anything on demand for persistent"
devdax
export DEVDAX
list_cases persistent
plan $((2 * ${#cases[@]} + 2))
two_hosts

# IB_UVERBS_DEVICE_FLUSH_PERSISTENT
shown() {
	local flags
	flags=$(ibv_devinfo -v -d x1 | sed -n 's/.*device_cap_flags_ex:[[:space:]]*//p')
	echo "$flags"
	[ $((flags >> 39 & 1)) = 1 ]
}
check "ibv_devinfo shows that the device can" shown
check_cases
check "the devices go" hosts_clean
finish
