//! The classes of work, and their places (D52, D98).

use std::num::NonZero;

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

/// The default number of streams of changes.
pub(crate) const DEFAULT_WATCHERS: usize = 100;

/// Plans and applies, and the exports of a store. Some places are reserved for applies, so that plans never keep one waiting
/// for longer than another apply.
pub(in crate::server) const RECONCILIATIONS: Class = Class {
    name: "reconciliations",
    what: "reconciliations",
    running: 3,
    waiting: 12,
    reserved_running: 1,
    reserved_waiting: 4,
    whose: "the owner of the API key",
    owner_running: Share::Most(1),
    owner_waiting: 1,
    retry_after: 5,
};

/// The large bodies of reconciliations, while they are received and until they run: this limits the memory for them. Some
/// places are reserved for applies.
pub(in crate::server) const UPLOADS: Class = Class {
    name: "uploads",
    what: "manifest uploads",
    running: 8,
    waiting: 0,
    reserved_waiting: 0,
    reserved_running: 2,
    owner_waiting: 0,
    ..RECONCILIATIONS
};

/// Filtered lists, and reads of the history.
pub(in crate::server) const SEARCHES: Class = Class {
    name: "searches",
    what: "searches",
    running: 2,
    waiting: 64,
    reserved_running: 0,
    reserved_waiting: 0,
    owner_waiting: 16,
    ..RECONCILIATIONS
};

/// Proofs of the invariants (D120). Whoever waits while another one proves gets the same answers.
pub(in crate::server) const PROOFS: Class = Class { name: "proofs", what: "proofs", running: 1, ..SEARCHES };

/// Reads of earlier revisions: each has a state of its own in memory.
pub(in crate::server) const EARLIER_REVISIONS: Class =
    Class { name: "earlier_revisions", what: "reads of earlier revisions", waiting: 32, owner_waiting: 8, ..SEARCHES };

/// Backups: each reads all files of the store, as fast as its client takes them.
pub(in crate::server) const BACKUPS: Class =
    Class { name: "backups", what: "backups", running: 2, waiting: 0, owner_waiting: 0, retry_after: 30, ..SEARCHES };

/// Webhooks whose bodies are there. Nobody has authenticated their senders yet, so they have no owner.
pub(in crate::server) const WEBHOOKS: Class =
    Class { name: "webhooks", what: "webhooks", running: 2, waiting: 6, ..SEARCHES };

/// Requests that ask an OpenID Connect provider (D117). Whoever sends them is not signed in yet: the owner is an address.
pub(in crate::server) const SIGN_INS: Class = Class {
    name: "sign_ins",
    what: "sign-ins",
    running: 8,
    waiting: 32,
    whose: "your address",
    owner_running: Share::Most(2),
    owner_waiting: 8,
    ..SEARCHES
};

/// Encryptions of the store with new keys (D96).
pub(in crate::server) const REKEYS: Class =
    Class { name: "rekeys", what: "key rotations", running: 1, waiting: 0, owner_waiting: 0, ..SEARCHES };

/// Requests that wait for the response of the server that writes (D115), which may be slow or gone. Most places for requests are
/// left to those that this server answers itself.
pub(in crate::server) const FORWARDS: Class = Class {
    name: "forwards",
    what: "forwarded requests",
    running: 64,
    waiting: 192,
    owner_running: Share::OneIn(2),
    owner_waiting: 64,
    retry_after: 1,
    ..SEARCHES
};

/// The threads that wait for these responses, also of requests whose clients are gone: such a thread cannot be stopped before the
/// response comes.
pub(in crate::server) const FORWARD_THREADS: Class = Class {
    name: "forward_threads",
    what: "requests to the server that writes",
    running: 128,
    waiting: 0,
    owner_waiting: 0,
    ..FORWARDS
};

/// Requests that wait for a revision which a server that follows does not have yet (D115). Each costs its connection, and little
/// else.
pub(in crate::server) const CATCH_UPS: Class = Class {
    name: "catch_ups",
    what: "requests that wait for a revision",
    running: 1024,
    waiting: 0,
    owner_running: Share::OneIn(2),
    owner_waiting: 0,
    retry_after: 1,
    ..SEARCHES
};

/// Requests with a token that a server that follows does not know, and a revision that it does not have yet: their key may be made in
/// that one (D115). Whoever sends them is not authenticated: the owner is an address, and the few places only spare clients a
/// request.
pub(in crate::server) const UNKNOWN_KEYS: Class = Class {
    name: "unknown_keys",
    what: "requests with an unknown key that wait for a revision",
    running: 64,
    whose: "your address",
    owner_running: Share::Most(4),
    ..CATCH_UPS
};

/// All requests, while the server works for them (D98).
pub(in crate::server) fn requests(most: usize) -> Class {
    Class {
        name: "requests",
        what: "requests",
        running: most,
        waiting: 0,
        owner_running: Share::OneInWhenShort(4),
        owner_waiting: 0,
        retry_after: 1,
        ..SEARCHES
    }
}

/// Streams of changes (D80). A quarter is reserved for gateways.
pub(in crate::server) fn streams(most: usize) -> Class {
    Class {
        name: "watch",
        what: "change streams",
        running: most,
        waiting: 0,
        reserved_running: most / 4,
        reserved_waiting: 0,
        owner_running: Share::OneIn(4),
        owner_waiting: 0,
        retry_after: 30,
        whose: RECONCILIATIONS.whose,
    }
}

/// The configurations of gateways (D94). No other work has these places: it would stop every change on its way to traffic.
pub(in crate::server) fn gateway_reads() -> Class {
    Class { name: "gateway_reads", what: "reads of the gateway configuration", ..renderings() }
}

/// Changes by single requests, while it is judged what they do to invariants (D120).
pub(in crate::server) fn judgements() -> Class {
    Class {
        name: "judgements",
        what: "changes on which invariants depend",
        waiting: 1024,
        owner_running: Share::Most(1),
        owner_waiting: 256,
        retry_after: 1,
        ..renderings()
    }
}

/// Responses that take long to render (D71). They take turns by owner and are never refused, because all that each of them
/// holds is a snapshot. Half of the processors are left to other requests.
pub(in crate::server) fn renderings() -> Class {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    Class {
        name: "renderings",
        what: "lists",
        running: (processors / 2).max(1),
        waiting: usize::MAX,
        owner_running: Share::Most(usize::MAX),
        owner_waiting: usize::MAX,
        ..SEARCHES
    }
}
