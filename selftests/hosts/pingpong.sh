#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs in each of two guests (tools/vm/run --hosts): a stock program between them. It gives its
# peer up after half a second without an answer, for which an emulated guest may stand still when
# the machine is busy; so there are three tries.
. "$(dirname "$0")/../../tools/lib/net.sh"
listens() { ss -Hltn "sport = :18515" | grep -q .; }
pingpong() { ibv_rc_pingpong -d "$DEVICE" -g "$GID" -n 200 -c "$@"; }
once() {
	if [ "$HOST" = 1 ]; then
		pingpong &
		until_true 30 listens && barrier "the server listens" || return
		wait $!
	else
		barrier "the server listens" && pingpong host1
	fi
}
for try in 1 2 3; do
	if once; then
		# An error says that the other host has failed.
		barrier "try $try was good" && exit
	else
		barrier "try $try failed"
	fi
done
exit 1
