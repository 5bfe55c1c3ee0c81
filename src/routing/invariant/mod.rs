//! Invariants, decided for all requests: proven, refuted by a request, dependent on what nobody can tell, or unused (D120).
//!
//! # The problem
//!
//! "Nobody opens an admin page without a login" is about requests that nobody has thought of, and about routes of other
//! sources. Examples prove nothing of that sort.
//!
//! # The idea
//!
//! The requests that an edge and a route treat alike are finitely many classes ([`behaviour`](super::behaviour)), which are
//! split at the borders of scopes and exemptions. For each class in its scope, an invariant is met (`requirement.rs`, `kept_modules.rs`),
//! or there is a flaw (`flaw.rs`): one that is certain, with a request that shows it ([`Breach`]), or a doubt. [`prove`] judges a state,
//! [`prove_change`] the state after a change, and [`enforce`] the change, of which it looks only at what the change can affect
//! (`changed_requests.rs`). For manifests without a store, [`prove_seen`] also counts what these do not show ([`Unseen`]). A proof
//! takes long, so it is done before a commit, and counts in it unless others have changed what it depends on
//! ([`VerdictInputs`]).
//!
//! # An example
//!
//! The invariant requires `oidc` or `mutual_tls` for `*.internal.example.com`. Another source adds an edge with
//! `wiki.internal.example.com:443` and a route `/`. The commit is refused with `GET https://wiki.internal.example.com/`,
//! which reaches a backend without either, at the manifest of the route.
//!
//! # What it never does
//!
//! It evaluates no expression of a policy and knows no addresses of an IP policy. What depends on these is never taken for
//! proven. It does not know which other spellings of a path an upstream understands: it compares texts, as routes do.

mod behind_others;
mod breach_group;
mod change;
mod changed_requests;
mod flaw;
mod guessed_order;
mod invariant_index;
mod kept_modules;
mod proof;
mod requirement;
mod standing;
#[cfg(test)]
mod tests;
mod unseen;
mod verdict_inputs;

pub(crate) use behind_others::broken_behind_others;
pub(crate) use breach_group::BreachGroup;
pub(crate) use change::{enforce, is_refused, prove_change};
pub(crate) use changed_requests::depend_on;
pub(crate) use guessed_order::decided_by_ids;
pub use proof::ProofAnswer;
pub(crate) use proof::{Proof, prove};
pub(crate) use standing::Breach;
pub(crate) use unseen::{RequestTaken, Unseen, prove_seen};
pub(crate) use verdict_inputs::VerdictInputs;
