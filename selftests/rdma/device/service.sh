#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=240 debug=long
# tools/system/link, with which xroce@IFACE.service makes and removes devices: what it does, and
# the one line that says what to do when there can be no device. The plug-in's line about a
# libibverbs that it does not know, too. tools/vm/check-boot has a kernel that takes signed modules
# only; here, each error is one that the kernel or modprobe really gives.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"

[ "$TYPE" = xroce ] || skip_all "the service makes xroce devices"
top=$(cd "$(dirname "$0")/../../.." && pwd)
rel=$(uname -r) link=$top/tools/system/link
modules=/lib/modules/$rel
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# alone MODULES COMMAND...: in a mount namespace where the kernel's modules are those that the
# function MODULES puts in place, and modprobe.d has no other file. So depmod is quick, and nothing
# is left of it. What xroce needs stays loaded meanwhile.
alone() {
	local make_modules=$1
	shift
	mkdir -p "$work/modules" "$work/conf" && rm -rf "${work:?}"/{modules,conf}/* && "$make_modules" &&
		depmod_of "$work/modules" && unshare --mount --propagation private bash -c '
			mount --bind "$1" "$2" && mount --bind "$3" /etc/modprobe.d && shift 3 && exec "$@"' \
			alone "$work/modules" "$modules" "$work/conf" "$@"
}
depmod_of() { # DIRECTORY: as if it were that of the kernel's modules
	mkdir -p "$work/root/usr/lib/modules" && ln -sfn usr/lib "$work/root/lib" &&
		ln -sfn "$1" "$work/root/lib/modules/$rel" &&
		touch "$1"/modules.{order,builtin,builtin.modinfo} && depmod -b "$work/root" "$rel"
}

# The modules that are installed.
none() { :; }
ours() { mkdir -p "$work/modules/updates" && cp "$built" "$work/modules/updates/xroce.ko"; }
two() { ours && mkdir -p "$work/modules/extra" && cp "$built" "$work/modules/extra/xroce.ko"; }
# Its version magic is that of no kernel.
of_another_kernel() { ours && LC_ALL=C sed -i "s/ mod_unload / mod_xnload /" "$work/modules/updates/xroce.ko"; }
# The kernel knows the key, but the signature is that of another module. It is the end of the file,
# which says its length: 12 bytes about it, the last four of which are the length, and 28 of text.
signature() {
	local file=$work/signed.ko len
	case $1 in
	*.xz) xz -dc "$1" ;;
	*.zst) zstd -qdc "$1" ;;
	*) cat "$1" ;;
	esac >"$file" && [ "$(tail -c 28 "$file")" = "~Module signature appended~" ] || return 1
	len=$((16#$(tail -c 32 "$file" | head -c 4 | xxd -p)))
	tail -c $((len + 40)) "$file"
}
wrongly_signed() { ours && cat "$work/signature" >>"$work/modules/updates/xroce.ko"; }
as_rxe() { ours && cp "$top/tools/system/xroce-as-rxe.conf" "$work/conf/"; }
bad_option() { ours && echo "options xroce comp_vectors=many" >"$work/conf/xroce.conf"; }

d1_is() { [ "$(cat "/sys/class/infiniband/$1/parent" 2>/dev/null)" = d1 ]; }
no_module() { [ ! -e /sys/module/xroce ]; }
# silent COMMAND...: succeeds and says nothing.
silent() {
	local said
	said=$("$@" 2>&1) || { echo "status $?: $said"; return 1; }
	[ -z "$said" ] || { echo "said: $said"; return 1; }
}
# says STATUS LINE COMMAND...: ends so and says this line (a pattern), no other.
says() {
	local status=$1 line=$2 said rc=0
	shift 2
	said=$("$@" 2>&1) || rc=$?
	echo "status $rc: $said"
	[ $rc = "$status" ] && [ "$(wc -l <<<"$said")" = 1 ] && [[ $said == $line ]]
}
# refused MODULES LINE [COMMAND...]: no device and no module, and one line; COMMAND runs link.
refused() {
	local made=$1 line=$2
	shift 2
	no_module || rmmod xroce || return
	says 1 "xroce: $line" alone "$made" "$@" "$link" add d1 && no_module && ! d1_is xroce_d1
}

made() {
	silent alone ours "$link" add d1 && d1_is xroce_d1 && silent alone ours "$link" add d1 &&
		d1_is xroce_d1
}
removed() { silent "$link" del d1 && gone xroce_d1 && silent "$link" del d1; }
of_other_name() {
	rdma link add x0 type xroce netdev d1 && silent "$link" add d1 && gone xroce_d1 && d1_is x0 &&
		silent "$link" del d1 && gone x0
}
usage() {
	local a
	for a in "" add "add d1 d2" "show d1" "del"; do
		# shellcheck disable=SC2086 # words
		says 2 "usage: link add|del NETDEV" "$link" $a || return
	done
}
no_netdev() { says 1 "error: *" alone ours "$link" add d9 && gone xroce_d9; }
# The whole module, as it is alone: shows that nothing but what a case changes is what is refused.
whole() { no_module || rmmod xroce && silent alone ours "$link" add d1 && d1_is xroce_d1 && removed; }
# As with a lockdown, which could not be ended: EPERM.
forbidden() { refused ours "$signed_only" setpriv --bounding-set -sys_module; }
rxe_there() {
	modprobe rdma_rxe && refused as_rxe "rdma_rxe is loaded, whose place xroce is to take (xroce-as-rxe): 'rmmod rdma_rxe'"
	local rc=$?
	rmmod rdma_rxe
	return $rc
}
# Which one modprobe takes is for depmod to say.
second_module() {
	no_module || rmmod xroce || return
	says 0 "xroce: 2 modules are installed, of which $modules/@(updates|extra)/xroce.ko is used: remove the others ($modules/*/xroce.ko $modules/*/xroce.ko)" \
		alone two "$link" add d1 && d1_is xroce_d1 && removed
}
# A release after the newest that the plug-in knows.
other_libibverbs() {
	local real new
	real=$(realpath -e /usr/lib/*/libibverbs.so.1) && mkdir -p "$work/lib" || return
	new=libibverbs.so.1.99.999.0
	cp "$real" "$work/lib/$new" && ln -sf "$new" "$work/lib/libibverbs.so.1" &&
		rdma link add x0 type xroce netdev d1 || return
	LD_LIBRARY_PATH=$work/lib ibv_devinfo -d x0 >"$work/said" 2>&1
	cat "$work/said"
	[ "$(grep -c '^libxroce: ' "$work/said")" = 1 ] && grep -qx \
		"libxroce: made for rdma-core [0-9]* to [0-9]*, not for $work/lib/$new; install the libxroce that belongs to it" \
		"$work/said" && ibv_devinfo -d x0 >/dev/null && rdma link del x0
}

