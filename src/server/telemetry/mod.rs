//! Telemetry for operators: metrics, the access log, and the security log (D87, D95, D99).
//!
//! # The problem
//!
//! What people need to operate a server is made of what nobody must read: requests have tokens and secrets in paths,
//! headers and bodies. Telemetry is also a weapon: a client can send a million requests that are refused, to fill the
//! disk, to hide one line among them, or to give a metric a million labels.
//!
//! # The idea
//!
//! A request is described by a few words that cannot have a secret and have few values ([`request_labels`]): method, template
//! of the path, status, the ID of the key, the address. Handlers note what they learn in the task of the request, and
//! everything else is written in one place when the response is ready. Whatever can be repeated is counted instead of
//! written: the first ten lines of an address, the first event of a minute.
//!
//! | | For | Loses |
//! | --- | --- | --- |
//! | [`metrics`] | machines: how much, how long, what is true now | who it was |
//! | [`proofs`] | both: which invariants hold | the moment since the last proof |
//! | [`access_log`] | people: each request | further refusals without a key, which are counted |
//! | [`security`] | an investigation: who was refused what, who changed keys | nothing that changed something; what it lost is counted |
//!
//! # What it never does
//!
//! No path, query, header, body, token or secret is in any of them. No request waits for a log. Label cardinality is
//! bounded, so no client creates series without end.

pub(crate) mod access_log;
pub(crate) mod access_log_limit;
pub(crate) mod latest_entries;
pub(crate) mod metrics;
pub(crate) mod proofs;
pub(crate) mod request_labels;
mod request_span;
pub(crate) mod security;
