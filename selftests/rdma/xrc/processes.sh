#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=180 debug xrc
# XRC between processes: creators that are killed, processes that come later, wrong
# SRQs, a small mesh; within a host and on the wire.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../lib/cases.sh"

list_cases xrc
plan $((2 * ${#cases[@]} + 1))
two_hosts
check_cases
check "the devices go" hosts_clean
finish
