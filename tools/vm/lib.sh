# SPDX-License-Identifier: GPL-2.0
# Common code of the tools in this directory: where files are, and how to run a command
# inside the build root. Sourced, not run.

set -euo pipefail

vm_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
SUITE=${SUITE:-sid}
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/xroce
suite_dir=$cache/$SUITE
root=$suite_dir/root

# use_checkout DIR: what is built. Build output is kept per checkout, so that two checkouts can
# build at once.
use_checkout() {
	repo=$1
	out_dir=$suite_dir/out/$(printf '%s' "$repo" | sha256sum | cut -c1-12)
}
use_checkout "$(cd "$vm_dir/../.." && pwd -P)"

. "$vm_dir/steps.sh"

# Said to whoever watches, also from within a step.
say() { { clear_line; printf '%s: %s\n' "${0##*/}" "$*"; } >&"$shown"; }
die() { say "$*"; exit 1; }

# use_flavour FLAVOUR: which of the suite's kernels "stock" is, for what is called, too. Where
# kernels are unpacked ($there of the build root, with the mounts of $seen), and what programs are
# called that make and run them.
use_flavour() {
	export FLAVOUR=$1
	kernels=$root there= seen=() emulator=qemu-system-x86_64 cross=()
	case $FLAVOUR in
	amd64 | cloud-amd64 | rt-amd64) ;;
	arm64 | arm64-16k)
		kernels=$suite_dir/arm64 there=/arm64 emulator=qemu-system-aarch64
		seen=("$kernels:/arm64"
			"$kernels/usr/lib/rustlib/aarch64-unknown-linux-gnu:/usr/lib/rustlib/aarch64-unknown-linux-gnu")
		cross=(ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-)
		;;
	*) die "FLAVOUR=$FLAVOUR: must be amd64, cloud-amd64, rt-amd64, arm64 or arm64-16k" ;;
	esac
}
use_flavour "${FLAVOUR:-amd64}"

need_root() {
	[ "$(id -u)" = 0 ] || die "must run as root (chroot, mounts): sudo make, a root shell, or" \
		"unshare --map-root-user --map-auto (Documentation/infiniband/xroce-ci.rst)"
}

# take_lock FD: flock, and a word if that takes long.
take_lock() {
	flock -w 5 "$1" && return
	say "waiting for another one that is at work on the same"
	flock "$1"
}

# in_root COMMAND...: run a command in the build root, in a mount and PID
# namespace of its own that dies with the caller. The checkout is /xroce
# (read-only), its build output is /out, /tmp is private.
# Further directories: binds=("HOST:INSIDE" ...).
binds=()
in_root() {
	mkdir -p "$out_dir" "$root/xroce" "$root/out"
	# cargo finds crates where Debian's librust-*-dev packages put them.
	[ -e "$out_dir/cargo-home/config.toml" ] || {
		mkdir -p "$out_dir/cargo-home"
		printf '[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "%s"\n' \
			/usr/share/cargo/registry >"$out_dir/cargo-home/config.toml"
	}
	XB_ROOT=$root XB_REPO=$repo XB_OUT=$out_dir \
	setpriv --pdeathsig KILL \
	unshare --mount --propagation private --pid --fork --kill-child \
		/bin/bash "$vm_dir/enter" "${binds[@]}" -- "$@"
}

# The release of a kernel (stock, debug), once it is prepared.
release_of() {
	if [ "$1" = debug ]; then
		cat "$suite_dir/kernel-$(place_of debug).release"
	else
		stock_release "$FLAVOUR"
	fi
}

# stock_release FLAVOUR: all flavours of the root's kernel are of one version.
stock_release() {
	local rel series
	read -r rel series <"$suite_dir/kernel"
	echo "${rel%amd64}$1"
}

# The name that a kernel (stock, debug) has in paths.
place_of() {
	case $1-$FLAVOUR in
	stock-amd64) ;;
	stock-* | debug-rt-amd64) set -- "$1-$FLAVOUR" ;;
	esac
	echo "$1"
}

# How a kernel's guest gets its root: 9p, or virtiofs where there is none (cloud kernels).
transport_of() {
	if grep -qs '/9p\.ko' "$kernels/usr/lib/modules/$1"/modules.{dep,builtin}; then
		echo 9p
	else
		echo virtiofs
	fi
}

# Where a release's image lies inside the root that has it; nothing if there is none.
vmlinuz() {
	local f
	for f in "/usr/lib/modules/$1/vmlinuz" "/boot/vmlinuz-$1"; do
		[ -e "$kernels$f" ] && echo "$f" && return
	done
	return 0
}
