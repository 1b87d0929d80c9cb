#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=480 debug=long
# The pingpong programs of ibverbs-utils, polling and with events. Without --long, the
# debug kernel runs only ibv_xsrq_pingpong.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../../tools/lib/duo.sh"

n=200
[ -z "$SELFTEST_DEBUG" ] || n=20

# ibv_xsrq_pingpong: every client has to give the same number of iterations. It
# looks its server up by IPv4 only, whatever its GIDs are.
xsrq() { # CLIENTS ARGUMENT...
	local clients=$1 i more=
	shift
	for ((i = 1; i < clients; i++)); do
		more+="ibv_xsrq_pingpong -d x2 -g $GID2 $* 10.7.0.1 & "
	done
	duo 18515 60 "ibv_xsrq_pingpong -d x1 -g $GID1 -c $clients $*" \
		"$more ibv_xsrq_pingpong -d x2 -g $GID2 $* 10.7.0.1; rc=\$?; wait; exit \$rc"
}

if [ -n "$SELFTEST_DEBUG" ] && [ -z "$SELFTEST_LONG" ]; then
	plan 2
	hosts_up || die "no hosts"
	use_ip 4
	check xsrq xsrq 2 -n $n -s 4096
	check xsrq-events xsrq 2 -n $n -s 4096 -e
	finish
fi

plan 15
hosts_up || die "no hosts"
use_ip 4

# Those with events do what the others do, and more.
check_long rc pingpong ibv_rc_pingpong -n $n -c
check rc-events pingpong ibv_rc_pingpong -n $n -e -c
check rc-large pingpong ibv_rc_pingpong -n 20 -s 1000000 -c
check rc-new-send-api pingpong ibv_rc_pingpong -n $n -N
check uc pingpong ibv_uc_pingpong -n $n -c
check_long ud pingpong ibv_ud_pingpong -n $n -s 1024 -c
check ud-events pingpong ibv_ud_pingpong -n $n -s 1024 -e -c
check_long srq pingpong ibv_srq_pingpong -n $n -c
check srq-events pingpong ibv_srq_pingpong -n $n -e -c

if [ "$TYPE" = rxe ]; then
	for c in xsrq xsrq-events xsrq-clients xsrq-large; do skip $c "rxe has no XRC"; done
else
	check xsrq xsrq 1 -n $n -s 4096
	check xsrq-events xsrq 1 -n $n -s 4096 -e
	check xsrq-clients xsrq 4 -n $n -s 1024
	check_long xsrq-large xsrq 2 -n 10 -s 1000000
fi
# As the servers of rdma-core 56 and before do; IPV4_SERVERS says it of programs from elsewhere.
ipv4_servers() {
	local release
	[ -z "${IPV4_SERVERS:-}" ] || return 0
	# libibverbs.so.1.14.56.1
	release=$(readlink -f /usr/lib/*/libibverbs.so.1)
	release=${release#*.so.1.*.}
	[ "${release%%.*}" -le 56 ]
}
use_ip 6
if ipv4_servers; then
	skip rc-ipv6 "the server of this release listens at IPv4 only"
else
	check rc-ipv6 pingpong ibv_rc_pingpong -n $n -c
fi
if [ "$TYPE" = rxe ]; then
	skip xsrq-ipv6 "rxe has no XRC"
else
	check_long xsrq-ipv6 xsrq 2 -n $n
fi
finish
