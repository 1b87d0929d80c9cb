#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=180 debug
# Garbage in the rings that user space shares with the kernel.
. "$(dirname "$0")/../../lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

[ "$TYPE" = xroce ] || skip_all "the rings are xroce's"
rounds=60
[ "$SELFTEST_SLOW" = 1 ] || rounds=12
[ -z "$SELFTEST_LONG" ] || rounds=2000
seed=${SEED:-$((RANDOM << 15 | RANDOM))}

garbage() { "$SELFTEST_BIN/selftest-hostile" x1 "$(gid_index x1 10.7.0.1)" $rounds "$1"; }

plan 4
load_module
hosts_up || die "no hosts"
say "seed $seed (SEED=$seed repeats it)"
check "garbage, a known seed" garbage 1
check "garbage, a new seed" garbage "$seed"
check "nothing is left" until_true 20 no_user_qps
check "the devices go" hosts_clean
finish
