#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=90 debug
# Memory that is revoked during traffic, in every possible way; within a device and on
# the wire.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/cases.sh"

[ "$TYPE" = xroce ] || skip_all "with rxe the memory may be touched later still"
list_cases revoked
plan $((2 * ${#cases[@]} + 1))
two_hosts
check_cases
check "the devices go" hosts_clean
finish
