# SPDX-License-Identifier: GPL-2.0
# Runs a stock program's server on host h1 and its client on h2. Sourced after net.sh,
# after hosts_up.

# rping that ends even if it misses its own end.
rping=$(realpath "${BASH_SOURCE[0]%/*}")/rping

# The GID indices and addresses that the programs are given.
use_ip() { # 4|6
	case $1 in
	4) ADDR1=10.7.0.1 ADDR2=10.7.0.2 ;;
	6) ADDR1=fd07::1 ADDR2=fd07::2 ;;
	esac
	GID1=$(gid_index x1 $ADDR1) && GID2=$(gid_index x2 $ADDR2)
}

# cm_listening DEVICE: does a connection manager listen somewhere?
cm_listening() { rdma res show cm_id 2>/dev/null | grep -q 'state LISTEN'; }

# duo READY SECONDS SERVER-COMMAND CLIENT-COMMAND: READY is a TCP port that the
# server listens at, or "cm". Both must end well.
duo() {
	local ready=$1 limit=$(($2 * SELFTEST_SLOW)) server=$3 client=$4 d spid rc=0
	d=$(mktemp -d)
	in_host h1 timeout -k 5 $limit bash -c "$server" >"$d/server" 2>&1 </dev/null &
	spid=$!
	if [ "$ready" = cm ]; then
		until_true 20 cm_listening || rc=1
	else
		wait_listen h1 "$ready" || rc=1
	fi
	if [ $rc = 0 ]; then
		in_host h2 timeout -k 5 $limit bash -c "$client" >"$d/client" 2>&1 </dev/null || rc=$?
	fi
	[ $rc = 0 ] || kill $spid 2>/dev/null
	wait $spid || [ $rc != 0 ] || rc=$((100 + $?))
	if [ $rc != 0 ]; then
		echo "status $rc (124: timeout; 100+n: the server's n)"
		echo "server: $server"
		tail -n 12 "$d/server"
		echo "client: $client"
		tail -n 12 "$d/client"
	fi
	DUO_OUT=$(cat "$d/server" "$d/client")
	rm -rf "$d"
	return $rc
}

# pingpong PROGRAM ARGUMENT...
pingpong() {
	local prog=$1
	shift
	duo 18515 40 "$prog -d x1 -g $GID1 $*" "$prog -d x2 -g $GID2 $* $ADDR1"
}

# perf PROGRAM ARGUMENT...
perf() {
	local prog=$1
	shift
	# Parameters are exchanged over IPv4, whatever the traffic uses.
	duo 18515 150 "$prog -d x1 -x $GID1 -F $*" "$prog -d x2 -x $GID2 -F $* 10.7.0.1"
}
