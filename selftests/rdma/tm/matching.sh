#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=180 debug
# Tag matching, within a device and on the wire, and rdma-core's tests of it.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/cases.sh"

[ "$TYPE" = xroce ] || skip_all "only xroce matches tags"
docs=/usr/share/doc/rdma-core/tests

list_cases tags rendezvous
plan $((2 * ${#cases[@]} + 2))
two_hosts
check_cases

# All four must run: a device that lost the capability has them skipped.
suite() {
	local dir out rc
	dir=$(mktemp -d)
	cp -r "$docs" "$dir/tests" && gunzip -q "$dir"/tests/*.gz
	out=$(cd "$dir/tests" && in_host h1 python3 run_tests.py --dev x1 --gid "$g1" -v -k test_tag_matching 2>&1)
	rc=$?
	rm -rf "$dir"
	[ $rc = 0 ] && grep -q '^Ran 4 tests' <<<"$out" && grep -qx OK <<<"$out" && return 0
	tail -n 30 <<<"$out"
	return 1
}

if [ -d $docs ]; then
	check_stock "rdma-core's tests" suite
else
	skip "rdma-core's tests" "not installed"
fi
check "the devices go" hosts_clean
finish
