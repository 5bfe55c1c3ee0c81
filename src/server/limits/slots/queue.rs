//! The places of a class: who runs, who waits, and whose turn is next.
//!
//! Each request of an owner has a turn that is later than that of the owner's request before it, and never earlier than the
//! turn that was given last. The earliest turn is next: owners alternate, however many requests each of them sends. `a` sends
//! three requests, then `b` sends one:
//!
//! ```text
//! a1 turn 1   runs
//! a2 turn 2   waits
//! a3 turn 3   waits
//! b1 turn 1   waits     <- next, although it came last: its turn is the earliest
//! ```
//!
//! An owner is forgotten once it has nothing here and its last turn is past. Otherwise it could begin anew each time, with
//! the earliest turn.

use tokio::sync::oneshot;

use super::classes::{Class, Share, SlotPool};
use crate::server::prelude::*;

/// A group whose requests take turns. All requests without an owner are one group, which has no share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct TurnGroup {
    /// The owner of the API key.
    pub(super) owner: Option<Id>,
    /// An owner has a share of each pool.
    pub(super) pool: SlotPool,
}

/// Numbers of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::server) struct PlaceCounts {
    /// Running requests.
    pub(in crate::server) running: usize,
    /// Waiting requests.
    pub(super) waiting: usize,
}

/// Why a request gets no place, with the requests that its owner or all have.
#[derive(Debug)]
pub(in crate::server) enum NoPlace {
    /// The owner has reached its share.
    Owner(PlaceCounts),
    /// The server has no more.
    Full(PlaceCounts),
}

/// The account of a group.
#[derive(Default)]
struct Account {
    counts: PlaceCounts,
    /// The turn of its last request.
    turn: u64,
}

/// A request that waits.
struct Waiter {
    group: TurnGroup,
    turn: u64,
    number: u64,
    wake: oneshot::Sender<()>,
}

/// The requests of a class.
#[derive(Default)]
pub(super) struct PlaceQueue {
    accounts: HashMap<TurnGroup, Account>,
    waiters: Vec<Waiter>,
    shared: PlaceCounts,
    reserved: PlaceCounts,
    /// The latest turn that was given.
    turn: u64,
    /// The number of the last request.
    number: u64,
}

impl PlaceQueue {
    /// The number of all requests.
    pub(super) fn all(&self) -> PlaceCounts {
        let (shared, reserved) = (self.shared, self.reserved);
        PlaceCounts { running: shared.running + reserved.running, waiting: shared.waiting + reserved.waiting }
    }

    /// Lets a request run or wait. Returns its number, and what tells that its turn has come if it waits.
    pub(super) fn enter(
        &mut self,
        class: &Class,
        group: &TurnGroup,
    ) -> Result<(u64, Option<oneshot::Receiver<()>>), NoPlace> {
        self.check(class, group)?;
        let may_run = self.may_run(class, group);
        self.number += 1;
        let (number, earliest) = (self.number, self.turn);
        let account = self.accounts.entry(group.clone()).or_default();
        let turn = earliest.max(account.turn + 1);
        account.turn = turn;
        if may_run {
            self.start(group, turn);
            return Ok((number, None));
        }
        let (wake, woken) = oneshot::channel();
        self.waiters.push(Waiter { group: group.clone(), turn, number, wake });
        self.count(group, |counts| counts.waiting += 1);
        Ok((number, Some(woken)))
    }

    /// Lets a request that runs count for another group of its pool, unless that one has its share.
    pub(super) fn transfer(&mut self, class: &Class, from: &TurnGroup, to: &TurnGroup) -> Result<(), NoPlace> {
        let own = self.counts(to);
        if own.running >= self.most_running(class, to) {
            return Err(NoPlace::Owner(own));
        }
        self.count(from, |counts| counts.running = counts.running.saturating_sub(1));
        self.accounts.entry(to.clone()).or_default();
        self.count(to, |counts| counts.running += 1);
        Ok(())
    }

