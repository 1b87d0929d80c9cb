#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=150 debug=long xrc
# libfabric's verbs provider over XRC, under its datagram layer. The connection manager
# makes connections in both directions; a connection to a second process of the domain
# asks this process to open the target QP by its number. preload/xrcfabric.c explains
# what selftest-xrcfabric.so corrects; RC, in programs.sh, does not need it.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../../tools/lib/duo.sh"

command -v fi_pingpong >/dev/null || skip_all "libfabric is not installed"
# XRC receives are shared: the datagram layer has to ask for that.
xrc="FI_VERBS_PREFER_XRC=1 FI_OFI_RXM_USE_SRX=1 FI_LOG_LEVEL=warn LD_PRELOAD=$SELFTEST_BIN/selftest-xrcfabric.so"
# As it is, it cannot.
plain=${xrc% LD_PRELOAD=*}
dir=$(mktemp -d)
pids=()
bye() { kill -KILL "${pids[@]}" 2>/dev/null; rm -rf "$dir"; }
trap bye EXIT

# count DEVICE TYPE: its queue pairs of that type.
count() { rdma res show qp link "$1/1" | grep -c "type $2 "; }
shown() { [ "$(count "$1" "$2")" = "$3" ]; }

# pingpong ARGUMENT...: between the hosts.
pingpong() {
	local watcher rc=0
	until_true 30 shown x1 XRC_TGT 1 &
	watcher=$!
	duo 47592 40 "$xrc FI_VERBS_DEVICE_NAME=x1 fi_pingpong -p 'verbs;ofi_rxm' -e rdm -d x1-xrc $*" \
		"$xrc FI_VERBS_DEVICE_NAME=x2 fi_pingpong -p 'verbs;ofi_rxm' -e rdm -d x2-xrc $* 10.7.0.1" || rc=1
	wait $watcher || { echo "no XRC target was seen"; rc=1; }
	return $rc
}

# unmended: without the library to preload, the client says what the user guide says
# that it does. If it says so no more, libfabric was mended: look whether the library
# is still needed.
says_so() { grep -q 'rdma_create_qp_ex failed 22' "$dir/client"; }
unmended() {
	local pids=() rc=0
	ip netns exec h1 env $plain FI_VERBS_DEVICE_NAME=x1 \
		fi_pingpong -p 'verbs;ofi_rxm' -e rdm -d x1-xrc -I 5 -S 64 >"$dir/server" 2>&1 &
	pids[0]=$!
	until_true 20 listening h1 47592 || rc=1
	ip netns exec h2 env $plain FI_VERBS_DEVICE_NAME=x2 \
		fi_pingpong -p 'verbs;ofi_rxm' -e rdm -d x2-xrc -I 5 -S 64 10.7.0.1 >"$dir/client" 2>&1 &
	pids[1]=$!
	until_true 20 says_so || rc=1
	kill -KILL "${pids[@]}"
	wait "${pids[@]}"
	[ $rc = 0 ] || cat "$dir/server" "$dir/client"
	return $rc
}

# step NAME COMMAND...: as check, but in this shell, whose children live on.
step() {
	local name=$1
	shift
	if "$@" >"$dir/log" 2>&1; then
		ok "$name"
	else
		tail -n 25 "$dir/log" | sed 's/^/# /'
		not_ok "$name"
	fi
}
names() { [ "$(cat "$dir"/name? | grep -c name)" = 2 ]; }
answers() { [ "$(grep -c answered "$dir/out")" = "$1" ]; }
failed() { cat "$dir"/name? "$dir/out" "$dir/err"; rdma res show qp; return 1; }

# Two processes of a domain on one host, asked by one on the other.
shared() {
	local n
	for n in 1 2; do
		ip netns exec h1 env $xrc FI_VERBS_DEVICE_NAME=x1 FI_VERBS_XRCD_FILENAME="$dir/domain" \
			"$SELFTEST_BIN/selftest-fabric" serve x1-xrc 10.7.0.1 >"$dir/name$n" 2>>"$dir/err" &
		pids[n]=$!
	done
	until_true 20 names || failed || return
	mkfifo "$dir/in"
	ip netns exec h2 env $xrc FI_VERBS_DEVICE_NAME=x2 "$SELFTEST_BIN/selftest-fabric" ask x2-xrc 10.7.0.2 \
		$(sed -n 's/^name //p' "$dir/name1" "$dir/name2") <"$dir/in" >"$dir/out" 2>>"$dir/err" &
	pids[3]=$!
	exec 7>"$dir/in"
	until_true 20 answers 2 || failed || return
	# One target serves both, so the second has opened it.
	shown x1 XRC_TGT 1 && shown x2 XRC_INI 1 || failed
}

# The process that made the target is killed: the other still has it.
survives() {
	kill -KILL "${pids[1]}"
	wait "${pids[1]}"
	echo 1 >&7
	until_true 20 answers 3 && shown x1 XRC_TGT 1 || failed
}

ends() {
	exec 7>&-
	wait "${pids[3]}" || failed || return
	kill -KILL "${pids[2]}"
	wait "${pids[2]}"
	until_true 10 shown x1 XRC_TGT 0 && until_true 10 shown x2 XRC_TGT 0 || failed
}

rounds=30
[ -z "$SELFTEST_DEBUG" ] || rounds=5
short=
[ -z "$SELFTEST_DEBUG" ] || [ -n "$SELFTEST_LONG" ] || short=1
if [ "$short" ]; then plan 2; else plan 6; fi
load_module
hosts_up || die "no hosts"
check "ping-pong" pingpong -I $rounds -S 65536 -c
if [ -z "$short" ]; then
	check "without what is mended" unmended
	step "a target opened by number" shared
	step "its maker is killed" survives
	step "all end" ends
fi
check "the devices go" hosts_clean
finish
