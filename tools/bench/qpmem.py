# SPDX-License-Identifier: GPL-2.0
"""Prints the kernel memory of connected QPs: lines with a number of QPs and their bytes.

   qpmem.py DEV1 DEV2 GID-INDEX1 GID-INDEX2 RC|XRC

A QP has 64 send and (RC) 64 receive slots with one SGE each; both ends count.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../lib'))

import kmem  # noqa: E402
import verbs  # noqa: E402
from pyverbs.cq import CQ  # noqa: E402
from pyverbs.device import Context  # noqa: E402
from pyverbs.pd import PD  # noqa: E402
from verbs import QP, QPCap, QPInitAttr, QPT, attributes  # noqa: E402

# Numbers of pairs.
PAIRS = (16, 64, 256)


class End:
    """What verbs.attributes() wants to know of an end."""

    ah_attr = verbs.Node.ah_attr
    # Of its paths.
    sl = traffic_class = flow_label = 0

    def __init__(self, dev, index):
        self.ctx = Context(name=dev)
        self.pd, self.cq = PD(self.ctx), CQ(self.ctx, 64)
        self.gid_index = index
        self.gid = self.ctx.query_gid(1, index)
        self.mtu = self.ctx.query_port(1).active_mtu


def main():
    one, two = (End(sys.argv[1 + i], int(sys.argv[3 + i])) for i in (0, 1))
    cap = QPCap(max_send_wr=64, max_recv_wr=64, max_send_sge=1, max_recv_sge=1)

    def rc(end):
        return QP(end.pd, QPInitAttr(qp_type=QPT.IBV_QPT_RC, scq=end.cq, rcq=end.cq, cap=cap))

    if sys.argv[5] == 'XRC':
        domain = verbs.Domain(two)

        def make():
            return verbs.initiator(one, depth=64, sges=1, inline=0), domain.tgt()

    else:

        def make():
            return rc(one), rc(two)

    def connected():
        a, b = make()
        a.to_rts(attributes(one, two, b.qp_num))
        b.to_rts(attributes(two, one, a.qp_num))
        return a, b

    first = connected()
    before = kmem.settled()
    pairs = []
    for count in PAIRS:
        pairs += [connected() for _ in range(count - len(pairs))]
        print(2 * count, kmem.settled() - before)
    for a, b in pairs + [first]:
        a.close()
        b.close()


main()
