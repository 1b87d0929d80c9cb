#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=90 debug=long
# Peers that cannot be reached: the errno of the route, or of a neighbour that does not
# answer.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/cases.sh"

[ "$TYPE" = xroce ] || skip_all "receive QPs by number are xroce's"
list_cases peers
plan $((${#cases[@]} + 1))
two_hosts
check_cases_once
check "the devices go" hosts_clean
finish
