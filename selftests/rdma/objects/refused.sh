#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=90 debug=long
# Calls that the library refuses: memory, domains, queues, windows, paths, queries.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/cases.sh"

[ "$TYPE" = xroce ] || skip_all "sizes and limits are xroce's"
list_cases memory_refused objects_refused
plan $((${#cases[@]} + 1))
two_hosts
check_cases_once
check "the devices go" hosts_clean
finish
