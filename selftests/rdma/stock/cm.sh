#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=100 debug=long
# The connection manager: rping and the other programs of rdmacm-utils.
. "$(dirname "$0")/../../../tools/lib/net.sh"
. "$(dirname "$0")/../../lib/ktap.sh"
. "$(dirname "$0")/../../../tools/lib/duo.sh"

plan 7
hosts_up || die "no hosts"
for v in 4 6; do
	use_ip $v
	check_stock "rping-ipv$v" duo cm 40 "$rping -s -a $ADDR1 -C 10 -v -V" "$rping -c -a $ADDR1 -C 10 -v -V"
done
use_ip 4
check_stock rping-large duo cm 40 "$rping -s -a $ADDR1 -C 5 -S 60000 -v -V" "$rping -c -a $ADDR1 -C 5 -S 60000 -v -V"
check_stock ucmatose duo cm 60 "ucmatose -b $ADDR1 -C 20 -c 3 -S 4096" "ucmatose -s $ADDR1 -b $ADDR2 -C 20 -c 3 -S 4096"
check_stock udaddy duo cm 60 "udaddy -b $ADDR1 -C 10 -S 512" "udaddy -s $ADDR1 -b $ADDR2 -C 10 -S 512"
check_stock rdma-server-client duo cm 40 "rdma_server -s $ADDR1 -p 7174" "rdma_client -s $ADDR1 -p 7174"
if [ "$TYPE" = rxe ]; then
	skip rdma-xserver-xclient "rxe has no XRC"
else
	check rdma-xserver-xclient duo cm 40 "rdma_xserver -c x -p 7175" "rdma_xclient -c x -s $ADDR1 -p 7175"
fi
finish
