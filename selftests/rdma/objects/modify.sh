#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=60 debug=long
# ibv_modify_qp: masks, values and state changes of every kind of queue pair.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/cases.sh"

[ "$TYPE" = xroce ] || skip_all "limits are xroce's"
list_cases modify
plan $((${#cases[@]} + 1))
two_hosts
check_cases_once
check "the devices go" hosts_clean
finish
