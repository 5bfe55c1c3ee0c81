//! Plans that open access: resources that lose a restriction of access, and routes that take requests from more
//! restricted ones (D113).
//!
//! # The problem
//!
//! One removed line among many opens an admin page to everyone, and reviewers miss it.
//!
//! # The idea
//!
//! Each module says whether it restricts access, and of which sort it is. A resource that has fewer sorts after its
//! change than before is an [`Exposure`] (`lost_protection.rs`). So one login in the place of another opens nothing.
//! `takeover.rs` asks the same of requests that change hands.
//!
//! For example, a route that loses `oauth` and keeps `ip_restriction` opens, and the message names both.
//!
//! # What it never does
//!
//! It never refuses a plan: whoever may apply a source may open it. It does not compare what a list or an address range
//! lets in; the plan shows that field by field.

mod lost_protection;
mod takeover;

use std::fmt::{self, Display, Formatter};

use crate::model::Key;

/// A resource that loses what restricts access to it, or whose requests another one takes with less of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposure {
    /// The resource that has the requests once the plan is applied.
    pub key: Key,
    /// The kind, and the name in the manifests.
    name: String,
    /// The kind and name of the other resource that takes the requests, if one does.
    successor: Option<String>,
    /// The modules that no longer restrict access; none if the resource itself did.
    lost: Vec<&'static str>,
    /// The modules that still do.
    left: Vec<&'static str>,
}

impl Display for Exposure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let quoted = |modules: &[&str]| modules.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let Self { name, successor, lost, left, .. } = self;
        if successor.is_none() && lost.is_empty() {
            return write!(f, "this opens access: {name} no longer restricts anything");
        }
        let opens = match successor {
            Some(successor) => format!("{successor} takes over requests of {name}, without {}", quoted(lost)),
            None => format!("{name} loses {}", quoted(lost)),
        };
        match left.as_slice() {
            [] => write!(f, "this opens access: {opens}, and nothing else restricts it"),
            left => write!(f, "this opens access: {opens}; {} stays", quoted(left)),
        }
    }
}
