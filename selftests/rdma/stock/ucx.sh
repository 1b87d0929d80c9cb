#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=600
# UCX over verbs: ucx_perftest's tests of the transports rc_verbs and ud_verbs and of
# the layers on top of them, and io_demo, which connects through the connection manager
# and checks the data. Debian's UCX 1.23 has no verbs transports; this one is Debian
# 13's (tools/vm/packages.trixie).
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../../tools/lib/duo.sh"

ucx=/opt/trixie/usr
[ -x $ucx/bin/ucx_perftest ] || skip_all "no UCX with verbs in /opt/trixie"
export LD_LIBRARY_PATH=$ucx/lib/x86_64-linux-gnu PATH=$ucx/bin:$PATH
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# batch SETTINGS TEST...: of ucx_perftest, a line each: a name and options, in which
# %n is the host's number. One that fails or is not supported gives no result, and the
# program says so in no other way. (With a terminal as its input it does not take
# itself for a rank of MPI.)
batch() {
	local settings=$1 n
	shift
	for n in 1 2; do printf '%s\n' "${@//%n/$n}" >"$tmp/batch$n"; done
	duo 13337 60 "$settings UCX_IB_GID_INDEX=$GID1 UCX_NET_DEVICES=x1:1 ucx_perftest -w 5 -b $tmp/batch1 -f -v </dev/ptmx" \
		"$settings UCX_IB_GID_INDEX=$GID2 UCX_NET_DEVICES=x2:1 ucx_perftest -w 5 -b $tmp/batch2 -f -v 10.7.0.1 </dev/ptmx" || return
	for n; do
		grep -Eq "^${n%% *}, *[1-9][0-9]*," <<<"$DUO_OUT" || { echo "no result of $n"; echo "$DUO_OUT"; return 1; }
	done
}

# No verbs device has an atomic swap.
tests=(
	"am-short -t am_lat -D short -s 8 -n 50"
	"am-iov -t am_lat -D shortiov -s 16,48 -n 50"
	"am-copy -t am_bw -D bcopy -s 1000 -n 100"
	"am-zero-copy -t am_bw -D zcopy -s 1000 -n 100"
	"put-short -t put_lat -D short -s 8 -n 50"
	"put-copy -t put_bw -D bcopy -s 4000 -n 100"
	"put-zero-copy -t put_bw -D zcopy -s 65536 -n 50"
	"get-copy -t get -D bcopy -s 4000 -n 50"
	"get-zero-copy -t get_bw -D zcopy -s 65536 -n 50"
	"add -t add_lat -s 8 -n 50"
	"fadd -t fadd -s 8 -n 50"
	"cswap -t cswap -s 8 -n 50"
)
tests=("${tests[@]/%/ -x rc_verbs -d x%n:1}")

# Datagrams carry messages only.
datagrams=(
	"am-short -t am_lat -D short -s 8 -n 50"
	"am-iov -t am_lat -D shortiov -s 16,48 -n 50"
	"am-copy -t am_bw -D bcopy -s 1000 -n 100"
	"am-zero-copy -t am_bw -D zcopy -s 1000 -n 100"
)
datagrams=("${datagrams[@]/%/ -x ud_verbs -d x%n:1}")

# UCP, which makes everything of what the transport has.
messages=(
	"tag-8 -t tag_lat -s 8 -n 50"
	"tag-100k -t tag_bw -s 100000 -n 20"
	"stream -t stream_bw -s 3000 -n 50"
	"active-message -t ucp_am_bw -s 3000 -n 50"
	"write -t ucp_put_bw -s 5000 -n 50"
	"read -t ucp_get -s 5000 -n 20"
	"add -t ucp_add -s 8 -n 20"
)

# The server has no end of its own. -q: both ends check each byte and the order.
demo() { # SETTINGS
	duo cm 150 "$1 UCX_NET_DEVICES=x1:1 io_demo -q -A -b 8 -d 1:200000 & until [ -e $tmp/done ]; do sleep 0.02; done; kill %1" \
		"$1 UCX_NET_DEVICES=x2:1 io_demo -q -A -b 8 -d 1:200000 -o read,write -i 100 -w 8 $ADDR1; rc=\$?; touch $tmp/done; exit \$rc" ||
		return
	rm -f "$tmp/done"
	! grep -E 'ERROR|[Cc]orrupt|assert' <<<"$DUO_OUT"
}

# rxe's completions do not tell datagrams over IPv4 from those over IPv6.
[ "$TYPE" != rxe ] || export UCX_UD_VERBS_ETH_DGID_CHECK=n

plan 10
hosts_up || die "no hosts"
# A test takes seconds, most of which UCX needs to start.
for v in 4 6; do
	use_ip $v
	how=check
	[ $v = 4 ] || how=check_long
	$how rc-verbs-ipv$v batch "" "${tests[@]}"
	check ud-verbs-ipv$v batch "" "${datagrams[@]}"
	$how messages-ud-ipv$v batch UCX_TLS=ud_verbs,self "${messages[@]}"
	# Without a connection manager, datagrams set connections up.
	$how messages-rc-ipv$v batch UCX_TLS=rc_v,self "${messages[@]:0:2}"
done
use_ip 4
check demo-rc demo UCX_TLS=rc_verbs
check_long demo-ud demo UCX_TLS=ud_verbs
finish
