// SPDX-License-Identifier: GPL-2.0

//! What is sent again after a NAK for a gap: what is missing to a responder that keeps what is
//! behind it, everything to one that does not.

use core::ops::DerefMut;

use super::{
    early,
    Requester,
    Wqe, //
};
use crate::psn::Psn;
use crate::responder::KEPT;

/// So far ahead of the oldest packet a responder is trusted to keep what it gets: less than
/// [`KEPT`], and twice the window that a device has on a short wire. A missing
/// packet takes one window to be noticed and another one to be filled in.
pub(super) const AHEAD: u32 = 768;

const _: () = assert!(AHEAD < KEPT);

/// The same of a responder that seems to have dropped some of it.
const AHEAD_OF_FEWER: u32 = 384;

/// What is missing goes on so many times behind the packet that was sent again, and a responder
/// that keeps what comes early is taken for one that keeps less of it.
const SINGLE_HOLES: u8 = 3;

/// What is missing goes on so many times behind what was sent again where trains are sent, and the
/// responder is taken for one that keeps less of what comes early, or nothing.
const LOST_TRAINS: u8 = 3;

/// After the loss of a train, so many more losses are taken for those of trains. The next one
/// tells whether that is still so.
const WHOLE_TRAINS: u8 = 4;

/// No more packets are taken for lost together.
pub(super) const LONGEST_RUN: u8 = 32;

/// After so many holes, or two, four or eight times as many, the window shrinks once more, if
/// [`OFTEN`] says so: its size may be the cause.
const MANY_HOLES: u8 = 3;

/// One packet of so many is missing.
const OFTEN: u8 = 10;

/// What is known of the responder.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Peer {
    /// Nothing: the next gap tells.
    #[default]
    Unknown,
    /// It keeps requests that come before an earlier one.
    Keeps,
    /// It did not, when that was tried for the first time.
    Dropped,
    /// It drops them.
    Drops,
}

/// The packets before `end` were in flight when one of them was found to be missing.
#[derive(Clone, Copy, Debug)]
struct Flight {
    end: Psn,
    /// Those before this one have arrived, or are lost, by the time that the answer to what was
    /// sent again last comes.
    base: Psn,
    /// Behind what was sent again last, or is about to be ([`Recovery::left`]).
    resent: Psn,
    /// When the first of that was, or is about to be.
    at: u64,
    /// That is the packet that was found to be missing first.
    is_first: bool,
    /// How many times what was missing has turned out to go on behind what was sent again.
    longer: u8,
    /// Packets so far that were missing; those in a row at the beginning are one, and so are all
    /// in a row where trains are sent.
    holes: u8,
    /// The distance from the first to the last of them, packets. If one is a READ, it counts from
    /// the end of that.
    apart: u8,
}

impl Flight {
    /// The packet `una`, which is not before `resent`, is missing as well. `run` packets were sent
    /// again last.
    fn with_hole(self, una: Psn, run: u8, has_trains: bool) -> Self {
        let behind = una.since(self.resent);
        let distance = behind.saturating_add(run.into()).min(u8::MAX.into());
        Self {
            is_first: false,
            longer: match behind {
                0 => self.longer.saturating_add(1),
                _ => 0,
            },
            // The first ones in a row have been lost together, as a rule.
            holes: match behind {
                0 if self.holes == 1 || has_trains => self.holes,
                _ => self.holes.saturating_add(1),
            },
            // At most `u8::MAX`.
            apart: self.apart.saturating_add(distance as u8),
            ..self
        }
    }

    /// Whether the last hole is the one after which so many are too many.
    fn is_often(&self) -> bool {
        let counts = [1, 2, 4, 8].map(|times| MANY_HOLES.saturating_mul(times));
        counts.contains(&self.holes) && self.apart < self.holes.saturating_mul(OFTEN)
    }
}

