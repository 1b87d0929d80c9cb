#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# containers.sh DIRECTORY SUITE...: the part of tools/vm/check-containers that runs in the guest.
# DIRECTORY has a root for each SUITE, and the plug-in for all of them in xroce.
set -uo pipefail
cd "$(dirname "$0")" || exit 2
share=$1
shift
bin=$(mktemp -d)
export CONTAINER CONTAINERS=$share
passed=0 failed=0

# Stands for each program: it runs in the container, with the device, the network namespace and
# /tmp of who calls it.
cat >"$bin/inside" <<'END'
#!/bin/bash
to=$CONTAINERS/$CONTAINER
exec unshare --mount bash -ec '
	mount --rbind /sys "$1/sys"; mount --rbind /dev "$1/dev"; mount --rbind /proc "$1/proc"
	mount --bind /tmp "$1/tmp"; mount --bind "$CONTAINERS/xroce" "$1/opt/xroce"
	root=$1 there=$PWD
	shift
	[ -d "$root$there" ] || there=/
	exec chroot "$root" env -C "$there" PATH=/usr/sbin:/usr/bin "$@"' inside "$to" "${0##*/}" "$@"
END
chmod +x "$bin/inside"
for p in ibv_devinfo ibv_{rc,uc,ud,srq,xsrq}_pingpong python3; do ln -s inside "$bin/$p"; done

result() { # NAME STATUS
	if [ "$2" = 0 ]; then passed=$((passed + 1)) && echo "ok $1"; else failed=$((failed + 1)) && echo "not ok $1"; fi
}

# tests NAME PATTERN: what a test of the guest says, with the programs of the container.
tests() {
	local out
	PATH=$bin:$PATH ./run "$2" | tee /tmp/out
	result "$1: $2" "${PIPESTATUS[0]}"
}

for CONTAINER; do
	drivers=$share/$CONTAINER/etc/libibverbs.d
	version=$(basename "$share/$CONTAINER"/usr/lib/*/libibverbs.so.1.*)
	echo "# $CONTAINER: $version"
	mkdir -p "$drivers"
	cp "$share/xroce/xroce.driver" "$drivers/"
	# rdma-core's suite is that of the container.
	IPV4_SERVERS=1 RDMA_CORE_TESTS=$share/$CONTAINER/usr/share/doc/rdma-core/tests \
		tests "$CONTAINER" 'stock/(pingpong|rdma-core)'
	rm "$drivers/xroce.driver"
	modprobe xroce && ip link add v0 type veth peer name v1 && ip link set v0 up && rdma link add v0r type xroce netdev v0
	"$bin/ibv_devinfo" -d v0r >/dev/null 2>&1
	result "$CONTAINER: without the .driver file there is no device" $((!$?))
	RDMAV_DRIVERS=/opt/xroce/libxroce "$bin/ibv_devinfo" -d v0r | grep -q v0r
	result "$CONTAINER: RDMAV_DRIVERS" $?
	IBV_DRIVERS=/opt/xroce/libxroce "$bin/ibv_devinfo" -d v0r | grep -q v0r
	result "$CONTAINER: IBV_DRIVERS" $?
	rdma link del v0r
	ip link del v0
done
rm -rf "$bin"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
