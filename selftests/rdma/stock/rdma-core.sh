#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=480 debug=long
# rdma-core's own suite: its tests of XRC, memory, shared receive and completion
# queues, devices and extended queue pairs, and all of it with --long. What is
# skipped, and why, is in the documentation.
. "$(dirname "$0")/../../lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

docs=/usr/share/doc/rdma-core/tests
[ -d $docs ] || skip_all "rdma-core's tests are not installed"
filter="-k xrc -k test_mr -k test_odp -k test_srq -k parent_domain -k shared_pd -k DMTest"
filter+=" -k test_cq -k qpex -k test_device"
least=119
[ -z "$SELFTEST_LONG" ] || filter='' least=165
# It starts processes that inherit what they use, which Python no longer does
# unless it is told to.
start='import multiprocessing, runpy, sys
multiprocessing.set_start_method("fork")
sys.argv[0] = "run_tests.py"
runpy.run_path("./run_tests.py", run_name="__main__")'

plan 1
hosts_up || die "no hosts"
pages=$(cat /proc/sys/vm/nr_hugepages)
echo 64 >/proc/sys/vm/nr_hugepages
dir=$(mktemp -d)
cp -r $docs "$dir/tests"
gunzip -q "$dir"/tests/*.gz
gid=$(gid_index x1 10.7.0.1)
# shellcheck disable=SC2086
(cd "$dir/tests" && in_host h1 timeout $((460 * SELFTEST_SLOW)) python3 -c "$start" --dev x1 --gid "$gid" -v $filter) >"$dir/log" 2>&1
rc=$?
grep -E '\.\.\. |^Ran |^OK|^FAILED' "$dir/log" | sed 's/^/# /'
ran=$(sed -n 's/^Ran \([0-9]*\) .*/\1/p' "$dir/log")
skipped=$(sed -n 's/^OK (skipped=\([0-9]*\)).*/\1/p' "$dir/log")
if [ $rc = 0 ] && [ "$TYPE" != rxe ] && [ $((${ran:-0} - ${skipped:-0})) -lt $least ]; then
	rc=1
	say "of ${ran:-0} tests ${skipped:-0} were skipped"
fi
if [ $rc = 0 ]; then
	ok suite
else
	tail -n 40 "$dir/log" | sed 's/^/# /'
	not_ok suite
fi
echo "$pages" >/proc/sys/vm/nr_hugepages
rm -rf "$dir"
finish