/// Recovery without selective acknowledgements, as NewReno's (RFC 6582): the packet that is missing
/// is sent again, and an ACK that reaches behind it, but not to the end of what was in flight then,
/// names the next one. Where trains are sent, and that is the packet right behind it, a whole train
/// may have been lost: the rest of that is sent again together, and then as much as another one.
/// After that, the next ones are sent again as a whole.
///
/// No bit on the wire says whether a responder keeps what comes early. So the first time, the
/// missing packet is sent alone. If the ACK for it reaches further, the responder has kept others.
/// Where that is a READ, everything is sent again. If it is answered twice, it was not lost.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Recovery {
    peer: Peer,
    /// It seems to keep fewer than [`AHEAD`].
    keeps_fewer: bool,
    /// Packets that are sent again together.
    run: u8,
    /// So many of them were not sent yet.
    left: u8,
    /// The first of them began a train when it was sent before.
    begins: bool,
    /// So many of the next losses are taken for those of whole trains, because one was.
    whole: u8,
    flight: Option<Flight>,
    /// The request that was missing when everything was sent again. It was lost or late, which is
    /// not known.
    doubt: Option<Psn>,
}

impl Recovery {
    /// Everything is sent again.
    #[inline]
    pub(super) fn stop(&mut self) {
        self.flight = None;
        self.left = 0;
        self.doubt = None;
    }

    /// The packet `first` is missing, and what is behind it is sent again as well.
    pub(super) fn on_sent_again(&mut self, first: Psn) {
        self.doubt = Some(first);
    }

    /// The packet `psn` was answered twice, or before it was sent again. Whether it had counted as
    /// lost, so that it was only late.
    pub(super) fn take_doubt(&mut self, psn: Psn) -> bool {
        let is_doubt = self.doubt == Some(psn);
        if is_doubt {
            self.doubt = None;
        }
        is_doubt
    }

    /// Whether more of what is missing is to be sent again.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.left != 0
    }

    /// Nothing more of it is.
    pub(super) fn skip_rest(&mut self) {
        self.left = 0;
    }

    /// Trains were not sent until now, or they are not sent any more: it is not known whether those
    /// of the next route are lost as a whole.
    pub(super) fn forget_trains(&mut self) {
        self.whole = 0;
    }

    /// How many packets are taken for lost together where trains are sent, when what is missing has
    /// gone on for `longer` times: the `rest` of a train, and at least twice as many each time.
    /// `begins`: the first of what is missing began a train. Then it is the whole train from the
    /// beginning, if another one was lost before; this counts how often.
    fn lost_together(&mut self, longer: u8, begins: bool, rest: u8) -> u8 {
        match longer {
            0 => match self.whole.checked_sub(1) {
                Some(left) if begins => {
                    self.whole = left;
                    rest
                }
                _ => 1,
            },
            1 if self.run == 1 => {
                if begins {
                    self.whole = WHOLE_TRAINS;
                }
                rest.max(2)
            }
            _ => rest.max(4),
        }
    }

    /// Nothing may be sent before the answer to what was sent again has come.
    #[inline]
    pub(super) fn is_trial(&self) -> bool {
        self.flight.is_some() && self.peer != Peer::Keeps
    }

    /// Nothing is known to be missing.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.flight.is_none()
    }
}

impl<Q: DerefMut<Target = [Wqe]>> Requester<Q> {
    /// Packets that the window counts as in flight. Of those that were when one was found to be
    /// missing, all have arrived by the time its copy has. Responses that are in their place do not
    /// count, unless everything is being sent again.
    #[inline]
    pub(super) fn flight_packets(&self) -> u32 {
        let unanswered = self.next.since(self.una);
        match self.recovery.flight {
            Some(flight) => unanswered.saturating_sub(flight.base.since(self.una)),
            None if self.next == self.max => unanswered.saturating_sub(self.early.placed()),
            None => unanswered,
        }
    }

    /// Packets that may be sent before the responder has to drop what comes early.
    #[inline]
    pub(super) fn ahead_room(&self) -> u32 {
        let ahead = match self.recovery.flight {
            Some(_) if self.recovery.keeps_fewer => AHEAD_OF_FEWER,
            Some(_) => AHEAD,
            None => return u32::MAX,
        };
        ahead.saturating_sub(self.next.since(self.una))
    }

