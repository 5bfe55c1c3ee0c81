//! Requests that were logged, sent once more through two states: which of them would be treated differently.
//!
//! # The problem
//!
//! A plan says which objects change, and not how many of yesterday's requests that concerns. A log has millions of them, and
//! a state 100,000 routes.
//!
//! # The idea
//!
//! An [`EdgeTable`](super::edge_table::EdgeTable) finds the edge and the route of a request without a look at all of them. A
//! [`ReplayWorker`](worker::ReplayWorker) remembers where the requests of a host and path go in both states; only requests whose
//! edge, route or modules differ between the two are treated step by step, once per method, and per User-Agent and address if a
//! step depends on them. What differs in the same way is one [`ReplayClass`](tally::ReplayClass).
//! Several workers count parts of a log, and their tallies are merged.
//!
//! For example, 4,000 requests to `/admin` of 12 clients needed a login before, and are forwarded after.
//!
//! # What it never does
//!
//! It guesses nothing: a step that depends on what no log has, such as a session or a header, is shown as such. Memory does
//! not grow with the log, only with what the two states tell apart.

mod decision_cache;
mod distinct;
pub(crate) mod tally;
#[cfg(test)]
mod tests;
pub(crate) mod worker;