    /// Ends a request that runs or waits. Returns what wakes the requests that run next.
    pub(super) fn leave(&mut self, class: &Class, group: &TurnGroup, number: u64) -> Vec<oneshot::Sender<()>> {
        match self.waiters.iter().position(|waiter| waiter.number == number) {
            Some(at) => {
                self.waiters.remove(at);
                self.count(group, |counts| counts.waiting = counts.waiting.saturating_sub(1));
                // The request has not used its turn.
                if let Some(account) = self.accounts.get_mut(group) {
                    account.turn = account.turn.saturating_sub(1);
                }
            }
            None => self.count(group, |counts| counts.running = counts.running.saturating_sub(1)),
        }
        let latest = self.turn;
        // Without an account, a group could have the earliest turn each time.
        self.accounts.retain(|_, account| account.counts != PlaceCounts::default() || account.turn >= latest);
        self.start_next(class)
    }

    fn start_next(&mut self, class: &Class) -> Vec<oneshot::Sender<()>> {
        let mut next = Vec::new();
        while self.all().running < class.running {
            let able = self.waiters.iter().enumerate().filter(|(_, waiter)| self.may_run(class, &waiter.group));
            let first = able.min_by_key(|(_, waiter)| (waiter.turn, waiter.number)).map(|(at, _)| at);
            let Some(at) = first else { break };
            let Waiter { group, turn, wake, .. } = self.waiters.remove(at);
            self.count(&group, |counts| counts.waiting = counts.waiting.saturating_sub(1));
            self.start(&group, turn);
            next.push(wake);
        }
        next
    }

    fn start(&mut self, group: &TurnGroup, turn: u64) {
        self.turn = self.turn.max(turn);
        self.count(group, |counts| counts.running += 1);
    }

    /// Counts a request for its group and its pool.
    fn count(&mut self, group: &TurnGroup, change: impl Fn(&mut PlaceCounts)) {
        if let Some(account) = self.accounts.get_mut(group) {
            change(&mut account.counts);
        }
        change(match group.pool {
            SlotPool::Shared => &mut self.shared,
            SlotPool::Reserved => &mut self.reserved,
        });
    }

    fn may_run(&self, class: &Class, group: &TurnGroup) -> bool {
        let is_free = group.pool == SlotPool::Reserved
            || self.shared.running < class.running.saturating_sub(class.reserved_running);
        is_free && self.all().running < class.running && self.counts(group).running < self.most_running(class, group)
    }

    /// Returns why a request can neither run nor wait now, if it cannot.
    pub(super) fn check(&self, class: &Class, group: &TurnGroup) -> Result<(), NoPlace> {
        if self.may_run(class, group) { Ok(()) } else { self.check_wait(class, group) }
    }

    fn check_wait(&self, class: &Class, group: &TurnGroup) -> Result<(), NoPlace> {
        let own = self.counts(group);
        // Whoever has less than its share is told that others have the places.
        let has_share = own.waiting > 0 || own.running >= self.most_running(class, group);
        if group.owner.is_some() && has_share && own.waiting >= class.owner_waiting {
            return Err(NoPlace::Owner(own));
        }
        let is_free = group.pool == SlotPool::Reserved
            || self.shared.waiting < class.waiting.saturating_sub(class.reserved_waiting);
        if is_free && self.all().waiting < class.waiting { Ok(()) } else { Err(NoPlace::Full(self.all())) }
    }

    /// How many requests of a group may run.
    fn most_running(&self, class: &Class, group: &TurnGroup) -> usize {
        match class.owner_running {
            _ if group.owner.is_none() => usize::MAX,
            Share::Most(most) => most,
            Share::OneInWhenShort(part) if self.all().running > class.running / 2 => {
                (class.running / part.max(1)).max(1)
            }
            Share::OneInWhenShort(_) => usize::MAX,
            Share::OneIn(part) => {
                let own = self.counts(group).running;
                let shared =
                    class.running.saturating_add(own).saturating_sub(class.reserved_running + self.shared.running);
                let all = class.running.saturating_add(own).saturating_sub(self.all().running);
                (shared.min(all) / part.max(1)).max(1)
            }
        }
    }

    fn counts(&self, group: &TurnGroup) -> PlaceCounts {
        self.accounts.get(group).map_or_else(PlaceCounts::default, |account| account.counts)
    }
}
