# SPDX-License-Identifier: GPL-2.0
# Hosts, links and waiting, for programs in bash and (through net.py) Python. Sourced.
# A "host" is a network namespace h1 or h2. The hosts are joined by a veth pair e1 - e2
# with addresses 10.7.0.N/24 and fd07::N/64, and have RDMA devices x1 and x2 of the type
# in TYPE.

TYPE=${TYPE:-xroce}
SELFTEST_SLOW=${SELFTEST_SLOW:-1}

module_of() {
	case $1 in
	rxe) echo rdma_rxe ;;
	*) echo "$1" ;;
	esac
}

load_module() {
	local m
	for m in ib_uverbs rdma_ucm; do
		[ -e /sys/module/$m ] || modprobe -q $m
	done
	m=$(module_of "$TYPE")
	[ -e "/sys/module/$m" ] || modprobe "$m"
}

# nap: 20 ms. A process more, as sleep is, takes longer than that on the debug
# kernel; so this waits for a pipe into which nobody writes.
nap() {
	[ -n "${nap_fd-}" ] || exec {nap_fd}<> <(:)
	read -rt 0.02 -u "$nap_fd"
	:
}

# until_true SECONDS COMMAND...: try COMMAND until it succeeds. Time is
# stretched on the debug kernel.
until_true() {
	local end=$((SECONDS + $1 * SELFTEST_SLOW + 1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		nap
	done
}

# has_gid DEVICE ADDRESS: has it the RoCEv2 GID that ADDRESS (as 10.7.0.1 or
# fd07::1) gives? Its index is in $gid then.
has_gid() {
	local d=/sys/class/infiniband/$1/ports/1 want g got
	case $2 in
	*.*)
		local IFS=.
		set -- $2
		printf -v want '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' "$@"
		;;
	*)
		local head=${2%%::*} tail=${2##*::}
		printf -v want '%04x:0000:0000:0000:0000:0000:0000:%04x' "0x$head" "0x$tail"
		;;
	esac
	# The table is filled from its start: 32 entries are far more than ours.
	for g in "$d"/gids/{0..31}; do
		gid=${g##*/}
		read -r got <"$g" && [ "$got" = "$want" ] || continue
		read -r got <"$d/gid_attrs/types/$gid" || continue
		[ "$got" != "RoCE v2" ] || return 0
	done 2>/dev/null
	return 1
}

# gid_index DEVICE ADDRESS: print that index.
gid_index() {
	local gid
	has_gid "$@" && echo "$gid"
}

# wait_gid DEVICE ADDRESS...
wait_gid() {
	local dev=$1 a gid
	shift
	for a; do
		until_true 10 has_gid "$dev" "$a" || { echo "# $dev got no GID for $a" >&2; return 1; }
	done
}

# in_host HOST COMMAND...
in_host() {
	local h=$1
	shift
	case $1 in
	# They do not look at /sys, which `ip` would mount anew for them.
	rdma | tc | ss | ethtool) nsenter --net="/run/netns/$h" "$@" ;;
	*) ip netns exec "$h" "$@" ;;
	esac
}

# plain_link NETNS DEV: no segmentation or coalescing on the link, so that the
# queueing discipline sees single packets.
plain_link() { in_host "$1" ethtool -K "$2" tso off gso off gro off >/dev/null 2>&1; }

# hosts_net [MTU]: the two namespaces and their wire, without RDMA devices. In few
# processes, since starting one is what takes time on the debug kernel.
hosts_net() {
	local mtu=${1:-1500} n
	ip -batch - <<-END || return 1
		netns add h1
		netns add h2
		link add e1 netns h1 mtu $mtu type veth peer name e2 netns h2 mtu $mtu
	END
	# While the link-local address is being tried, for a second, no neighbour is found:
	# RDMA's questions have no source address of their own.
	for n in 1 2; do
		nsenter --net=/run/netns/h$n sh -ec "for dev in e$n default; do
				echo 0 >/proc/sys/net/ipv6/conf/\$dev/accept_dad
			done
			exec ip -batch -" <<-END || return 1
			link set lo up
			link set e$n up
			addr add 10.7.0.$n/24 dev e$n
			addr add fd07::$n/64 dev e$n nodad
		END
	done
}

add_link() { # HOST NAME NETDEV [TYPE]
	in_host "$1" rdma link add "$2" type "${4:-$TYPE}" netdev "$3"
}

