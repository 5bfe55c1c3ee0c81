//! What keeps the sources of one gateway apart: every way in which a resource of one source can change what the requests of
//! another one meet, and who decides about it (D112). `rules.rs` has the table; the files beside it decide.

pub(crate) mod certificates;
pub(crate) mod delegation;
mod hostports;
mod listed_hosts;
pub(crate) mod rights;
mod rules;
mod source_scope;
mod writes;

pub(crate) use delegation::not_admitted;
pub(crate) use hostports::{add_hostports, hostport_faults, retaken_hostports};
pub(crate) use rights::{ChangeOrigin, Denied, Rights};
pub(crate) use rules::table;
pub use source_scope::{Adoption, SourceScope};
pub(crate) use writes::refused_write;
