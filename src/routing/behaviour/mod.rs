//! Classes of requests: all requests that an edge and a route treat alike, in one state or in two.
//!
//! # The problem
//!
//! There are infinitely many requests, and a rule about all of them, or the difference between two revisions, must not
//! depend on the examples that somebody thought of.
//!
//! # The idea
//!
//! Hosts are literal or have a wildcard, paths are exact or a prefix, so the hostports and matches of a state split all
//! requests into finitely many classes: a [`RequestClass`] is a set of hosts at a port ([`HostClass`]) and a set of
//! paths ([`PathClass`]). One edge and one route take all requests of a class, in each of the states that are looked at
//! together. The [`Fate`] of a class has both, and the modules that the requests pass. What a module decides by anything
//! else, such as the client's address, stays symbolic: the same configuration has the same effect.
//!
//! [`each_class_in`] visits the classes of a state, and [`each_difference`] those whose fates differ between two states.
//! The second looks only at the edges that changed and at what competes with them (`served_edges.rs`, `affected.rs`).
//! [`each_class_in`] and [`each_pair_in`] visit what is inside of a [`RequestScope`], and split classes at its borders.
//! Whether access opens from one fate to another is an [`AccessDifference`], for plans and replays alike. A route that moves to other
//! requests is compared with itself, too.
//! Hosts whose requests with some paths go the same way are in one class, so that there are about as many classes as hosts and
//! matches, and not as many as pairs of them (`host_level.rs`).
//!
//! # An example
//!
//! An edge serves `*.example.com:443` with the routes `/` and `/api/`, another one `shop.example.com:443`. The first has
//! two classes: `*.example.com` without `shop.example.com`, with all paths below `/api/`, and with all others. If its
//! route `/api/` loses `oidc`, [`each_difference`] visits the first of them, with the fates before and after.
//!
//! # What it never does
//!
//! It does not evaluate modules, and does not compare secrets of different resources (`fate_module.rs`). Requests that no edge
//! serves in any of the states are in no class. It does not leave a class out because no URL leads to one of its requests, such as a
//! path with a raw `<` or `é`: clients can send them all the same. Such a class has no [example](RequestClass::example), but a
//! [pattern](RequestClass::pattern). Only paths with `?` or `#` are in no class, because no path of a request has them.

mod access_difference;
mod affected;
mod classes;
mod edge_side;
mod fate;
mod fate_module;
mod free_text;
mod host_class;
mod host_level;
mod host_tree;
mod path_beginnings;
mod path_class;
mod request_class;
mod request_scope;
mod served_edges;
#[cfg(test)]
mod tests;

pub(crate) use access_difference::AccessDifference;
#[cfg(test)]
pub(crate) use classes::each_class;
pub(crate) use classes::{ClassScope, UnvisitedEdge, each_class_in, each_difference, each_pair_in};
pub(crate) use fate::{Fate, missing_protections, protections};
pub(super) use fate_module::content;
pub(crate) use fate_module::{FateModule, ModuleLikeness};
pub(crate) use host_class::HostClass;
pub(super) use host_tree::HostTree;
pub(super) use path_beginnings::PathBeginnings;
pub(crate) use path_class::PathClass;
pub(crate) use request_class::{RequestClass, url_of};
pub(crate) use request_scope::RequestScope;
pub(super) use served_edges::hostports;
