// SPDX-License-Identifier: GPL-2.0

//! `ibv_modify_qp`: attributes and states.

use crate::prelude::*;
use crate::verbs::port::PORT;
use crate::verbs::provider::Xroce;
use datapath::ah;
use datapath::limits::{
    MAX_OFFERED_RD_ATOMIC,
    MAX_RD_ATOMIC, //
};
use datapath::qp::QpKind;
use datapath::rx::PKEY;
use datapath::tx::Av;
use rdma::mr::{
    AccessFlag,
    AccessFlags, //
};
use rdma::qp::{
    modify_qp_is_ok,
    Qp,
    QpAttr,
    QpAttrMask as Mask,
    QpType, //
};
use roce::congestion;
use roce::mtu::Mtu;
use roce::psn::Psn;
use roce::requester::{
    RequesterConfig,
    Service, //
};
use roce::responder::{
    Access,
    ResponderConfig, //
};

/// Changes the attributes of `mask` and, with them, the state. EINVAL for a transition or a value
/// that the verbs do not allow; then nothing has changed. Several processes that have an XRC target
/// open come here one after the other.
pub(crate) fn modify(qp: &Qp<Xroce>, attr: &QpAttr, mask: Mask) -> Result {
    let wire = &qp.data().wire;
    if mask.bits() & !Mask::STANDARD.bits() != 0 || mask.contains(Mask::CAP) {
        return Err(eopnotsupp());
    }
    let mut kept = wire.attr.lock();
    // It ended while the caller waited: as if it had not been found.
    if wire.retired.load(Relaxed) != 0 {
        return Err(EINVAL);
    }
    let current = wire.state();
    if mask.contains(Mask::CUR_STATE) && QpState::from(attr.cur_state) != current {
        return Err(EINVAL);
    }
    let next = if mask.contains(Mask::STATE) {
        QpState::from(attr.state)
    } else {
        current
    };
    if !modify_qp_is_ok(current.into(), next.into(), verbs_type(wire.kind), mask) {
        return Err(EINVAL);
    }
    check(wire, attr, mask)?;
    let mut new = *kept;
    merge(&mut new, attr, mask);
    apply(wire, &new, mask, current, next)?;
    if next == QpState::Reset {
        new = QpAttr {
            cap: wire.cap,
            ..QpAttr::default()
        };
    }
    *kept = new;
    Ok(())
}

fn verbs_type(kind: QpKind) -> QpType {
    match kind {
        QpKind::Rc => QpType::Rc,
        QpKind::Uc => QpType::Uc,
        QpKind::Ud => QpType::Ud,
        QpKind::Gsi => QpType::Gsi,
        QpKind::XrcIni => QpType::XrcIni,
        QpKind::XrcTgt => QpType::XrcTgt,
    }
}

/// Looks at every value that `mask` names.
fn check(wire: &WireQp, attr: &QpAttr, mask: Mask) -> Result {
    let has = |bit: Mask| mask.contains(bit);
    // All that have a name: those that only regions have mean nothing here, but programs copy them
    // from the flags of their regions.
    let supported = AccessFlags::known(u32::MAX);
    let bad = has(Mask::PORT) && attr.port != PORT
        || has(Mask::PKEY_INDEX) && attr.pkey_index != 0
        || has(Mask::PATH_MTU) && (attr.path_mtu == 0 || attr.path_mtu > wire.device.mtu().bytes())
        || has(Mask::TIMEOUT) && attr.timeout > 31
        || has(Mask::RETRY_CNT) && attr.retry_cnt > 7
        || has(Mask::RNR_RETRY) && attr.rnr_retry > 7
        || has(Mask::MIN_RNR_TIMER) && attr.min_rnr_timer > 31
        || has(Mask::MAX_QP_RD_ATOMIC) && attr.max_rd_atomic > MAX_OFFERED_RD_ATOMIC
        || has(Mask::MAX_DEST_RD_ATOMIC) && attr.max_dest_rd_atomic > MAX_RD_ATOMIC
        || has(Mask::DEST_QPN) && Qpn::checked(attr.dest_qp_num).is_none()
        || has(Mask::ACCESS_FLAGS) && AccessFlags::parse(attr.access, supported).is_none()
        || has(Mask::ALT_PATH);
    if bad {
        return Err(EINVAL);
    }
    if has(Mask::AV) {
        ah::address(&attr.ah, wire.qpn, Qpn::new(attr.dest_qp_num))?;
        if attr.ah.port != PORT {
            return Err(EINVAL);
        }
    }
    Ok(())
}

