// SPDX-License-Identifier: GPL-2.0

//! A device, its software and some senders, as a system that takes one step at a time. The caller
//! chooses the step.
//!
//! The software does what the documentation tells applications to do. Its result is compared with
//! software matching: messages in the order in which they came, receives in the order in which they
//! were posted.

use std::collections::VecDeque;

use crate::list::{
    matcher,
    Tags, //
};
use crate::naive::Naive;

/// A receive that the application posts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Receive {
    pub tag: u64,
    pub mask: u64,
}

impl Receive {
    fn takes(&self, tag: u64) -> bool {
        tag & self.mask == self.tag
    }
}

/// A message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Message {
    pub id: usize,
    pub tag: u64,
    /// It has several packets: other things happen between its start and end.
    pub long: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Op {
    Add {
        receive: usize,
        handle: u32,
        count: u32,
    },
    Delete {
        handle: u32,
        count: u32,
    },
    Sync {
        count: u32,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Completion {
    Matched {
        handle: u32,
        message: usize,
    },
    Unexpected {
        message: usize,
    },
    /// A delete failed.
    NotDeleted,
}

/// The first message of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum First {
    /// It has not begun.
    Waiting,
    /// It has begun, and no tag has taken it.
    Unexpected,
    /// It has begun; the handle of the tag that took it.
    Matched(u32),
}

/// How far a sender's connection is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Sender {
    messages: VecDeque<Message>,
    first: First,
    /// The connection can break in the middle of a message.
    breaks: bool,
}

/// A step that somebody may take now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The application posts its next receive.
    Post,
    /// The application handles its oldest completion.
    Poll,
    /// The application reports the messages that it has handled.
    Report,
    /// The device executes the oldest operation.
    Execute,
    /// A sender's next message arrives; of a long one, its start or its end.
    Arrive(usize),
    /// A sender's connection breaks.
    Break(usize),
}

/// Everything.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct World {
    receives: Vec<Receive>,
    tags: Vec<u64>,
    pub senders: Vec<Sender>,
    device: Naive,
    ring: VecDeque<Op>,
    completions: VecDeque<Completion>,
    // The software.
    next_post: usize,
    /// Posted to the device: receive and handle.
    posted: Vec<(usize, u32)>,
    unexpected: Vec<usize>,
    handled: u32,
    reported: u32,
    free: VecDeque<u32>,
    // What happened.
    /// Messages in the order in which they came.
    order: Vec<usize>,
    /// Which message each receive got.
    got: Vec<Option<usize>>,
}

/// The real list, led through the same steps.
pub struct Device(Option<Tags>);

impl World {
    /// `phases`: the device lets tags wait.
    pub fn new(receives: &[Receive], senders: &[(&[(u64, bool)], bool)], phases: bool) -> Self {
        let mut tags = Vec::new();
        let senders = senders
            .iter()
            .map(|(messages, breaks)| Sender {
                messages: messages
                    .iter()
                    .map(|&(tag, long)| {
                        tags.push(tag);
                        Message {
                            id: tags.len() - 1,
                            tag,
                            long,
                        }
                    })
                    .collect(),
                first: First::Waiting,
                breaks: *breaks,
            })
            .collect();
        let n = receives.len() as u32;
        Self {
            receives: receives.to_vec(),
            tags,
            senders,
            device: Naive::new(n, phases),
            ring: VecDeque::new(),
            completions: VecDeque::new(),
            next_post: 0,
            posted: Vec::new(),
            unexpected: Vec::new(),
            handled: 0,
            reported: 0,
            free: (0..n).collect(),
            order: Vec::new(),
            got: vec![None; receives.len()],
        }
    }

    /// The real list that belongs to it, if the device is to be like that.
    pub fn device(&self, real: bool) -> Device {
        let n = self.receives.len();
        Device(real.then(|| matcher(n as u32, n.next_power_of_two())))
    }

