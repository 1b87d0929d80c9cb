#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# selftest: timeout=60 debug=long
"""The attributes that the device reports are true."""
import errno
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../lib'), os.path.join(HERE, '../../../tools/lib')]

import ktap
import net
import verbs
from ktap import case, expect, expect_eq, expect_errno
from pyverbs.cq import CQ
from pyverbs.libibverbs_enums import ibv_qp_type as QPT
from pyverbs.qp import QP, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from verbs import Node


@case
def device_attributes():
    attr = Node('x1').attr
    for name in (
        'max_qp',
        'max_qp_wr',
        'max_sge',
        'max_cq',
        'max_cqe',
        'max_mr',
        'max_pd',
        'max_srq',
        'max_srq_wr',
        'max_srq_sge',
        'max_qp_rd_atom',
        'max_qp_init_rd_atom',
        'max_ah',
        'vendor_id',
        'phys_port_cnt',
        'max_mr_size',
    ):
        expect(getattr(attr, name) > 0, name + ' is 0')
    expect(attr.max_mr_size >= 1 << 31, 'max_mr_size is below 2 GiB')
    expect(attr.node_guid != '0000:0000:0000:0000', 'no node GUID')
    expect(attr.atomic_caps != 0, 'no atomics')


@case
def xrc_is_said():
    if net.TYPE == 'rxe':
        raise ktap.Skip('rxe has no XRC')
    expect(verbs.has_xrc(Node('x1')), 'IBV_DEVICE_XRC is missing')
    out = subprocess.run(
        ['ibv_devinfo', '-v', '-d', 'x1'], capture_output=True, text=True, check=True
    ).stdout
    expect('XRC' in out, out)


@case
def port_attributes():
    node = Node('x1')
    port = node.ctx.query_port(1)
    expect_eq(port.state, 4, 'state')
    expect_eq(port.link_layer, 2, 'link layer')
    expect(port.gid_tbl_len > 0 and port.pkey_tbl_len > 0, 'empty tables')
    expect(port.max_msg_sz >= 1 << 31, 'max_msg_sz is below 2 GiB')
    expect_eq(node.ctx.query_pkey(1, 0) & 0xFFFF, 0xFFFF, 'P_Key')
    expect_errno((errno.EINVAL, errno.EOPNOTSUPP), 'port 2', node.ctx.query_port, 2)


@case
def gid_table():
    node = Node('x1')
    expect(len(node.ctx.query_gid_table(32)) >= 2, 'fewer than two entries')
    for version in (4, 6):
        index = net.gid_index('x1', version)
        entry = node.ctx.query_gid_ex(1, index)
        expect_eq((entry.gid_index, entry.port_num), (index, 1), 'entry')
        expect_eq(int(entry.gid_type), 2, 'type (RoCEv2)')


@case
def completion_vectors():
    node = Node('x1')
    if net.TYPE == 'rxe':
        expect(node.ctx.num_comp_vectors > 0, 'no vector')
    else:
        expect_eq(node.ctx.num_comp_vectors, os.cpu_count(), 'num_comp_vectors')
    for v in range(node.ctx.num_comp_vectors):
        CQ(node.ctx, 8, None, None, v).close()
    expect_errno(
        errno.EINVAL, 'a vector too many', CQ, node.ctx, 8, None, None, node.ctx.num_comp_vectors
    )


def qp(node, **cap):
    full = dict(max_send_wr=4, max_recv_wr=4, max_send_sge=1, max_recv_sge=1)
    full.update(cap)
    return QP(
        node.pd, QPInitAttr(qp_type=QPT.IBV_QPT_RC, scq=node.cq, rcq=node.cq, cap=QPCap(**full))
    )


@case
def limits_hold():
    """What is advertised can be had; one more is refused."""
    node = Node('x1')
    attr = node.attr
    bad = (errno.EINVAL, errno.ENOMEM)
    CQ(node.ctx, min(attr.max_cqe, 16384)).close()
    expect_errno(bad, 'max_cqe + 1', CQ, node.ctx, attr.max_cqe + 1)
    for name, limit in (
        ('max_send_wr', attr.max_qp_wr),
        ('max_recv_wr', attr.max_qp_wr),
        ('max_send_sge', attr.max_sge),
        ('max_recv_sge', attr.max_sge),
    ):
        if limit <= 16384:
            qp(node, **{name: limit}).close()
        expect_errno(bad, name + ' + 1', qp, node, **{name: limit + 1})
    expect_errno(bad, 'huge inline', qp, node, max_inline_data=1 << 20)
    SRQ(
        node.pd, SrqInitAttr(SrqAttr(max_wr=min(attr.max_srq_wr, 16384), max_sge=attr.max_srq_sge))
    ).close()
    expect_errno(
        bad, 'max_srq_wr + 1', SRQ, node.pd, SrqInitAttr(SrqAttr(max_wr=attr.max_srq_wr + 1))
    )
    expect_errno(
        bad,
        'max_srq_sge + 1',
        SRQ,
        node.pd,
        SrqInitAttr(SrqAttr(max_wr=4, max_sge=attr.max_srq_sge + 1)),
    )


@case
def caps_are_at_least_what_was_asked():
    node = Node('x1')
    init = QPInitAttr(
        qp_type=QPT.IBV_QPT_RC,
        scq=node.cq,
        rcq=node.cq,
        cap=QPCap(
            max_send_wr=33, max_recv_wr=17, max_send_sge=3, max_recv_sge=2, max_inline_data=100
        ),
    )
    one = QP(node.pd, init)
    got = one.query(verbs.MASK.IBV_QP_CAP)[1]
    for name, least in (
        ('max_send_wr', 33),
        ('max_recv_wr', 17),
        ('max_send_sge', 3),
        ('max_recv_sge', 2),
        ('max_inline_data', 100),
    ):
        expect(
            getattr(got.cap if hasattr(got, 'cap') else got, name) >= least, f'{name} below {least}'
        )


@case
def counters_are_there():
    names = net.counters('x1')
    for name in (
        'sent_pkts',
        'rcvd_pkts',
        'duplicate_request',
        'out_of_seq_request',
        'rcvd_rnr_err',
        'send_rnr_err',
        'retry_exceeded_err',
        'sent_bytes',
        'rcvd_bytes',
    ):
        expect(name in names, f'{name} is not among {sorted(names)}')
    out = subprocess.run(
        ['rdma', 'statistic', 'show', 'link', 'x1/1'], capture_output=True, text=True, check=True
    ).stdout
    expect('sent_pkts' in out, out)


@case
def resources_are_listed():
    node = Node('x1')
    one = qp(node)
    one.to_init(verbs.QPAttr(port_num=1))
    out = subprocess.run(
        ['rdma', 'res', 'show', 'qp', 'link', 'x1/1'], capture_output=True, text=True, check=True
    ).stdout
    expect(f'lqpn {one.qp_num} ' in out and 'type RC' in out, out)
    expect(f'pid {os.getpid()} ' in out, out)


ktap.main(lambda: net.hosts_up())
