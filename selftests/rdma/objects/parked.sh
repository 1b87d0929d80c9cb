#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=180 debug
# A process whose memory for on-demand paging never comes, and others beside it; within
# a device and on the wire.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/cases.sh"

[ "$TYPE" = xroce ] || skip_all "the work queues are xroce's"
list_cases parked
plan $((2 * ${#cases[@]} + 1))
two_hosts
check_cases
check "the devices go" hosts_clean
finish
