#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=180 debug=long
# A library and a module with different ABIs, and invalid requests for a context.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/cases.sh"

[ "$TYPE" = xroce ] || skip_all "the ABI is xroce's"
list_cases abi
plan $((${#cases[@]} + 1))
two_hosts
check_cases_once
check "the devices go" hosts_clean
finish
