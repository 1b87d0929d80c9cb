// SPDX-License-Identifier: GPL-2.0

//! What must be true at the end of a run.

use roce::requester;
use roce::status::WcStatus;

use super::super::node::Node;
use super::super::workload::{
    Mix,
    Workload, //
};
use super::Sim;

impl Sim {
    /// Everything that was asked for was done, once and in order.
    pub(super) fn check(&self, loads: &[Workload]) {
        if self.scenario.is_disaster && self.report.failures != 0 {
            self.check_disaster(loads);
            return;
        }
        for (side, load) in loads.iter().enumerate() {
            let (node, peer) = (&self.nodes[side], &self.nodes[1 - side]);
            let send = &node.send;
            assert_eq!(send.fatal, 0, "requester {side} failed");
            assert_eq!(node.recv.fatal, 0, "responder {side} failed");
            assert!(node.recv.errors.is_empty());
            assert_eq!(
                send.completions.len(),
                load.work.len(),
                "completions of {side}"
            );
            for (i, (c, w)) in send.completions.iter().zip(&load.work).enumerate() {
                assert_eq!(c.status, WcStatus::Success, "completion {i} of {side}");
                assert_eq!(c.wr_id, w.wr.wr_id, "completions of {side} out of order");
                assert_eq!(c.op, w.wr.op);
                assert_eq!(c.signaled, w.wr.signaled);
                assert_eq!(c.byte_len, w.wr.length);
                assert_eq!(c.cookie, w.wr.cookie);
                assert!(
                    send.buffers[i] == w.expect,
                    "buffer of request {i} of {side}"
                );
            }
            let locals: Vec<usize> = (0..load.work.len())
                .filter(|i| load.work[*i].wr.op == requester::SendOp::Local)
                .collect();
            assert_eq!(send.locals, locals, "local work of {side}");
            assert_eq!(node.requester.next_deadline(), None);
            if self.scenario.mix == Mix::Uc && self.scenario.faults.loss != 0 {
                self.check_subsequence(peer, load);
                continue;
            }
            assert_eq!(
                peer.recv.received.len(),
                load.received.len(),
                "messages of {side}"
            );
            for (i, (got, want)) in peer.recv.received.iter().zip(&load.received).enumerate() {
                assert!(got == want, "message {i} of {side} differs");
            }
            assert!(peer.recv.memory == load.memory, "memory written by {side}");
            assert!(peer.recv.current.is_none(), "receive lost");
            assert!(peer.responder.is_idle(), "responder {} not idle", 1 - side);
        }
    }

    /// After a failure: what was completed well was done, what came out was sent,
    /// once and in order, and every work request has ended.
    fn check_disaster(&self, loads: &[Workload]) {
        for (side, load) in loads.iter().enumerate() {
            let (node, peer) = (&self.nodes[side], &self.nodes[1 - side]);
            let done = &node.send.completions;
            assert_eq!(done.len(), node.send.posted, "completions of {side}");
            let mut consumed = 0;
            let mut has_failed = false;
            for (i, c) in done.iter().enumerate() {
                assert_eq!(c.wr_id, i as u64, "completions of {side} out of order");
                match c.status {
                    WcStatus::Success => {
                        assert!(!has_failed, "success of {side} after an error");
                        consumed += usize::from(c.op.consumes_receive());
                        let expect = &load.work[i].expect;
                        assert!(node.send.buffers[i] == *expect, "buffer {i} of {side}");
                    }
                    WcStatus::WrFlushErr => has_failed = true,
                    _ => {
                        assert!(!has_failed, "second error of {side}");
                        has_failed = true;
                    }
                }
            }
            let received = &peer.recv.received;
            assert!(received.len() >= consumed, "message of {side} lost");
            assert!(
                received[..] == load.received[..received.len()],
                "messages of {side}"
            );
            // A responder that nobody told waits for the rest of the message.
            assert!(
                peer.recv.current.is_none() || peer.responder.is_ready(),
                "receive lost"
            );
            assert!(peer.recv.errors.len() <= 1);
            assert!(peer
                .recv
                .errors
                .iter()
                .all(|e| e.status == WcStatus::WrFlushErr));
        }
    }

    /// UC may lose messages, but neither alter, repeat nor swap them.
    fn check_subsequence(&self, peer: &Node, load: &Workload) {
        let mut want = load.received.iter();
        for (i, got) in peer.recv.received.iter().enumerate() {
            assert!(
                want.any(|w| w == got),
                "message {i} was never sent, or not in that order"
            );
        }
    }
}
