#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=120 debug
# Memory behind keys (windows, re-registration, device memory, on-demand paging, FLUSH),
# resized SRQs, multicast, a reset while requests wait for memory; within a device and on
# the wire.
# Memory that a process serves, on kernels with FUSE.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/cases.sh"

[ "$TYPE" = xroce ] || skip_all "sizes and limits are xroce's"
programs="memory objects reset"
[ ! -e /dev/fuse ] || programs+=" served"
list_cases $programs
plan $((2 * ${#cases[@]} + 1))
two_hosts
check_cases
check "the devices go" hosts_clean
finish
