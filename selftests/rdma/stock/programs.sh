#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=480 debug=long
# Unmodified programs: qperf, the rest of rdmacm-utils, libfabric, and four ranks
# of Open MPI on two hosts. UCX is in ucx.sh.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../../tools/lib/duo.sh"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# qperf TEST...: over the connection manager, since without it qperf gives no GID,
# which all RoCE needs; so there is no UC and no UD.
# It says 0, whatever was moved, when the other end's clock shows no time between its
# start and its alarm (calc_results() in its qperf.c); not thrice in a row.
qp() {
	local test tries=$1
	shift
	duo 19765 40 qperf "qperf $ADDR1 -li x2 -ri x1 -cm1 -t 1 $* quit" || return
	for test; do
		grep -q "^$test:" <<<"$DUO_OUT" || { echo "no result of $test"; echo "$DUO_OUT"; return 1; }
	done
	grep -Eq '= *0 ' <<<"$DUO_OUT" || return 0
	echo "$DUO_OUT"
	[ "$tries" -gt 1 ] && qp $((tries - 1)) "$@"
}

# The receiver has joined when its kernel has.
mcast() {
	local group=239.7.7.7 rc=0
	for n in 1 2; do ip -n h$n route replace 239.0.0.0/8 dev e$n; done
	in_host h1 timeout $((60 * SELFTEST_SLOW)) mckey -m $group -b $ADDR1 -C 20 -S 512 >"$tmp/mckey" 2>&1 &
	local pid=$!
	joined() { in_host h1 ip maddr show dev e1 | grep -q $group; }
	until_true 10 joined || { echo "not joined"; rc=1; }
	# More than are waited for: the queue pair joins a moment after the host.
	in_host h2 timeout $((60 * SELFTEST_SLOW)) mckey -m $group -s -b $ADDR2 -C 200 -S 512 || rc=1
	wait $pid || rc=1
	cat "$tmp/mckey"
	return $rc
}

stream() { # PROGRAM ARGUMENT...
	local prog=$1
	shift
	duo cm 30 "$prog -b $ADDR1 $*" "$prog -s $ADDR1 $*"
}

copied() {
	head -c 3000000 /dev/urandom >"$tmp/from"
	duo cm 30 "rcopy & until [ -e $tmp/done ]; do sleep 0.02; done; kill %1" \
		"rcopy $tmp/from $ADDR1:$tmp/to; rc=\$?; touch $tmp/done; exit \$rc" && cmp "$tmp/from" "$tmp/to"
}

fabric() { # ARGUMENT...
	duo 47592 40 "fi_pingpong -d $1 ${*:3}" "fi_pingpong -d $2 ${*:3} $ADDR1"
}

# Ranks on two hosts, which differ in name, too. Open MPI starts the other host's
# daemon by what it takes for ssh. Each host is told its device: it sees both.
mpi() { # PROGRAM...
	cat >"$tmp/ssh" <<-'EOF'
		#!/bin/bash
		while [[ $1 = -* ]]; do shift; done
		shift
		exec ip netns exec h2 unshare --uts sh -c 'hostname h2; exec bash -c "$*"' - "$@"
	EOF
	cat >"$tmp/rank" <<-'EOF'
		#!/bin/bash
		FI_VERBS_DEVICE_NAME=x$(hostname | tr -d h) exec "$@"
	EOF
	chmod +x "$tmp/ssh" "$tmp/rank"
	in_host h1 unshare --uts sh -c 'hostname h1; exec "$@"' - timeout $((200 * SELFTEST_SLOW)) \
		mpirun --allow-run-as-root -np 4 --host $ADDR1:2,$ADDR2:2 --prtemca plm_ssh_agent "$tmp/ssh" \
		--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include 'verbs;ofi_rxm' "$tmp/rank" "$@" </dev/null
}

plan 10
hosts_up || die "no hosts"
use_ip 4
check qperf qp 3 rc_bw rc_lat rc_rdma_read_bw ver_rc_compare_swap
check mckey mcast
check cmtime duo 7199 40 "cmtime -p 7199 -L -b $ADDR1 -C $ADDR1 -c 10" "cmtime -p 7199 -b $ADDR2 -C $ADDR1 -c 10"
check rstream stream rstream -S 65536 -C 20 -T v
check riostream stream riostream -S 65536 -C 20 -T v
check rcopy copied
check fi-msg fabric x1 x2 -p verbs -e msg -I 20 -S 65536 -c
check fi-rdm fabric x1 x2 -p "'verbs;ofi_rxm'" -e rdm -I 20 -S 65536 -c
check fi-dgram fabric x1-dgram x2-dgram -p verbs -e dgram -I 20 -S 1024
cat >"$tmp/four.py" <<'EOF'
from mpi4py import MPI
comm = MPI.COMM_WORLD
me, size = comm.rank, comm.size
assert size == 4 and len(set(comm.allgather(MPI.Get_processor_name()))) == 2
for length in (1, 4000, 300000):
    mine = bytes([me]) * length
    got = comm.alltoall([mine + bytes([n]) for n in range(size)])
    assert got == [bytes([n]) * length + bytes([me]) for n in range(size)]
assert comm.allreduce(me) == 6
assert comm.bcast('word' if me == 2 else None, root=2) == 'word'
for turn in range(200):
    token = turn if me == 0 else comm.recv(source=me - 1)
    comm.send(token + 1, (me + 1) % size)
    assert me != 0 or comm.recv(source=size - 1) == turn + size
EOF
check mpi mpi python3 "$tmp/four.py"
finish
