#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs in each of two guests (tools/vm/run --hosts 2 --xroce ...): which module and plug-in this
# host has, whether they agree about their rings, and traffic.
. "$(dirname "$0")/../../tools/lib/net.sh"
failed() { echo "$*"; exit 1; }
plugin=$(realpath -e /usr/lib/*/libxroce.so.1) && [ -e "$plugin" ] || failed "there is no plug-in"
echo "module $(sha256sum <"$(modinfo -n xroce)")"
echo "plug-in $(sha256sum <"$plugin")"
# libibverbs compares this number when it looks for the plug-in, and the plug-in that of the rings
# when it opens the device.
ibv_devinfo -d "$DEVICE" | grep -q PORT_ACTIVE || failed "the plug-in does not open the module's device"
echo "module and plug-in agree on ABI $(cat /sys/class/infiniband_verbs/uverbs0/abi_version)"
barrier "both are known"
exec "$(dirname "$0")/mesh.py" clean
