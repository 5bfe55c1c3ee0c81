//! A class of work: how many of its requests run and wait, and which part of them an owner has (D52, D98).

/// Which of the places of a class a request can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SlotPool {
    /// Only the places for everybody.
    Shared,
    /// Also the reserved ones.
    Reserved,
}

/// How many requests of one owner run at a time.
#[derive(Debug, Clone, Copy)]
pub(in crate::server::limits) enum Share {
    /// A number.
    Most(usize),
    /// One in so many of the places that other owners leave, so that some are left for every further owner; at least one.
    OneIn(usize),
    /// One in so many of all places, while more than half of them are taken; otherwise any number.
    OneInWhenShort(usize),
}

/// A class of requests, and its places.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Class {
    /// The label of the metrics.
    pub(super) name: &'static str,
    /// The requests, in errors.
    pub(super) what: &'static str,
    /// The requests that run at a time.
    pub(super) running: usize,
    /// The requests that wait for their turn.
    pub(super) waiting: usize,
    /// The part of `running` that only [`SlotPool::Reserved`] can have.
    pub(super) reserved_running: usize,
    /// The part of `waiting` that only [`SlotPool::Reserved`] can have.
    pub(super) reserved_waiting: usize,
    /// The holder of a share, in errors.
    pub(super) whose: &'static str,
    /// The requests of one owner that run at a time, in each pool.
    pub(super) owner_running: Share,
    /// The requests of one owner that wait, in each pool.
    pub(super) owner_waiting: usize,
    /// When a refused client should try again, in seconds.
    pub(super) retry_after: u64,
}

impl Class {
    /// Declares a class without places. An owner has one that runs, and none that waits.
    pub(super) const fn new(name: &'static str, what: &'static str) -> Self {
        Self {
            name,
            what,
            running: 0,
            waiting: 0,
            reserved_running: 0,
            reserved_waiting: 0,
            whose: "the owner of the API key",
            owner_running: Share::Most(1),
            owner_waiting: 0,
            retry_after: 5,
        }
    }

    /// Sets how many requests run and wait.
    pub(super) const fn places(self, running: usize, waiting: usize) -> Self {
        Self { running, waiting, ..self }
    }

    /// Reserves a part of them.
    pub(super) const fn reserving(self, reserved_running: usize, reserved_waiting: usize) -> Self {
        Self { reserved_running, reserved_waiting, ..self }
    }

    /// Sets how many requests of an owner run and wait.
    pub(super) const fn of_owner(self, owner_running: Share, owner_waiting: usize) -> Self {
        Self { owner_running, owner_waiting, ..self }
    }

    /// Sets how many requests of an address run and wait, which stands for an owner.
    pub(super) const fn of_address(self, owner_running: Share, owner_waiting: usize) -> Self {
        Self { whose: "your address", owner_running, owner_waiting, ..self }
    }

    /// Sets when a refused client should try again, in seconds.
    pub(super) const fn retry_after(self, retry_after: u64) -> Self {
        Self { retry_after, ..self }
    }
}

/// The default number of streams of changes.
pub(crate) const DEFAULT_WATCHERS: usize = 100;
