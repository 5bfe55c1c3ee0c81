//! All classes of work, and their places (D52, D98).

use std::num::NonZero;

use super::Slots;
use super::classes::{Class, DEFAULT_WATCHERS, Share};

/// Declares the places of requests that cost much, each with its class.
macro_rules! admissions {
    ($($(#[$about:meta])* $name:ident: $class:expr,)*) => {
        /// The places of requests that cost much (D52).
        pub(crate) struct Admissions {
            $($(#[$about])* pub $name: Slots,)*
        }

        impl Default for Admissions {
            fn default() -> Self {
                Self { $($name: Slots::new($class),)* }
            }
        }

        impl Admissions {
            /// All classes, for the metrics.
            pub(crate) fn all(&self) -> Vec<&Slots> {
                vec![$(&self.$name),*]
            }
        }
    };
}

admissions! {
    /// Plans and applies, and the exports of a store. Some places are reserved for applies, so that plans never keep one waiting
    /// for longer than another apply.
    reconciliations: Class::new("reconciliations", "reconciliations")
        .places(3, 12)
        .reserving(1, 4)
        .of_owner(Share::Most(1), 1),
    /// The large bodies of reconciliations, while they are received and until they run: this limits the memory for them. Some
    /// places are reserved for applies.
    uploads: Class::new("uploads", "manifest uploads").places(8, 0).reserving(2, 0),
    /// Filtered lists, which a long reconciliation must not hold up, and reads of the history.
    searches: Class::new("searches", "searches").places(2, 64).of_owner(Share::Most(1), 16),
    /// Proofs of the invariants (D120). Whoever waits while another one proves gets the same answers.
    proofs: Class::new("proofs", "proofs").places(1, 64).of_owner(Share::Most(1), 16),
    /// Reads of earlier revisions: each has a state of its own in memory.
    earlier: Class::new("earlier_revisions", "reads of earlier revisions").places(2, 32).of_owner(Share::Most(1), 8),
    /// Responses that take long to render (D71). They take turns by owner and are never refused, because all that each of them
    /// holds is a snapshot. Half of the processors are left to other requests.
    renderings: unlimited("renderings", "lists"),
    /// The configurations of gateways (D94). No other work has these places: it would stop every change on its way to traffic.
    gateway_reads: unlimited("gateway_reads", "reads of the gateway configuration"),
    /// Changes by single requests, while it is judged what they do to invariants (D120).
    judgements: Class::new("judgements", "changes on which invariants depend")
        .places(half_of_processors(), 1024)
        .of_owner(Share::Most(1), 256)
        .retry_after(1),
    watchers: streams(DEFAULT_WATCHERS),
    /// Backups: each reads all files of the store, as fast as its client takes them.
    backups: Class::new("backups", "backups").places(2, 0).retry_after(30),
    /// Webhooks whose bodies are there. Nobody has authenticated their senders yet, so they have no owner.
    hooks: Class::new("webhooks", "webhooks").places(2, 6),
    /// Requests that ask an OpenID Connect provider (D117). Whoever sends them is not signed in yet: the owner is an address.
    sign_ins: Class::new("sign_ins", "sign-ins").places(8, 32).of_address(Share::Most(2), 8),
    /// Encryptions of the store with new keys (D96): one client at a time.
    rekeys: Class::new("rekeys", "key rotations").places(1, 0),
    /// Requests that wait for the response of the server that writes (D115), which may be slow or gone. Most places for requests
    /// are left to those that this server answers itself.
    forwards: Class::new("forwards", "forwarded requests").places(64, 192).of_owner(Share::OneIn(2), 64).retry_after(1),
    /// Requests that wait for a revision which a server that follows does not have yet (D115). Each costs its connection, and
    /// little else.
    catch_ups: Class::new("catch_ups", "requests that wait for a revision")
        .places(1024, 0)
        .of_owner(Share::OneIn(2), 0)
        .retry_after(1),
    /// Requests with a token that a server that follows does not know, and a revision that it does not have yet: their key may be
    /// made in that one (D115). Whoever sends them is not authenticated: the owner is an address, and the few places only spare
    /// clients a request.
    unknown_keys: Class::new("unknown_keys", "requests with an unknown key that wait for a revision")
        .places(64, 0)
        .of_address(Share::Most(4), 0)
        .retry_after(1),
}

/// The threads that wait for the responses of the server that writes, also of requests whose clients are gone: such a thread
/// cannot be stopped before the response comes.
pub(in crate::server) const FORWARD_THREADS: Class =
    Class::new("forward_threads", "requests to the server that writes")
        .places(128, 0)
        .of_owner(Share::OneIn(2), 0)
        .retry_after(1);

/// All requests, while the server works for them (D98).
pub(in crate::server) fn requests(most: usize) -> Class {
    Class::new("requests", "requests").places(most, 0).of_owner(Share::OneInWhenShort(4), 0).retry_after(1)
}

/// Streams of changes (D80). A quarter is reserved for gateways.
pub(in crate::server) fn streams(most: usize) -> Class {
    let class = Class::new("watch", "change streams").places(most, 0).reserving(most / 4, 0);
    class.of_owner(Share::OneIn(4), 0).retry_after(30)
}

/// Work of which any number waits.
fn unlimited(name: &'static str, what: &'static str) -> Class {
    let class = Class::new(name, what).places(half_of_processors(), usize::MAX);
    class.of_owner(Share::Most(usize::MAX), usize::MAX)
}

fn half_of_processors() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    (processors / 2).max(1)
}
