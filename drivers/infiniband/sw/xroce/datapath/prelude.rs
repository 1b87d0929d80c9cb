// SPDX-License-Identifier: GPL-2.0

//! Imports that nearly every file of the device uses, in both of its crates.

pub use crate::{
    abi,
    counters::Counter,
    cq::{
        Completion,
        WireCq, //
    },
    device::WireDevice,
    pd::PdId,
    qp::{
        QpState,
        WireQp, //
    },
    srq::WireSrq, //
};
pub use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        Arc, //
    }, //
};
pub use rdma::{
    errno::{
        eaddrinuse,
        eopnotsupp,
        eproto, //
    },
    events::{
        CqHandle,
        QpEvent,
        QpHandle,
        SrqEvent,
        SrqHandle, //
    },
    mem::{
        Fault,
        KernelAddr,
        Memory,
        Usage, //
    },
    net::{
        Flow,
        Flushed,
        GidAddr,
        Joining,
        NamespaceId,
        NetDev,
        Route,
        Sender,
        Tunnel,
        TxBatch,
        TxSkb, //
    },
    new_spinlock_bh,
    new_spinlock_irq,
    owner::{
        Kick,
        Owner,
        OwnerGuard,
        Run, //
    },
    qp::QpType,
    rcu::{
        Ref,
        Table,
        GFP_ACCOUNT, //
    },
    ring::RingMem,
    sync::{
        full_fence,
        NoPreempt,
        NoSoftirq,
        SpinLockBh,
        SpinLockIrq, //
    },
    timer::{
        now_ns,
        Timer, //
    },
    work::Work, //
};
pub use roce::{
    key::Key,
    number::{
        Qpn,
        Srqn, //
    },
    status::WcStatus, //
};