signed_only="the kernel loads only modules that are signed by a key it knows (Secure Boot): install\
 xroce-dkms, then 'mokutil --import /var/lib/dkms/mok.pub', and reboot"
built=$work/built.ko
found=$(modinfo -n xroce) && cp "$found" "$built" || die "there is no module"
hosts_clean && load_module && ip link add d1 type dummy && ip link set d1 up || die "no net device"
plan 15
check "a device is made, once" made
check "it is removed, once" removed
check "a device of another name" of_other_name
check usage usage
check "no such net device" no_netdev
check "one module" whole
check "no module" refused none "no module for kernel $rel: install xroce-dkms or xroce-modules-$rel"
check "a module of another kernel" refused of_another_kernel \
	"the module $modules/updates/xroce.ko was built for another kernel than $rel: install the one for this"
if signature "$(modinfo -n dummy)" >"$work/signature" 2>/dev/null; then
	check "the signature of another module" refused wrongly_signed "$signed_only"
else
	skip "the signature of another module" "this kernel's modules are not signed"
fi
check "the kernel does not let it be loaded" forbidden
check "an option that is wrong" refused bad_option "*Invalid argument (the kernel's log may say why: journalctl -k)"
if modinfo -n rdma_rxe >/dev/null 2>&1; then
	check "rdma_rxe in the way" rxe_there
else
	skip "rdma_rxe in the way" "this kernel has no rdma_rxe"
fi
check "two modules" second_module
check "a libibverbs that the plug-in does not know" other_libibverbs
check "as before" eval 'load_module && made && removed && ip link del d1'
finish
