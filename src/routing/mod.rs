//! Request routing: which edge and route handle a request, and the modules that it passes through.
//!
//! # The problem
//!
//! Many routes can match one request. `edgewright trace`, lints and warnings about plans must choose the one that the
//! gateway chooses.
//!
//! # The idea
//!
//! Host and port select the edge, the most specific hostport first. Among the edge's routes, a closer host wins over
//! any path, an exact path over a prefix, and a longer prefix over a shorter one (`selector.rs`). [`trace()`] looks at all
//! edges and routes for one request. For many requests, a [`RouteTable`](table::RouteTable) finds the route of an edge,
//! and an [`EdgeTable`](edge_table::EdgeTable) edge and route. The modules of both then act in a fixed order
//! (`order.rs`, `module_pipeline.rs`). [`behaviour`] answers questions about all requests,
//! [`invariant`] proves what must hold for them, and `replay/` compares two states by the requests of logs. `rivals.rs` finds the
//! routes without a source that take requests from declared ones.
//!
//! # An example
//!
//! `GET https://shop.example.com/cart/1` selects the edge with `shop.example.com:443` before the one with
//! `*.example.com:443`, and its route for `/cart` before the one for `/`.
//!
//! # What it never does
//!
//! It handles no traffic and evaluates no policy: a step whose effect is unknown is shown as such.
//!
//! See `docs/explanation/routing.md` and D42.

pub(crate) mod behaviour;
pub(crate) mod edge_table;
pub(crate) mod enforced_restrictions;
mod host_rank;
pub(crate) mod invariant;
mod missing_tls;
mod module_pipeline;
pub(crate) mod order;
pub(crate) mod replay;
pub(crate) mod rivals;
mod route_decision;
pub(crate) mod route_test;
pub(crate) mod routed_state;
pub(crate) mod selector;
pub(crate) mod table;
#[cfg(test)]
pub(crate) mod tests;
mod trace;
pub(crate) mod treatment;

pub use crate::model::traffic::{StepEffect, TracedRequest};
pub use host_rank::HostRank;
pub(crate) use host_rank::rank_host;
pub use module_pipeline::PipelineStep;
pub use route_decision::RouteDecision;
pub(crate) use selector::passes_tls_through;
pub use trace::{EdgeChoice, Named, RouteCandidate, Trace, trace};
pub(crate) use trace::{on_other_ports, trace_part};
