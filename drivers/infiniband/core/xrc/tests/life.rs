// SPDX-License-Identifier: GPL-2.0

//! Walks through everything that a few processes can do to an XRC target and its domain, in every
//! order. Checks after each step that the target lives exactly when it should.
//!
//! This is a host test: `cargo test -p xrc-models`. The counting is the code of the module. What
//! ib_core does around it (domain opens, the order in which the objects of a file are destroyed) is
//! modelled here, with one step for each point at which the lock of the domain is taken.

#[path = "../life.rs"]
mod life;

use life::{
    Life,
    Made,
    Outcome,
    ViewEnd, //
};
use std::collections::HashSet;

/// Views of one file: two show all that more would.
const VIEWS: u8 = 2;

/// What a process, or one context of it, has in hand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct File {
    /// It has the domain open.
    domain: bool,
    /// Handles of the target.
    views: u8,
    /// One of them is the view that the target was made with.
    first: bool,
    /// It is registered for the target.
    registered: bool,
    /// It exits, was killed or closes the device: its objects are being taken away, one by one, and
    /// it does nothing else.
    ending: bool,
}

const FRESH: File = File {
    domain: false,
    views: 0,
    first: false,
    registered: false,
    ending: false,
};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Domain {
    NotYet,
    Open,
    Gone,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct State<const N: usize> {
    files: [File; N],
    domain: Domain,
    /// The target, once it was made; it stays here after its death.
    target: Option<Life>,
    /// How often somebody was told to end it.
    ends: u8,
    /// Somebody destroyed its first view with a call, or another when nothing else was left, or it
    /// was made by number and had its last registration.
    destroyed: bool,
    made: Made,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    OpenDomain,
    CloseDomain,
    Create,
    CreateByNumber,
    CreatePersistent,
    OpenTarget,
    /// The view that the target was made with.
    DestroyFirst,
    /// Another.
    DestroyOther,
    Register,
    Unregister,
    /// Exit, a signal, `ibv_close_device`.
    End,
    /// What the kernel does next for a file that ends: a view, or at last the domain.
    TakeAway,
    /// Or a registration: which of the two goes first depends on which came first.
    TakeAwayRegistration,
}

const STEPS: [Step; 13] = [
    Step::OpenDomain,
    Step::CloseDomain,
    Step::Create,
    Step::CreateByNumber,
    Step::CreatePersistent,
    Step::OpenTarget,
    Step::DestroyFirst,
    Step::DestroyOther,
    Step::Register,
    Step::Unregister,
    Step::End,
    Step::TakeAway,
    Step::TakeAwayRegistration,
];

impl<const N: usize> State<N> {
    const START: Self = State {
        files: [FRESH; N],
        domain: Domain::NotYet,
        target: None,
        ends: 0,
        destroyed: false,
        made: Made::WithView,
    };

    fn views(&self) -> u32 {
        self.files.iter().map(|f| u32::from(f.views)).sum()
    }

    fn registrations(&self) -> u32 {
        self.files.iter().map(|f| u32::from(f.registered)).sum()
    }

    fn opens(&self) -> usize {
        self.files.iter().filter(|f| f.domain).count()
    }

    fn create_by_number(&mut self, i: usize, made: Made) {
        let mut target = Life::new(made);
        assert!(target.register());
        self.target = Some(target);
        self.made = made;
        self.files[i].registered = true;
    }

    fn close_view(&mut self, i: usize, end: ViewEnd) {
        self.files[i].views -= 1;
        if let Some(target) = &mut self.target {
            if target.close(end) == Outcome::Dies {
                self.ends += 1;
            }
        }
    }

    fn unregister(&mut self, i: usize) {
        self.files[i].registered = false;
        self.destroyed |= self.made == Made::ByNumber && self.registrations() == 0;
        if let Some(target) = &mut self.target {
            if target.unregister() == Outcome::Dies {
                self.ends += 1;
            }
        }
    }

    /// The last of the opens takes the domain along.
    fn close_domain(&mut self, i: usize) {
        self.files[i].domain = false;
        if self.opens() > 0 {
            return;
        }
        self.domain = Domain::Gone;
        if let Some(target) = &mut self.target {
            if target.domain_gone() == Outcome::Dies {
                self.ends += 1;
            }
        }
    }

    /// What follows if file `i` makes `step`; `None` if it cannot.
    fn step(mut self, i: usize, step: Step) -> Option<Self> {
        let file = self.files[i];
        if file.ending != matches!(step, Step::TakeAway | Step::TakeAwayRegistration) {
            return None;
        }
        match step {
            // A domain that is gone and opened anew is another one.
            Step::OpenDomain if !file.domain && self.domain != Domain::Gone => {
                self.domain = Domain::Open;
                self.files[i].domain = true;
            }
            // ib_core refuses while the file has views: EBUSY, and nothing changes.
            Step::CloseDomain if file.domain && file.views == 0 && !file.registered => {
                self.close_domain(i);
            }
            Step::Create if file.domain && self.target.is_none() => {
                let mut target = Life::new(Made::WithView);
                assert!(target.open());
                self.target = Some(target);
                self.files[i].views = 1;
                self.files[i].first = true;
            }
            Step::CreateByNumber if file.domain && self.target.is_none() => {
                self.create_by_number(i, Made::ByNumber);
            }
            Step::CreatePersistent if file.domain && self.target.is_none() => {
                self.create_by_number(i, Made::Persistent);
            }
            Step::Register if file.domain && !file.registered => {
                let alive = self.ends == 0;
                let target = self.target.as_mut()?;
                assert_eq!(target.register(), alive, "{self:?}");
                if !alive {
                    return None;
                }
                self.files[i].registered = true;
            }
            Step::Unregister if file.registered => self.unregister(i),
            Step::OpenTarget if file.domain && file.views < VIEWS => {
                let alive = self.ends == 0;
                let target = self.target.as_mut()?;
                assert_eq!(target.open(), alive, "{self:?}");
                if !alive {
                    return None;
                }
                self.files[i].views += 1;
            }
            Step::DestroyFirst if file.first => {
                self.files[i].first = false;
                self.destroyed = true;
                self.close_view(i, ViewEnd::DestroyedFirst);
            }
            Step::DestroyOther if file.views > u8::from(file.first) => {
                // Of others, and of its own.
                self.destroyed |=
                    self.made != Made::Persistent && self.views() == 1 && self.registrations() == 0;
                self.close_view(i, ViewEnd::DestroyedOther);
            }
            Step::End => self.files[i].ending = true,
            // The domain is busy as long as there is anything else.
            Step::TakeAway if file.views > 0 => self.close_view(i, ViewEnd::FileClosing),
            Step::TakeAwayRegistration if file.registered => self.unregister(i),
            Step::TakeAway if !file.registered => {
                // Somebody else comes in its place.
                self.files[i] = File {
                    domain: file.domain,
                    ..FRESH
                };
                if file.domain {
                    self.close_domain(i);
                }
            }
            _ => return None,
        }
        Some(self)
    }

    /// The promise.
    fn check(&self) {
        let Some(target) = self.target else { return };
        assert_eq!(target.views(), self.views(), "miscounted: {self:?}");
        assert_eq!(
            target.registrations(),
            self.registrations(),
            "miscounted: {self:?}"
        );
        let held = self.views() > 0 || self.registrations() > 0;
        let alive = self.domain == Domain::Open && (held || !self.destroyed);
        assert_eq!(self.ends, u8::from(!alive), "{self:?}");
    }
}

/// Visits all states; returns them.
fn explore<const N: usize>() -> HashSet<State<N>> {
    let mut seen = HashSet::from([State::<N>::START]);
    let mut todo = vec![State::<N>::START];
    while let Some(state) = todo.pop() {
        state.check();
        for i in 0..N {
            for step in STEPS {
                let Some(next) = state.step(i, step) else {
                    continue;
                };
                // Death is for ever.
                assert!(next.ends >= state.ends, "{state:?}");
                if seen.insert(next) {
                    todo.push(next);
                }
            }
        }
    }
    seen
}

#[test]
fn a_target_lives_exactly_as_long_as_promised() {
    let seen = explore::<4>();
    assert!(seen.len() > 10_000, "{}", seen.len());
    // The cases that the rules are about were among them.
    let orphan = |s: &&State<4>| s.target.is_some() && s.views() == 0 && s.ends == 0;
    assert!(seen.iter().any(|s| orphan(&s) && s.opens() == 1));
    assert!(seen
        .iter()
        .any(|s| s.destroyed && s.views() > 0 && s.ends == 0));
    assert!(seen
        .iter()
        .any(|s| s.ends == 1 && s.domain == Domain::Open && s.opens() == 4));
    // And those about receive QPs by number.
    let by_number = |s: &&State<4>| s.made == Made::ByNumber;
    assert!(seen
        .iter()
        .filter(by_number)
        .any(|s| s.registrations() == 0 && s.views() > 0 && s.ends == 0));
    assert!(seen
        .iter()
        .filter(by_number)
        .any(|s| s.registrations() > 0 && s.opens() == 1 && s.ends == 0));
    assert!(seen
        .iter()
        .any(|s| s.destroyed && s.made == Made::WithView && s.registrations() > 0 && s.ends == 0));
}

/// A persistent target outlives all who were registered for it or had it open, and goes with its
/// domain.
#[test]
fn a_persistent_target_goes_with_its_domain() {
    let mut s = State::<2>::START;
    for (i, step) in [
        (0, Step::OpenDomain),
        (1, Step::OpenDomain),
        (0, Step::CreatePersistent),
        (0, Step::Unregister),
        (1, Step::Register),
        (1, Step::OpenTarget),
        (1, Step::DestroyOther),
        (1, Step::Unregister),
        (1, Step::OpenTarget),
        (1, Step::DestroyOther),
        (0, Step::CloseDomain),
        (1, Step::CloseDomain),
    ] {
        assert_eq!(s.ends, 0);
        s = s.step(i, step).expect("possible");
        s.check();
    }
    assert_eq!(s.ends, 1);
}

/// One process alone gets its target back by number after it closed and opened the device, as long
/// as another keeps the domain.
#[test]
fn a_creator_may_come_back() {
    let mut s = State::<2>::START;
    for (i, step) in [
        (0, Step::OpenDomain),
        (1, Step::OpenDomain),
        (0, Step::Create),
        (0, Step::End),
        (0, Step::TakeAway),
        (0, Step::TakeAway),
        (0, Step::OpenDomain),
        (0, Step::OpenTarget),
        (0, Step::DestroyOther),
    ] {
        assert_eq!(s.ends, 0);
        s = s.step(i, step).expect("possible");
        s.check();
    }
    assert_eq!(s.ends, 1);
    assert_eq!(s.domain, Domain::Open);
}

/// A process that only opened the target lets go of it: the target outlives its maker all the same,
/// if the maker does not destroy it.
#[test]
fn an_opener_condemns_nothing_that_others_hold() {
    let mut s = State::<3>::START;
    for (i, step) in [
        (0, Step::OpenDomain),
        (1, Step::OpenDomain),
        (2, Step::OpenDomain),
        (0, Step::Create),
        (1, Step::OpenTarget),
        (1, Step::DestroyOther),
        (0, Step::End),
        (0, Step::TakeAway),
        (0, Step::TakeAway),
        // The last handle of all, once more.
        (2, Step::OpenTarget),
        (1, Step::OpenTarget),
        (1, Step::DestroyOther),
        (2, Step::DestroyOther),
    ] {
        assert_eq!(s.ends, 0);
        s = s.step(i, step).expect("possible");
        s.check();
    }
    assert_eq!(s.ends, 1);
    assert_eq!(s.domain, Domain::Open);
}

/// Whatever sequence of calls comes, sensible or not: the end is told once, nothing is opened after
/// it, and the count never goes below zero.
#[test]
fn no_sequence_of_calls_ends_it_twice() {
    fn walk(life: Life, views: u32, registrations: u32, dead: bool, depth: u32) {
        assert_eq!(life.views(), views);
        assert_eq!(life.registrations(), registrations);
        if depth == 0 {
            return;
        }
        let mut next = life;
        let opened = next.open();
        assert_eq!(opened, !dead);
        let more = views + u32::from(opened);
        walk(next, more, registrations, dead, depth - 1);
        let mut next = life;
        let registered = next.register();
        assert_eq!(registered, !dead);
        let more = registrations + u32::from(registered);
        walk(next, views, more, dead, depth - 1);
        for end in [
            ViewEnd::DestroyedFirst,
            ViewEnd::DestroyedOther,
            ViewEnd::FileClosing,
        ] {
            let mut next = life;
            let dies = next.close(end) == Outcome::Dies;
            assert!(!(dies && dead), "{life:?}");
            assert!(!dies || views + registrations <= 1, "{life:?}");
            let less = views.saturating_sub(1);
            walk(next, less, registrations, dead || dies, depth - 1);
        }
        let mut next = life;
        let dies = next.unregister() == Outcome::Dies;
        assert!(!(dies && dead), "{life:?}");
        assert!(!dies || views + registrations <= 1, "{life:?}");
        let less = registrations.saturating_sub(1);
        walk(next, views, less, dead || dies, depth - 1);
        let mut next = life;
        assert_eq!(next.domain_gone() == Outcome::Dies, !dead, "{life:?}");
        walk(next, views, registrations, true, depth - 1);
    }
    for made in [Made::WithView, Made::ByNumber, Made::Persistent] {
        walk(Life::new(made), 0, 0, false, 8);
    }
}
