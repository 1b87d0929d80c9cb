#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=90 debug=long
# The uverbs file: without a context, with wrong mappings, and with no descriptors left.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/cases.sh"

[ "$TYPE" = xroce ] || skip_all "the driver's parts of commands are xroce's"
list_cases files
plan $((${#cases[@]} + 1))
two_hosts
check_cases_once
check "the devices go" hosts_clean
finish
