#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=240 debug=long xrc
# The measurement of tools/bench/scale with few connections: everything is created,
# counted and ended by kill -9, and nothing is left; the reported amounts of memory are
# plausible.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

bench=$(dirname "$0")/../../../tools/bench/scale
[ -x "$bench" ] || skip_all "no tools/bench here"
json=$(mktemp)
trap 'rm -f "$json"' EXIT

# holds EXPRESSION: true of the figures d, in Python.
holds() {
	python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert eval(sys.argv[2]), d' "$json" "$1"
}

plan 8
check "many processes make, connect and die" \
	"$bench" --clients 8 --servers 8 --many 64 --processes 3 --json "$json" || exit 1
check "XRC: the kernel counts what was made" holds \
	'd["xrc"]["qps"] == 16 and d["xrc"]["shown"] == {"ctx": 16, "qp": 16, "srq": 8}'
check "RC: the kernel counts what was made" holds \
	'd["rc"]["qps"] == 128 and d["rc"]["shown"] == {"ctx": 16, "qp": 128, "srq": 8}'
check "many: the kernel counts what was made" holds \
	'd["many"]["qps"] == 128 and d["many"]["shown"] == {"ctx": 128, "qp": 128, "srq": 64}'
check "XRC takes less than RC" holds 'd["xrc"]["bytes"] < d["rc"]["bytes"]'
# What is measured is right to some tens of KiB, which is much for one of few objects.
check "a QP with a queue takes memory" holds \
	'd["rc"]["bytes_each"]["RC QP"] > 4096 and d["many"]["bytes_each"]["initiator QP"] > 4096'
check "the memory comes back" holds 'd["many"]["left"] < d["many"]["bytes"] / 4'
check "the estimate is that of a large machine" holds \
	'd["estimate"]["rc_qps"] == 10**8 and 10 * d["estimate"]["xrc_bytes"] < d["estimate"]["rc_bytes"]'
finish
