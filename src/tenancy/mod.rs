//! Isolation between the sources of one gateway.
//!
//! # The problem
//!
//! Several teams apply manifests to one store. A resource of one source can affect the requests of another one: a route
//! on its edge, a hostport that overlaps, a certificate for its host.
//!
//! # The rule
//!
//! Every change of a source is judged by three questions about whatever it affects:
//!
//! 1. **Does the source own it?** What it declared first, also on hosts: `host_owners.rs`, and `certificates.rs` for who presents
//!    which certificate.
//! 2. **Was it given to the source?** By an admin, in the scope of its key or repository: `rights.rs` judges operations of both,
//!    `source_scope.rs` what a repository declares, and `host_allowlist.rs` the hosts of either.
//! 3. **Has the owner consented?** In its own manifests, and for as long as these say so: `delegation.rs` judges routes by
//!    `delegated_prefix.rs`, `hostports.rs` hosts, and `write_consent.rs` both in single requests. `closed_hosts.rs` warns whoever
//!    takes consent back, or gives none in return.
//!
//! Three times no, and the change is refused. Only what a change adds is judged: what is in the store stays, with a warning at most, so
//! that nobody stops another source by a change of mind. docs/explanation/tenancy.md has a table of all effects between sources, with
//! the answer for each. A new effect needs a row there before it needs code, and a case in tests/it/security/tenancy.
//!
//! # An example
//!
//! Source `docs` adds a route below `/docs/` on the edge `shop` of source `shop`. It does not own the edge, and its key may not apply
//! source `shop`. So the manifest of `shop` decides: with `delegates_to: [{source: docs, path_prefix: /docs/}]`, the route is admitted;
//! otherwise it is refused, with that line as the help. If the line goes later, the route stays, its match cannot change, and both
//! sources are told.
//!
//! # What it never does
//!
//! A decision about consent does not depend on who asks, or through which command or endpoint. It is made from Specs and claims alone, so
//! the state of the store is enough to repeat it.
//!
//! See D112; D101 and D103 have the parts.

pub(crate) mod certificates;
mod closed_hosts;
mod delegated_prefix;
pub(crate) mod delegation;
mod host_allowlist;
pub(crate) mod host_owners;
mod hostports;
pub(crate) mod rights;
mod source_scope;
mod write_consent;

pub(crate) use closed_hosts::closed_hosts;
pub(crate) use delegation::not_admitted;
pub(crate) use hostports::{concern_others, received_hostports, retaken_hostports};
pub(crate) use rights::{ChangeOrigin, Denied, Rights};
pub use source_scope::{Adoption, SourceScope};
pub(crate) use write_consent::refused_write;

/// The page that has the table of all ways between sources, before any other table.
const PAGE: &str = include_str!("../../docs/explanation/tenancy.md");

/// Returns the table of all ways between sources, as Markdown.
pub(crate) fn table() -> String {
    let is_row = |line: &&str| line.starts_with('|');
    let rows = PAGE.lines().skip_while(|line| !is_row(line)).take_while(is_row);
    rows.map(|row| format!("{row}\n")).collect()
}
