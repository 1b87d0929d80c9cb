#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs in each of two guests (tools/vm/run --hosts): a stock program between them.
. "$(dirname "$0")/../../tools/lib/net.sh"
listens() { ss -Hltn "sport = :18515" | grep -q .; }
pingpong() { ibv_rc_pingpong -d "$DEVICE" -g "$GID" -n 200 -c "$@"; }
if [ "$HOST" = 1 ]; then
	pingpong &
	until_true 30 listens && barrier "the server listens" || exit
	wait $!
else
	barrier "the server listens" && pingpong host1
fi