    /// Packets of READ responses that may be asked for: the requester drops what comes too far
    /// behind a missing one. What the window admits is allowed in any case.
    #[inline]
    pub(super) fn read_room(&self) -> u32 {
        if self.early.placed() == 0 {
            return self.ahead_room();
        }
        let ahead = early::KEPT.max(self.window_packets());
        let room = ahead.saturating_sub(self.next.since(self.una));
        room.min(self.ahead_room())
    }

    /// The responder says that the oldest packet is missing. False if everything has to be sent
    /// again.
    pub(super) fn recover(&mut self, now: u64) -> bool {
        let has_response = self
            .oldest_assigned()
            .is_none_or(|wqe| wqe.wr.op.has_response());
        let can_tell = match self.recovery.peer {
            Peer::Keeps => true,
            // Responses come one by one, unlike an ACK.
            Peer::Unknown | Peer::Dropped => !has_response,
            Peer::Drops => false,
        };
        if !can_tell || self.next != self.max {
            return false;
        }
        if let Some(flight) = self.recovery.flight {
            // A copy is on its way, or due. Of several, one is lost if this answers them.
            let least = match self.recovery.run {
                0 | 1 => self.rtt.smoothed(),
                _ => self.least_round_trip(),
            };
            if flight.resent.is_after(self.una)
                && (self.recovery.is_due() || now.saturating_sub(flight.at) < least.max(1))
            {
                return true;
            }
            let flight = Flight {
                is_first: false,
                ..flight
            };
            self.resend(flight, 1, now);
            return true;
        }
        // An answer may now take longer than a round trip.
        self.timed = None;
        let flight = Flight {
            end: self.max,
            base: self.max,
            resent: self.una,
            at: now,
            // If a probe has sent a copy before, it tells nothing when an answer comes.
            is_first: !self.probe.is_sent(),
            longer: 0,
            holes: 1,
            apart: 0,
        };
        if self.probe.is_on_its_way(now, self.rtt.min()) {
            self.count_loss();
            self.recovery.begins = self.is_train_missing();
            (self.recovery.run, self.recovery.left) = (1, 0);
            self.recovery.flight = Some(Flight {
                resent: self.una.next(),
                ..flight
            });
        } else {
            let most = match self.has_trains() && self.recovery.peer == Peer::Keeps {
                true => self.lost_together(0),
                false => 1,
            };
            self.resend(flight, most, now);
        }
        true
    }

    /// How many of the oldest packets are taken for lost together, when what is missing has gone on
    /// for `longer` times.
    fn lost_together(&mut self, longer: u8) -> u8 {
        let begins = match longer {
            0 => self.is_train_missing(),
            _ => self.recovery.begins,
        };
        self.recovery
            .lost_together(longer, begins, self.rest_of_train())
    }

    /// Has `most` packets sent again, the oldest and those behind it, as far as these are of SENDs
    /// and WRITEs.
    fn resend(&mut self, flight: Flight, most: u8, now: u64) {
        self.count_loss();
        let count = self.data_packets(most);
        self.recovery.begins = self.is_train_missing();
        (self.recovery.run, self.recovery.left) = (count, count);
        self.recovery.flight = Some(Flight {
            base: self.max,
            resent: self.una.add(count.into()),
            at: now,
            ..flight
        });
        self.probe.ask_for_hole();
    }

    /// How many of the oldest packets in flight, up to `most`, can be sent again together: one, or
    /// more if all of them are of SENDs and WRITEs.
    fn data_packets(&self, most: u8) -> u8 {
        let in_flight = self.max.since(self.una);
        let most = in_flight.min(most.min(LONGEST_RUN).into());
        let mut count = 0u32;
        // Each work request has a packet, but for local ones.
        for rel in 0..self.assigned.min(u32::from(LONGEST_RUN) << 1) {
            let Some(wqe) = self.wqe(self.slot_at(rel)) else {
                break;
            };
            if count >= most || wqe.wr.op.has_response() || wqe.fault.is_some() {
                break;
            }
            if wqe.packets != 0 {
                count = wqe.psn.add(wqe.packets).since(self.una);
            }
        }
        // At most `LONGEST_RUN`.
        count.min(most).max(1) as u8
    }

