#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=300 long
# The kernel's own test of RDS over RDMA (tools/testing/selftests/net/rds of linux-source, with
# -T rdma), unmodified, with what package xroce-as-rxe brings; on a good network, and on bad ones.
# TYPE=rxe: with the real rxe. Its library wants the package python3-yaml (tools/vm/run --packages).
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/as-rxe.sh"

dir=$kselftests/net/rds
users=(rds_rdma rds_tcp rds)
[ -e "$dir/rds_run.sh" ] || skip_all "linux-source has no $dir"
python3 -c 'import yaml' 2>/dev/null || skip_all "there is no python3-yaml"

# run OPTION...: what the test says, and whether it took the right driver.
run() {
	local rc=0 said
	# It ends itself. PYTHONPATH has modules of the names that its own have.
	said=$(env -u PYTHONPATH bash "$dir/rds_run.sh" -T rdma -t $((60 * SELFTEST_SLOW)) "$@" 2>&1) || rc=$?
	# It says each burst.
	grep -vE '^# (sending|receiving)\.\.\.' <<<"$said" || true
	right_module && [ -e "/sys/module/$(module_of "$TYPE")" ] && grep -qx "ok 1 rds selftest rdma" <<<"$said" || rc=1
	return $rc
}

plan 5
check in-place in_place
check "no loss" run
check "loss of 1 %" run -l 1
check "one packet of twenty twice" run -u 5
check as-before as_before "${users[@]}"
finish
