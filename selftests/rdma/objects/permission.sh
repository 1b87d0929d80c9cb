#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=90 debug=long
# Calls that need CAP_NET_RAW, commands after a change of credentials, and the limits of
# a control group.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/cases.sh"

[ "$TYPE" = xroce ] || skip_all "the driver's parts of commands are xroce's"
list_cases permission
plan $((${#cases[@]} + 1))
two_hosts
check_cases_once
check "the devices go" hosts_clean
finish
