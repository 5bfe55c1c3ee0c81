//! The behaviour diff: which requests a plan treats differently, and how.
//!
//! # The problem
//!
//! A plan says which objects change. Before a merge, a team wants to know which requests are treated differently, and
//! whether anything is open that was closed.
//!
//! # The idea
//!
//! Classes of requests with different fates before and after the plan
//! ([`behaviour`](crate::routing::behaviour)) are put into words (`wording.rs`), and those with the same words and the
//! same edges are one [`BehaviourChange`] with the patterns of its requests (`patterns.rs`). What opens access comes
//! first, and what weakens TLS next. A restriction that stays opens access, too, if it may admit somebody who was refused: each
//! module says so (`Module::access_change`).
//!
//! # An example
//!
//! ```text
//! ! https://shop.example.com/admin/*  opens: `oauth` required → open
//!   https://shop.example.com/api/*    backend bkd_old → bkd_new; loses `circuit_breaker`
//! ```
//!
//! # What it never does
//!
//! It shows no configuration of a module, and so no secret, and does not tell whether two routes have the same one: requests that
//! change their route have "the secret of another route". It is complete: a request in no listed class is treated alike
//! in both states. All requests at once and those of TLS edges are in no class, and are compared apart (`unrouted.rs`). A plan
//! that changes what nothing here compares, such as a certificate, is never called a refactoring.

mod changes;
mod diff;
mod patterns;
mod request_difference;
mod text;
mod unrouted;
pub(super) mod wording;

pub use diff::{BehaviourChange, BehaviourDiff, RequestPattern};
pub(crate) use request_difference::request_difference;
pub(crate) use text::{closing_lines, lines, stopping_lines, summary};
