#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=90 debug
# The extended interfaces: calls that build work requests and read completions, and
# their time stamps, within a device and on the wire.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/cases.sh"

[ "$TYPE" = xroce ] || skip_all "sizes and limits are xroce's"
list_cases extended
plan $((2 * ${#cases[@]} + 1))
two_hosts
check_cases
check "the devices go" hosts_clean
finish