/// Takes over the values that `mask` names.
fn merge(new: &mut QpAttr, attr: &QpAttr, mask: Mask) {
    macro_rules! take {
        ($($bit:ident => $($field:ident),+;)*) => {
            $(if mask.contains(Mask::$bit) {
                $(new.$field = attr.$field;)+
            })*
        };
    }
    take! {
        EN_SQD_ASYNC_NOTIFY => sqd_async_notify;
        ACCESS_FLAGS => access;
        PKEY_INDEX => pkey_index;
        PORT => port;
        QKEY => qkey;
        AV => ah;
        PATH_MTU => path_mtu;
        TIMEOUT => timeout;
        RETRY_CNT => retry_cnt;
        RNR_RETRY => rnr_retry;
        MAX_QP_RD_ATOMIC => max_rd_atomic;
        MIN_RNR_TIMER => min_rnr_timer;
        MAX_DEST_RD_ATOMIC => max_dest_rd_atomic;
        PATH_MIG_STATE => path_mig_state;
        DEST_QPN => dest_qp_num;
    }
    if mask.contains(Mask::RQ_PSN) {
        new.rq_psn = attr.rq_psn & Psn::MASK;
    }
    if mask.contains(Mask::SQ_PSN) {
        new.sq_psn = attr.sq_psn & Psn::MASK;
    }
}

/// Brings the QP on the wire from `current` to `next` with the attributes `new`.
fn apply(wire: &WireQp, new: &QpAttr, mask: Mask, current: QpState, next: QpState) -> Result {
    let has_resources = wire.kind.is_reliable() && wire.kind.receives();
    if has_resources && mask.contains(Mask::MAX_DEST_RD_ATOMIC) {
        // First: it is all that can fail for lack of memory.
        wire.make_resources(new.max_dest_rd_atomic)?;
    }
    if mask.contains(Mask::QKEY) {
        wire.set_qkey(new.qkey);
    }
    match (current, next) {
        (_, QpState::Reset) => {
            wire.set_state(QpState::Reset);
            wire.set_qkey(0);
            wire.reset();
        }
        (_, QpState::Err) => wire.modify_to_error(),
        (QpState::Reset | QpState::Init, QpState::Init) => {
            move_on(wire, current, QpState::Init)?;
        }
        (QpState::Init, QpState::Rtr) => {
            if !wire.kind.is_datagram() && wire.kind.receives() {
                wire.configure_receive(&responder_config(wire, new)?, &address(wire, new)?);
            }
            move_on(wire, current, QpState::Rtr)?;
            wire.kick_receive();
        }
        (QpState::Rtr, QpState::Rts) => {
            if wire.kind.is_datagram() {
                wire.configure_datagrams(new.sq_psn);
            } else if wire.kind.sends() {
                wire.configure_send(&requester_config(wire, new)?, &address(wire, new)?);
            }
            update(wire, new, mask);
            move_on(wire, current, QpState::Rts)?;
            wire.kick_send();
        }
        (QpState::Rts, QpState::Sqd) => {
            move_on(wire, current, QpState::Sqd)?;
            wire.start_drain(mask.contains(Mask::EN_SQD_ASYNC_NOTIFY) && new.sqd_async_notify);
        }
        (QpState::Sqd, QpState::Rts) => {
            update(wire, new, mask);
            move_on(wire, current, QpState::Rts)?;
            wire.end_drain();
        }
        (QpState::Sqe, QpState::Rts) => {
            wire.end_send_error()?;
            update(wire, new, mask);
        }
        _ => update(wire, new, mask),
    }
    Ok(())
}

