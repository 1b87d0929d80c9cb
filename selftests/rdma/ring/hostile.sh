#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=480 debug
# Garbage in the rings that user space shares with the kernel, written while the kernel
# reads them; within a device and on the wire.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

[ "$TYPE" = xroce ] || skip_all "the rings are xroce's"
# A round takes about 0.3 s in an emulated guest, 3 s on the debug kernel.
rounds=10 long=300
[ -z "${SELFTEST_DEBUG:-}" ] || rounds=3 long=100
[ -z "${SELFTEST_LONG:-}" ] || rounds=$long
seed=${SEED:-$((RANDOM << 15 | RANDOM))}

# garbage SEED DEVICE GID-INDEX...
garbage() { "$SELFTEST_BIN/selftest-hostile" $rounds "$@"; }

plan 6
load_module
hosts_up || die "no hosts"
g1=$(gid_index x1 10.7.0.1) g2=$(gid_index x2 10.7.0.2)
say "seed $seed (SEED=$seed repeats it)"
check_stock "garbage, a known seed" garbage 1 x1 "$g1"
check "garbage, a new seed" garbage "$seed" x1 "$g1"
check "garbage on the wire, a known seed" garbage 1 x1 "$g1" x2 "$g2"
check_stock "garbage on the wire, a new seed" garbage "$seed" x1 "$g1" x2 "$g2"
check "nothing is left" until_true 20 no_user_qps
check "the devices go" hosts_clean
finish