    /// The packet that is to be sent again next, and how many behind it are.
    #[inline]
    pub(super) fn next_missing(&mut self) -> (Psn, u32) {
        let rest = match self.recovery.flight {
            Some(flight) if flight.resent.is_after(self.una) => flight.resent.since(self.una),
            _ => 0,
        };
        // Those before the oldest have arrived since.
        self.recovery.left = rest.min(self.recovery.left.into()) as u8;
        match u32::from(self.recovery.left) {
            0 => (self.una, 0),
            left => {
                let sent = rest.saturating_sub(left);
                (self.una.add(sent), left.saturating_sub(1))
            }
        }
    }

    /// The packet `psn` was sent again, or a READ of so many packets.
    #[inline]
    pub(super) fn on_resent(&mut self, psn: Psn, count: u32, now: u64) {
        let Recovery {
            flight, run, left, ..
        } = &mut self.recovery;
        let Some(flight) = flight else {
            return;
        };
        if *left >= *run {
            flight.at = now;
        }
        *left = left.saturating_sub(1);
        if *left == 0 {
            flight.resent = psn.add(count);
        }
    }

    /// No answer can come sooner than this. The shortest round trip that was measured may contain a
    /// queue, which may have gone since.
    fn least_round_trip(&self) -> u64 {
        (self.rtt.min() >> 3).saturating_mul(5)
    }

    /// Whether the packet that was found to be missing first has been acknowledged before its copy
    /// can have been. TCP tells that by timestamps (Eifel, RFC 3522), here the time tells.
    fn was_late(&self, flight: &Flight, now: u64) -> bool {
        // Of a READ, `resent` is behind all that was asked for.
        let behind = match self.recovery.run {
            0 | 1 => 0,
            run => u32::from(run).saturating_sub(1),
        };
        flight.is_first
            && !self.una.add(behind).is_before(flight.resent)
            && now.saturating_sub(flight.at) < self.least_round_trip()
    }

    /// A response moved the oldest packet on while something was missing. The next response may be
    /// right behind it, so that this does not say what is missing next.
    #[inline]
    pub(super) fn on_recovery_response(&mut self, now: u64) {
        let Some(flight) = self.recovery.flight else {
            return;
        };
        if matches!(self.recovery.peer, Peer::Keeps | Peer::Unknown) && self.was_late(&flight, now)
        {
            // Nothing else is missing, as far as is known. If the responder drops what comes early,
            // it says so when more comes.
            self.recovery.stop();
            self.losses.on_no_loss();
            self.window.on_no_loss(flight.resent.prev());
            return;
        }
        if self.una.is_after(flight.resent) {
            self.recovery.peer = Peer::Keeps;
        }
        if !self.una.is_before(flight.end) {
            self.recovery.stop();
        } else if !self.una.is_before(flight.resent) {
            self.recovery.skip_rest();
        }
    }

    /// An ACK moved the oldest packet on while something was missing.
    pub(super) fn on_recovery_ack(&mut self, now: u64) {
        self.on_recovery_response(now);
        let Some(flight) = self.recovery.flight else {
            return;
        };
        if self.una.is_before(flight.resent) {
            // More of it is on its way, or due.
            return;
        }
        let holes = flight.holes;
        let flight = flight.with_hole(self.una, self.recovery.run, self.has_trains());
        if flight.holes != holes && flight.is_often() {
            self.window.on_more_losses();
        }
        let has_response = self
            .oldest_assigned()
            .is_some_and(|wqe| wqe.wr.op.has_response());
        let keeps = self.recovery.peer == Peer::Keeps;
        if self.has_trains() && flight.longer < LOST_TRAINS && (keeps || !has_response) {
            let most = self.lost_together(flight.longer);
            self.resend(flight, most, now);
            return;
        }
        if flight.longer == 0 || (keeps && flight.longer < SINGLE_HOLES) {
            self.resend(flight, 1, now);
            return;
        }
        match self.recovery.peer {
            // If it was kept, its response comes after the ACK.
            _ if has_response => {}
            Peer::Unknown => self.recovery.peer = Peer::Dropped,
            Peer::Dropped => self.recovery.peer = Peer::Drops,
            Peer::Keeps => self.recovery.keeps_fewer = true,
            Peer::Drops => {}
        }
        self.rewind(now);
    }
}