/// An error may have come between: then the QP is in the error state, or in SQE, and stays there.
fn move_on(wire: &WireQp, from: QpState, to: QpState) -> Result {
    if from == to || wire.change_state(from, to) {
        Ok(())
    } else {
        Err(EINVAL)
    }
}

/// Changes what may be changed while the QP runs.
fn update(wire: &WireQp, new: &QpAttr, mask: Mask) {
    let changed = mask.bits()
        & (Mask::ACCESS_FLAGS | Mask::MIN_RNR_TIMER | Mask::MAX_DEST_RD_ATOMIC).bits()
        != 0;
    if changed && wire.kind.receives() && !wire.kind.is_datagram() {
        wire.update_responder(
            access_of(new.access),
            new.min_rnr_timer,
            new.max_dest_rd_atomic,
        );
    }
    if mask.contains(Mask::AV) && !wire.kind.is_datagram() {
        // SQD: nothing is under way.
        if let Ok(av) = address(wire, new) {
            wire.update_address(av);
        }
    }
    let changed = mask.bits()
        & (Mask::TIMEOUT | Mask::RETRY_CNT | Mask::RNR_RETRY | Mask::MAX_QP_RD_ATOMIC).bits()
        != 0;
    if changed && wire.kind.sends() && !wire.kind.is_datagram() {
        if let Ok(config) = requester_config(wire, new) {
            wire.update_requester(&config);
        }
    }
}

fn access_of(raw: u32) -> Access {
    let flags = AccessFlags::known(raw);
    Access {
        remote_write: flags.contains(AccessFlag::RemoteWrite),
        remote_read: flags.contains(AccessFlag::RemoteRead),
        remote_atomic: flags.contains(AccessFlag::RemoteAtomic),
        flush_global: flags.contains(AccessFlag::FlushGlobal),
        flush_persistent: flags.contains(AccessFlag::FlushPersistent),
    }
}

fn address(wire: &WireQp, attr: &QpAttr) -> Result<Av> {
    let mut av = ah::address(&attr.ah, wire.qpn, Qpn::new(attr.dest_qp_num))?;
    // Who is slowed down by marks says so; an unreliable connection has no window.
    if wire.kind.is_reliable() {
        av.tos = congestion::with_ecn(av.tos, congestion::ECT0);
    }
    Ok(av)
}

fn mtu(attr: &QpAttr) -> Result<Mtu> {
    Mtu::fitting(attr.path_mtu).ok_or(EINVAL)
}

fn responder_config(wire: &WireQp, attr: &QpAttr) -> Result<ResponderConfig> {
    use roce::responder::Service as Kind;

    Ok(ResponderConfig {
        service: match wire.kind {
            QpKind::Rc => Kind::Rc,
            QpKind::Uc => Kind::Uc,
            QpKind::XrcTgt => Kind::XrcTgt,
            _ => return Err(EINVAL),
        },
        dest_qpn: Qpn::new(attr.dest_qp_num),
        mtu: mtu(attr)?,
        rq_psn: Psn::new(attr.rq_psn),
        pkey: PKEY,
        access: access_of(attr.access),
        min_rnr_timer: attr.min_rnr_timer,
        max_dest_rd_atomic: attr.max_dest_rd_atomic,
    })
}

fn requester_config(wire: &WireQp, attr: &QpAttr) -> Result<RequesterConfig> {
    Ok(RequesterConfig {
        service: match wire.kind {
            QpKind::Rc => Service::Rc,
            QpKind::Uc => Service::Uc,
            QpKind::XrcIni => Service::XrcIni,
            _ => return Err(EINVAL),
        },
        dest_qpn: Qpn::new(attr.dest_qp_num),
        mtu: mtu(attr)?,
        sq_psn: Psn::new(attr.sq_psn),
        pkey: PKEY,
        timeout: attr.timeout,
        retry_cnt: attr.retry_cnt,
        rnr_retry: attr.rnr_retry,
        max_rd_atomic: attr.max_rd_atomic,
        ..RequesterConfig::default()
    })
}
