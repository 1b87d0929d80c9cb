#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=120 debug=long
# Invalid slots and impossible indices in the rings of queue pairs and shared receive
# queues, one by one: the effect on the queue, and on the other queues.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/cases.sh"

[ "$TYPE" = xroce ] || skip_all "the rings are xroce's"
list_cases slots
plan $((2 * ${#cases[@]} + 2))
two_hosts
check_cases
check "nothing is left" until_true 20 no_user_qps
check "the devices go" hosts_clean
finish
