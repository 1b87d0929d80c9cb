#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=360 debug=long xrc
# The measurement of tools/bench/scale with few connections: everything is created,
# counted and ended by kill -9, and nothing is left; the reported amounts of memory are
# plausible.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

bench=$(dirname "$0")/../../../tools/bench/scale
[ -x "$bench" ] || skip_all "no tools/bench here"
json=$(mktemp)
trap 'rm -f "$json"' EXIT

# holds EXPRESSION: true, in Python, of the figures: WHO(CLIENTS, WHAT), where WHO is rc or xrc and
# CLIENTS is 0 for the estimate.
holds() {
	python3 -B -c '
import sys
sys.path.insert(0, sys.argv[3])
import figures
rows = figures.load(sys.argv[1])[1]
def one(who, clients, what):
    start = f"{clients} clients " if clients else "estimate"
    got, = (v[who] for k, v in rows.items() if k.group.startswith(start) and k.what == what and who in v)
    return got[0]
rc = lambda *of: one("xroce", *of)
xrc = lambda *of: one("xroce-xrc", *of)
shown = lambda kind, clients: [kind(clients, "rdma resource show: " + what) for what in ("ctx", "qp", "srq")]
total = "kernel memory beyond the open devices"
assert eval(sys.argv[2]), rows' "$json" "$1" "${bench%/*}"
}

plan 8
check "many processes make, connect and die" \
	"$bench" --clients 8 --servers 8 --many 96 --processes 3 --json "$json" || exit 1
check "XRC: the kernel counts what was made" holds \
	'xrc(8, "queue pairs") == 16 and shown(xrc, 8) == [16, 16, 8]'
check "RC: the kernel counts what was made" holds \
	'rc(8, "queue pairs") == 128 and shown(rc, 8) == [16, 128, 8]'
check "many: the kernel counts what was made" holds \
	'xrc(96, "queue pairs") == 192 and shown(xrc, 96) == [192, 192, 96]'
check "XRC takes less than RC" holds 'xrc(8, total) < rc(8, total)'
# What is measured is right to some tens of KiB, which is much for one of few objects.
check "a QP with a queue takes memory" holds \
	'rc(8, "RC QP: kernel memory") > 4096 and xrc(96, "initiator QP: kernel memory") > 4096'
check "the memory comes back" holds 'xrc(96, "not returned") < xrc(96, total) / 4'
check "the estimate is that of a large machine" holds \
	'rc(0, "queue pairs") == 10**8 and 10 * xrc(0, "kernel memory") < rc(0, "kernel memory")'
finish
