#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=90 debug=only
# Memory runs out at each allocation of each verb (faults.c): the errno,
# that nothing is left behind, and that the verb works afterwards. Needs a kernel with
# fault injection.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

[ "$TYPE" = xroce ] || skip_all "the driver is xroce's"
[ -e /proc/self/fail-nth ] || skip_all "this kernel has no fault injection"

program=$SELFTEST_BIN/selftest-faults
# VERB: only those with that in their names.
mapfile -t verbs < <("$program" | grep -F -e "${VERB:-}")
[ ${#verbs[@]} -gt 0 ] || die "$program lists no verbs"

run() {
	ip link add d1 type dummy && ip link set d1 up || return 1
	"$program" x1 "$(gid_index x1 10.7.0.1)" x2 "$(gid_index x2 10.7.0.2)" d1 ${VERB:+"$VERB"} >"$work" 2>&1
}
# What is left of a device, or of an object, keeps its memory or the module.
unload() { hosts_clean && modprobe -r xroce; }

work=$(mktemp)
plan $((${#verbs[@]} + 3))
load_module
hosts_up || die "no hosts"
check "all verbs" run || grep -v '^done ' "$work" | sed 's/^/# /'
declare -A told
while IFS= read -r line; do
	line=${line#done }
	told[${line%%: *}]=${line#*: }
done < <(grep '^done ' "$work")
for verb in "${verbs[@]}"; do
	if [ -n "${told[$verb]:-}" ]; then
		ok "$verb # ${told[$verb]}"
	else
		not_ok "$verb"
	fi
done
rm -f "$work"
check "the devices go" hosts_clean
check "the module goes" unload
finish
