#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=960 debug=long
# rdma-core's own suite: its tests of XRC, memory, shared receive and completion queues,
# devices and extended queue pairs; with --long, all of its tests. None may fail, and
# those of rdma-core.list must be run and pass. The documentation says which tests are
# skipped, and why.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

docs=${RDMA_CORE_TESTS:-/usr/share/doc/rdma-core/tests}
[ -d $docs ] || skip_all "rdma-core's tests are not installed"
words="xrc test_mr test_odp test_srq parent_domain shared_pd DMTest test_cq qpex test_device"
limit=$((900 * SELFTEST_SLOW))
[ -z "$SELFTEST_LONG" ] || words= limit=$((limit * 3))
# It starts processes that inherit what they use, which Python no longer does
# unless it is told to. The names of tests that pass go into a file.
start='import multiprocessing, os, runpy, sys, unittest
multiprocessing.set_start_method("fork")
passed = open(os.environ["PASSED"], "w", buffering=1)
known = unittest.TextTestResult.addSuccess
def success(self, test):
    print(test.id(), file=passed)
    known(self, test)
unittest.TextTestResult.addSuccess = success
sys.argv[0] = "run_tests.py"
runpy.run_path("./run_tests.py", run_name="__main__")'
list=$(realpath "$(dirname "$0")")/rdma-core.list

# Of the list, what is to be run, and is in this version of rdma-core.
wanted() {
	local t
	grep -v '^#' "$list" | grep -F "$(tr ' ' '\n' <<<"$words")" | while read -r t; do
		grep -q "def ${t##*.}(" "$dir/tests/"*.py && echo "$t" || echo "not in this version: $t" >&2
	done
}

# All of it but for what is skipped.
suite() {
	local w filter=() missing rc
	for w in $words; do filter+=(-k "$w"); done
	(cd "$dir/tests" && PASSED=$dir/passed in_host h1 timeout $limit python3 -c "$start" --dev x1 --gid "$gid" -v \
		"${filter[@]}") >"$dir/log" 2>&1
	rc=$?
	grep -E '\.\.\. |^Ran |^OK|^FAILED' "$dir/log" | sed 's/^/# /'
	[ $rc = 0 ] || { tail -n 40 "$dir/log" | sed 's/^/# /'; return 1; }
	[ "$TYPE" != rxe ] || return 0
	missing=$(wanted | sort | comm -23 - <(sort "$dir/passed"))
	[ -z "$missing" ] || { sed 's/^/# did not pass: /' <<<"$missing"; return 1; }
	[ -s "$dir/passed" ] && wanted 2>/dev/null | grep -q .
}

plan 1
hosts_up || die "no hosts"
pages=$(cat /proc/sys/vm/nr_hugepages)
echo 64 >/proc/sys/vm/nr_hugepages
dir=$(mktemp -d)
cp -r $docs "$dir/tests"
gunzip -q "$dir"/tests/*.gz
gid=$(gid_index x1 10.7.0.1)
if suite; then ok suite; else not_ok suite; fi
echo "$pages" >/proc/sys/vm/nr_hugepages
# What passed, for the list.
[ -z "${PASSED_TO:-}" ] || sort "$dir/passed" >"$PASSED_TO"
rm -rf "$dir"
finish
