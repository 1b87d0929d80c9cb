#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs in each of two guests (tools/vm/run --hosts): stock programs between them, over RC and XRC.
# They give their peer up after half a second without an answer, for which an emulated guest may
# stand still when the machine is busy; so there are three tries.
. "$(dirname "$0")/../../tools/lib/net.sh"
listens() { ss -Hltn "sport = :18515" | grep -q .; }
once() { # PROGRAM ARGUMENT...
	if [ "$HOST" = 1 ]; then
		"$@" &
		until_true 30 listens && barrier "the server listens" || return
		wait $!
	else
		barrier "the server listens" && "$@" host1
	fi
}
tries() {
	local try
	for try in 1 2 3; do
		if once "$@"; then
			# An error says that the other host has failed.
			barrier "try $try of $1 was good" && return
		else
			barrier "try $try of $1 failed"
		fi
	done
	return 1
}
echo "this is an $(uname -m)"
tries ibv_rc_pingpong -d "$DEVICE" -g "$GID" -n 200 -c && tries ibv_xsrq_pingpong -d "$DEVICE" -g "$GID" -n 200
