#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=60 debug=long
# Commands of a process whose device is gone.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/cases.sh"

[ "$TYPE" = xroce ] || skip_all "the driver's parts of commands are xroce's"

# once PROGRAM CASE: with the device there, as each case takes it away.
once() {
	"$1" "$2" x1 "$(gid_index x1 10.7.0.1)" && [ ! -e /sys/class/infiniband/x1 ] &&
		add_link h1 x1 e1 && wait_gid x1 10.7.0.1
}

list_cases removed
plan $((${#cases[@]} + 1))
two_hosts
for c in "${cases[@]}"; do
	read -r program name <<<"$c"
	check "$name" once "$program" "$name"
done
check "the devices go" hosts_clean
finish