# hosts_up [MTU] [TYPE1 [TYPE2]]: two hosts, each with its RDMA device.
hosts_up() {
	hosts_net "${1:-1500}" || return 1
	add_link h1 x1 e1 "${2:-$TYPE}" || return 1
	add_link h2 x2 e2 "${3:-${2:-$TYPE}}" || return 1
	wait_gid x1 10.7.0.1 fd07::1 && wait_gid x2 10.7.0.2 fd07::2
}

# vlan_up NAME ID PREFIX4 PREFIX6: VLAN ID on the wire, interfaces NAME1 and NAME2 with addresses
# PREFIX4.N/24 and PREFIX6::N/64.
vlan_up() {
	local n
	for n in 1 2; do
		ip -n h$n link add link e$n name "$1$n" type vlan id "$2" || return 1
		ip -n h$n link set "$1$n" up
		ip -n h$n addr add "$3.$n/24" dev "$1$n"
		ip -n h$n addr add "$4::$n/64" dev "$1$n" nodad
	done
}

# pair_up [MTU]: two devices y1, y2 over dummy net devices in this namespace.
pair_up() {
	local n
	for n in 1 2; do
		ip link add d$n mtu "${1:-1500}" type dummy || return 1
		ip link set d$n up
		ip addr add 10.8.0.$n/32 dev d$n
		ip addr add fd08::$n/128 dev d$n nodad
		rdma link add y$n type "$TYPE" netdev d$n || return 1
		wait_gid y$n 10.8.0.$n fd08::$n || return 1
	done
}

# kill_in NETNS: whoever is in it.
kill_in() {
	local p
	for p in /proc/[0-9]*; do
		[ ! "$p/ns/net" -ef "/run/netns/$1" ] || kill -KILL "${p#/proc/}"
	done 2>/dev/null
}

# Every device, namespace and link that a test of ours may have left.
hosts_clean() {
	local n dev rc=0 hosts= links=
	for dev in /sys/class/infiniband/[xyz][0-9]*; do
		[ ! -e "$dev" ] || rdma link del "${dev##*/}" || rc=1
	done
	for n in h1 h2 h3; do
		[ -e /run/netns/$n ] || continue
		kill_in $n
		hosts+="netns del $n"$'\n'
	done
	[ -z "$hosts" ] || ip -force -batch - <<<"$hosts" || rc=1
	for n in d1 d2 d3 e1 e2; do
		[ ! -e /sys/class/net/$n ] || links+="link del $n"$'\n'
	done
	# The second end of a pair goes with the first.
	[ -z "$links" ] || ip -force -batch - <<<"$links" 2>/dev/null
	# Namespaces go in the background; their devices must be gone too.
	until_true 20 no_devices || { echo "devices are left: $(ls /sys/class/infiniband)"; rc=1; }
	return $rc
}

# fresh_hosts: as hosts_up makes them. Making namespaces is most of the work on the
# debug kernel: hosts that still stand only get new devices.
fresh_hosts() {
	local n
	if ! { ip -n h1 link show e1 && ip -n h2 link show e2; } >/dev/null 2>&1; then
		hosts_clean && hosts_up
		return
	fi
	for n in 1 2; do
		gone x$n || rdma link del x$n || return 1
		add_link h$n x$n e$n || return 1
	done
	wait_gid x1 10.7.0.1 fd07::1 && wait_gid x2 10.7.0.2 fd07::2
}

# gone DEVICE: is there no such RDMA device?
gone() { [ ! -e "/sys/class/infiniband/$1" ]; }

# no_user_qps: are there no queue pairs but the kernel's own? One that outlived its
# process is shown without the process's name.
no_user_qps() { ! rdma res show qp | grep -qv 'type GSI'; }

no_devices() { ! compgen -G '/sys/class/infiniband/*' >/dev/null; }

# netem HOST DEV ARGUMENT...
netem() {
	local h=$1 d=$2
	shift 2
	[ -e /sys/module/sch_netem ] || modprobe -q sch_netem
	in_host "$h" tc qdisc replace dev "$d" root netem limit 100000 "$@"
}

# counter DEVICE NAME: one hw counter of port 1.
counter() { cat "/sys/class/infiniband/$1/ports/1/hw_counters/$2" 2>/dev/null; }

# listening HOST PORT: is there a TCP listener?
listening() { in_host "$1" ss -Hltn "sport = :$2" | grep -q .; }
wait_listen() { until_true 20 listening "$1" "$2"; }
