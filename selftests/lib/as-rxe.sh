# SPDX-License-Identifier: GPL-2.0
# For tests that run scripts of the kernel's source which have the name rxe in them: with what
# package xroce-as-rxe brings, or for TYPE=rxe with the real rxe. Sourced after net.sh and ktap.sh.

kselftests=/kernel/stock/tools/testing/selftests
as_rxe_conf=/etc/modprobe.d/xroce-as-rxe.conf

# out [MODULE...]: neither driver is loaded any more, nor these users of theirs.
out() { rmmod "$@" xroce; rmmod rdma_rxe; } 2>/dev/null

# in_place: modprobe rdma_rxe loads the driver of TYPE, and none is loaded yet.
in_place() {
	hosts_clean
	out
	[ "$TYPE" = rxe ] || cp "${BASH_SOURCE[0]%/*}/../../tools/system/xroce-as-rxe.conf" $as_rxe_conf || return
	modprobe rdma_rxe && [ -e "/sys/module/$(module_of "$TYPE")" ] && right_module && rmmod "$(module_of "$TYPE")"
}

# right_module: only that of TYPE is there, if any is.
right_module() {
	[ ! -e "/sys/module/$([ "$TYPE" = rxe ] && echo xroce || echo rdma_rxe)" ] || { echo "the wrong module"; return 1; }
}

# as_before [MODULE...]: without these users, the driver is the one that other tests want.
as_before() {
	rm -f $as_rxe_conf
	out "$@"
	load_module && [ -e "/sys/module/$(module_of "$TYPE")" ]
}
