#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs in each of two guests (tools/vm/run --hosts): what a host finds, and barriers that cannot
# be met. Host 2 ends first, with status 7.
echo "host $HOST of $HOSTS: $(nproc) CPUs, $TYPE, $DEVICE, MTU $(cat /sys/class/net/eth0/mtu)"
other=$((3 - HOST))
for v in 4 6; do ping -$v -c 1 -w 20 "host$other" >/dev/null && echo "IPv$v: host$other answers"; done
barrier together && echo "together"
kill-host 3
if [ "$HOST" = 1 ]; then
	on-host 2 sh -c 'printf "by host1, on $(hostname): $HOST, $DEVICE, $(pwd)\n"; echo "complaint of host$HOST" >&2; exit 9'
	echo "it ended with $?"
	on-host host2 sh -c 'kill -TERM $$'; echo "it ended with $?, too"
	on-host 2 no-such-command; echo "that with $?"
	on-host 3 true; echo "no host: $?"
	on-host 2 cat /bin/bash | cmp - /bin/bash && echo "it sends what it has"
fi
barrier "place $HOST"
[ "$HOST" = 1 ] || exit 7
barrier "what is left"
exit 5