    /// What can happen next. Nothing: all is done.
    pub fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.next_post < self.receives.len() && !self.free.is_empty() {
            steps.push(Step::Post);
        }
        if !self.completions.is_empty() {
            steps.push(Step::Poll);
        }
        if self.handled != self.reported {
            steps.push(Step::Report);
        }
        if !self.ring.is_empty() {
            steps.push(Step::Execute);
        }
        for (i, s) in self.senders.iter().enumerate() {
            if !s.messages.is_empty() {
                steps.push(Step::Arrive(i));
                if s.breaks && s.first != First::Waiting {
                    steps.push(Step::Break(i));
                }
            }
        }
        steps
    }

    /// Takes a step. An error says which promise was broken.
    pub fn step(&mut self, step: Step, device: &mut Device) -> Result<(), String> {
        match step {
            Step::Post => self.post(),
            Step::Poll => self.poll()?,
            Step::Report => {
                let count = self.report();
                self.ring.push_back(Op::Sync { count });
            }
            Step::Execute => self.execute(device)?,
            Step::Arrive(sender) => self.arrive(sender, device)?,
            Step::Break(sender) => self.broken(sender, device),
        }
        device.compare(&self.device)
    }

    fn report(&mut self) -> u32 {
        self.reported = self.handled;
        self.handled
    }

    /// The application posts a receive: the messages that wait come first.
    fn post(&mut self) {
        let receive = self.next_post;
        self.next_post += 1;
        let r = self.receives[receive];
        let waits = self.unexpected.iter().position(|&m| r.takes(self.tags[m]));
        if let Some(at) = waits {
            self.got[receive] = Some(self.unexpected.remove(at));
            return;
        }
        let handle = self.free.pop_front().expect("checked in steps");
        self.posted.push((receive, handle));
        let count = self.report();
        self.ring.push_back(Op::Add {
            receive,
            handle,
            count,
        });
    }

    fn poll(&mut self) -> Result<(), String> {
        match self.completions.pop_front().expect("checked in steps") {
            Completion::Matched { handle, message } => {
                let at = self
                    .posted
                    .iter()
                    .position(|&(_, h)| h == handle)
                    .ok_or("a tag was matched that the software had taken back")?;
                let (receive, _) = self.posted.remove(at);
                self.free.push_back(handle);
                self.got[receive] = Some(message);
            }
            Completion::Unexpected { message } => {
                self.handled += 1;
                let tag = self.tags[message];
                let taker = self
                    .posted
                    .iter()
                    .position(|&(r, _)| self.receives[r].takes(tag));
                match taker {
                    Some(at) => {
                        let (receive, handle) = self.posted.remove(at);
                        self.got[receive] = Some(message);
                        let count = self.report();
                        self.ring.push_back(Op::Delete { handle, count });
                        self.free.push_back(handle);
                    }
                    None => self.unexpected.push(message),
                }
            }
            Completion::NotDeleted => {
                return Err("a message took a tag that an earlier one was given".into())
            }
        }
        Ok(())
    }

    fn execute(&mut self, device: &mut Device) -> Result<(), String> {
        let sync = |world: &mut Self, device: &mut Device, count| {
            device.with(|d| d.sync(count).expect("as many as there were"));
            assert!(world.device.sync(count), "as many as there were");
        };
        match self.ring.pop_front().expect("checked in steps") {
            Op::Add {
                receive,
                handle,
                count,
            } => {
                sync(self, device, count);
                let r = self.receives[receive];
                device.with(|d| d.add(handle, r.tag, r.mask).expect("room"));
                self.device.add(handle, r.tag, r.mask).expect("room");
            }
            Op::Delete { handle, count } => {
                // The count last: the tag must not match in between.
                let deleted = self.device.delete(handle);
                device.with(|d| assert_eq!(d.delete(handle), deleted));
                if deleted.is_none() {
                    self.completions.push_back(Completion::NotDeleted);
                }
                sync(self, device, count);
            }
            Op::Sync { count } => sync(self, device, count),
        }
        Ok(())
    }

    fn arrive(&mut self, sender: usize, device: &mut Device) -> Result<(), String> {
        let s = &mut self.senders[sender];
        let m = s.messages[0];
        let taken = match s.first {
            First::Matched(handle) => Some(handle),
            First::Unexpected => None,
            First::Waiting => {
                let taken = self.device.take(m.tag);
                device.with(|d| {
                    let real = d.find(m.tag).and_then(|index| d.take(index));
                    assert_eq!(real, taken);
                });
                match taken {
                    Some(handle) => {
                        self.order.push(m.id);
                        self.completions.push_back(Completion::Matched {
                            handle,
                            message: m.id,
                        });
                    }
                    None => {
                        self.device.count();
                        device.with(|d| d.count_unexpected());
                    }
                }
                if m.long {
                    s.first = taken.map_or(First::Unexpected, First::Matched);
                    return Ok(());
                }
                taken
            }
        };
        s.first = First::Waiting;
        s.messages.pop_front();
        if taken.is_none() {
            self.order.push(m.id);
            self.completions
                .push_back(Completion::Unexpected { message: m.id });
        }
        Ok(())
    }

    fn broken(&mut self, sender: usize, device: &mut Device) {
        let s = &mut self.senders[sender];
        s.messages.clear();
        if core::mem::replace(&mut s.first, First::Waiting) == First::Unexpected {
            self.device.uncount();
            device.with(|d| d.uncount_unexpected());
        }
    }

    /// All is done: did everybody get what software matching would have given?
    pub fn verify(&self) -> Result<(), String> {
        let mut expected = vec![None; self.receives.len()];
        for &m in &self.order {
            let taker = (0..self.receives.len())
                .find(|&r| expected[r].is_none() && self.receives[r].takes(self.tags[m]));
            if let Some(r) = taker {
                expected[r] = Some(m);
            }
        }
        if self.got != expected {
            return Err(format!(
                "messages came as {:?}: receives got {:?}, not {:?}",
                self.order, self.got, expected
            ));
        }
        if self.device.has_waiting() {
            return Err("tags wait for ever".into());
        }
        Ok(())
    }
}

impl Device {
    fn with(&mut self, f: impl FnOnce(&mut Tags)) {
        if let Some(tags) = &mut self.0 {
            f(tags);
        }
    }

    fn compare(&mut self, naive: &Naive) -> Result<(), String> {
        let Some(tags) = &self.0 else {
            return Ok(());
        };
        let same = tags.len() as usize == naive.tags.len()
            && tags.unexpected() == naive.unexpected
            && tags.is_in_step() == naive.is_in_step()
            && tags.has_waiting() == naive.has_waiting();
        if same {
            Ok(())
        } else {
            Err("the list is not what it should be".into())
        }
    }
}
