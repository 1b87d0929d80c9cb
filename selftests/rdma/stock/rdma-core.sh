#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=240
# rdma-core's own suite: its XRC tests, and all of it with --long.
. "$(dirname "$0")/../../lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

docs=/usr/share/doc/rdma-core/tests
[ -d $docs ] || skip_all "rdma-core's tests are not installed"
filter="-k xrc"
[ -z "$SELFTEST_LONG" ] || filter=

plan 1
hosts_up || die "no hosts"
dir=$(mktemp -d)
cp -r $docs "$dir/tests"
gunzip -q "$dir"/tests/*.gz
gid=$(gid_index x1 10.7.0.1)
# shellcheck disable=SC2086
(cd "$dir/tests" && in_host h1 timeout 220 python3 run_tests.py --dev x1 --gid "$gid" -v $filter) >"$dir/log" 2>&1
rc=$?
grep -E '\.\.\. |^Ran |^OK|^FAILED' "$dir/log" | sed 's/^/# /'
ran=$(sed -n 's/^Ran \([0-9]*\) .*/\1/p' "$dir/log")
skipped=$(sed -n 's/^OK (skipped=\([0-9]*\)).*/\1/p' "$dir/log")
if [ $rc = 0 ] && [ "$TYPE" != rxe ] && [ $((${ran:-0} - ${skipped:-0})) -lt 4 ]; then
	rc=1
	say "of ${ran:-0} tests ${skipped:-0} were skipped"
fi
if [ $rc = 0 ]; then
	ok suite
else
	tail -n 40 "$dir/log" | sed 's/^/# /'
	not_ok suite
fi
rm -rf "$dir"
finish
