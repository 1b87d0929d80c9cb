// SPDX-License-Identifier: GPL-2.0

//! Errors, draining, resetting and destroying queue pairs.

use super::request::filled;
use super::QpKind;
use crate::prelude::*;
use crate::tables;
use crate::tx::Av;
use roce::requester::{
    Drain,
    RequesterConfig, //
};
use roce::responder::ResponderConfig;

impl WireQp {
    /// Moves to the error state and has both directions flushed. Any context; also called by the
    /// owners of the two directions, so the flush itself is left to the work items.
    pub fn enter_error(&self) {
        if self.set_error() {
            self.schedule_send();
            self.schedule_receive();
        }
    }

    /// A work queue cannot go on, since nobody can learn of what it does (IBTA: a local work queue
    /// catastrophic error): moves to the error state, whatever the type of the QP, and says so
    /// once. Any context, without queue locks; also called by the owners of the two directions.
    pub(crate) fn fail(&self) {
        if self.set_error() {
            self.event(QpEvent::Fatal);
            self.schedule_send();
            self.schedule_receive();
        }
    }

    /// As [`WireQp::enter_error`], and flushes at once as far as nobody else does. Process context.
    pub fn modify_to_error(&self) {
        self.set_error();
        self.kick_send();
        self.kick_receive();
    }

    /// Makes room for the READs and atomics that the peer may have outstanding, unless there is
    /// enough. Process context.
    ///
    /// # Errors
    ///
    /// ENOMEM; nothing has changed.
    pub fn make_resources(&self, count: u8) -> Result {
        let resources = filled(usize::from(count))?;
        let unused = self.recv.lock().responder.grow(resources);
        drop(unused);
        self.kick_receive();
        Ok(())
    }

    /// Sets up the receive direction; the caller sets the state afterwards. Process context.
    pub fn configure_receive(&self, config: &ResponderConfig, av: &Av) {
        {
            let mut recv = self.recv.lock_bh();
            recv.configure(config, *av);
            self.recv_connection.set(config.dest_qpn, av);
        }
        self.kick_receive();
    }

    /// Sets up the send direction; the caller sets the state afterwards and kicks. Process context.
    pub fn configure_send(&self, config: &RequesterConfig, av: &Av) {
        {
            let mut send = self.send.lock();
            send.configure(config, *av);
            self.send_connection.set(config.dest_qpn, av);
        }
        self.kick_send();
    }

    /// The next datagram gets the number `psn`, 24 bits. Process context.
    pub fn configure_datagrams(&self, psn: u32) {
        self.send.lock().io.start_datagrams(psn);
        self.kick_send();
    }

    /// Begins to drain: what was begun is finished, nothing new is begun, and if `notify` says so
    /// an event tells when that is so. The caller has set the state to SQD. Process context.
    pub fn start_drain(&self, notify: bool) {
        {
            let mut send = self.send.lock();
            send.requester.drain(Drain::Begin);
            send.io.notify_drained = notify;
        }
        self.kick_send();
        if notify && self.kind.is_datagram() {
            self.event(QpEvent::SendQueueDrained);
        }
    }

    /// Ends draining. The caller has set the state to RTS. Process context.
    pub fn end_drain(&self) {
        self.send.lock().requester.drain(Drain::End);
        self.kick_send();
    }

    /// SQE to RTS: what was posted so far is flushed, what comes from now on is sent. EINVAL when
    /// the QP went to the error state meanwhile. Process context.
    ///
    /// # Errors
    ///
    /// EINVAL when the QP went to the error state meanwhile.
    pub fn end_send_error(&self) -> Result {
        let resumed = self.send.lock().resume(self);
        if resumed.is_err() && self.set_error() {
            self.event(QpEvent::Fatal);
            self.kick_receive();
        }
        self.kick_send();
        match resumed {
            Ok(true) => Ok(()),
            _ => Err(EINVAL),
        }
    }

    /// Forgets everything: what was posted, what is under way, what waits. The caller has set the
    /// state to RESET. Process context.
    pub fn reset(&self) {
        self.timer.cancel();
        self.pace.cancel();
        // A run in progress ends before the lock is taken; later ones see the state.
        {
            let mut send = self.send.lock();
            send.reset(self);
            self.send_connection.clear();
        }
        {
            let mut recv = self.recv.lock();
            recv.reset(self);
            self.recv_connection.clear();
        }
        if let Some(device) = &self.device_sends {
            // A receive run that was under way may have queued more; they are for the old peer.
            device.forget();
        }
        self.purge_arrivals();
        self.responses.purge();
        self.requests.purge();
        self.early.purge();
        // Whoever met the locks left a mark, and a sender of this host its number: it is told, and
        // then finds that nobody answers.
        self.kick_send();
        self.kick_receive();
    }

    /// Ends all activity of a QP that is no longer in the table. Nothing completes any more once
    /// this returns. Process context.
    pub fn stop(&self) {
        self.set_state(QpState::Reset);
        // Timers find the QP by its number, so what is armed from now on does nothing.
        self.send_work.stop();
        self.recv_work.stop();
        self.reset();
    }

    /// Takes the QP out of the table and ends all it does; packets that found it before may still
    /// hold it, and do nothing with it. Process context.
    pub fn retire(&self) {
        if self.kind == QpKind::Gsi {
            tables::remove_gsi(self);
        }
        if let Some(tables) = tables::get() {
            drop(tables.qps.remove(self.qpn.get()));
        }
        for (mem, base) in [&self.rings.sq, &self.rings.rq].into_iter().flatten() {
            let flags = base.wrapping_add(abi::RING_KERNEL_FLAGS);
            let _ = mem.fetch_or(flags, abi::RING_DEAD);
        }
        {
            let _attr = self.attr.lock();
            self.retired.store(1, Relaxed);
        }
        self.stop();
    }
}
