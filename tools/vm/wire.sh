# SPDX-License-Identifier: GPL-2.0
# The wire of several guests: a virtual Ethernet without anything of the machine's own
# network. Sourced after lib.sh.
#
#   wire_check SPEC        print what is wrong and return 1 if SPEC is no words of netem's
#   wire_open DIR N        the wire of N guests; its sockets are in DIR
#   wire_nic I MTU         arguments for the QEMU of guest I, whose binds must have DIR as
#                          /vmwire: its network card
#   wire_close             what it said is in DIR/said
#
# tools/vm/hosts/switch, in the build root, is all of it.

wire_check() {
	local said rc=0 words
	read -ra words <<<"$1"
	# tc looks at the words before the kernel does; whether this machine's own kernel has
	# netem does not matter. Its status is 2 for what the kernel says.
	said=$(in_root unshare --net tc qdisc add dev lo root netem "${words[@]}" 2>&1) || rc=$?
	case $rc in
	0 | 2) ;;
	*) sed -n 1p <<<"$said"; return 1 ;;
	esac
}

wire_pid=
wire_open() {
	local ready
	mkfifo "$1/ready"
	binds=("$1:/vmwire")
	in_root python3 /xroce/tools/vm/hosts/switch /vmwire "$2" </dev/null >"$1/ready" 2>"$1/said" &
	wire_pid=$!
	binds=()
	read -r ready <"$1/ready" || die "no wire: $(cat "$1/said")"
}

wire_close() {
	[ -z "$wire_pid" ] || { disown "$wire_pid"; kill -KILL "$wire_pid"; } 2>/dev/null || true
	wire_pid=
}

wire_nic() {
	printf '%s\n' -netdev "stream,id=wire,server=off,addr.type=unix,addr.path=/vmwire/host$1" \
		-device "virtio-net-pci,netdev=wire,mac=52:54:00:78:72:0$1,host_mtu=$2,romfile="
}
