//! Isolation between the sources of one gateway.
//!
//! # The problem
//!
//! Several teams apply manifests to one store. A resource of one source can affect the requests of another one: a route
//! on its edge, a hostport that overlaps, a certificate for its host.
//!
//! # The idea
//!
//! docs/explanation/tenancy.md has a table of all such effects, and who decides about each: nobody, the affected source
//! by consent in its own manifests, or an admin. A new effect needs a row there before it needs code, and a case in
//! tests/it/security/tenancy. The files here decide: `delegation.rs` and `hostports.rs` compare a source with the edges
//! of others, and `delegated_prefix.rs` a route with what its edge delegates; `withdrawn_hosts.rs` warns of consent that is taken
//! back; `certificates.rs` says which edge presents which certificate, and `rights.rs` judges operations by the scope of their actor.
//!
//! # An example
//!
//! Source `docs` declares a route below `/docs/` on the edge `shop` of source `shop`. It is admitted if the manifest of
//! `shop` has `delegates_to: [{source: docs, path_prefix: /docs/}]`, and refused otherwise, with that line as the help.
//!
//! # What it never does
//!
//! A decision does not depend on who asks, or through which command or endpoint. The decision is made from Specs and
//! claims alone, so the state of the store is enough to repeat it.
//!
//! See D112; D101 and D103 have the parts.

pub(crate) mod certificates;
mod delegated_prefix;
pub(crate) mod delegation;
mod host_allowlist;
mod host_owners;
mod hostports;
pub(crate) mod rights;
mod source_scope;
mod withdrawn_hosts;
mod write_consent;

pub(crate) use delegation::not_admitted;
pub(crate) use hostports::{add_hostports, retaken_hostports};
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
