//! Plans that open access: requests that meet less that restricts it, and other resources that restrict nothing any
//! longer (D113).
//!
//! # The problem
//!
//! One removed line among many opens an admin page to everyone, and reviewers miss it. A plan that deletes the route
//! `/admin` takes no module from any resource, but the route `/` without a login has its requests from then on.
//!
//! # The idea
//!
//! Each module says whether it restricts access, and of which sort it is. Requests whose fate has fewer sorts after the
//! plan than before are opened, whichever edge and route took them and takes them now (`opened_requests.rs`, and
//! [`behaviour`](crate::routing::behaviour)). So one login in the place of another opens nothing. Requests that a route
//! refused, because it has no enabled backend, are opened if they reach one and nothing restricts them. Resources without
//! HTTP requests are judged by themselves, and IP restrictions by all others for the same traffic (`lost_protection.rs`): one that
//! only has another name opens nothing.
//!
//! For example, a route that loses `oauth` and keeps `ip_restriction` opens, and the message names both.
//!
//! # What it never does
//!
//! The level of the lint `access-opened` decides what an exposure does: the default only warns, because whoever may apply
//! a source may open it. It does not compare what a list or an address range lets in; the plan shows that field by field.
//! What becomes of requests and IP restrictions is known once a plan was tried, so a refused one tells nothing of them.

mod lost_protection;
pub(crate) mod opened_requests;

use std::fmt::{self, Display, Formatter};

use crate::lint::Level;
use crate::model::{Diagnostic, Key, Name};

/// The lint whose level decides what an exposure does.
pub(crate) const ACCESS_OPENED: &str = "access-opened";

/// A resource that loses what restricts access to it, or whose requests another one takes with less of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposure {
    /// The resource that has the requests once the plan is applied.
    pub key: Key,
    /// The level of the lint for that resource.
    pub level: Level,
    /// The kind, and the name in the manifests.
    name: String,
    /// The kind and name of the resource that takes the requests, if it is another one, or if they were refused.
    successor: Option<String>,
    /// The modules that no longer restrict access; none if the resource itself did, or refused the requests.
    lost: Vec<&'static str>,
    /// The modules that still do.
    left: Vec<&'static str>,
    /// Why nobody can tell whether requests to it are opened; empty if they are.
    unknown: String,
    /// One of the requests, as a URL.
    example: Option<String>,
}

impl Exposure {
    /// The warning or error to report; none if the lint is allowed.
    pub(crate) fn diagnostic(&self) -> Option<Diagnostic> {
        let severity = self.level.severity()?;
        let example = self.example.iter().map(|url| format!("`{url}` is one of these requests; "));
        let how = match self.level {
            Level::Deny => "restrict it, or set the annotation `edgewright/lint.access-opened: allow (REASON)`",
            _ => "apply it if this is intended; in CI, deny `access-opened` or require an approval",
        };
        let help = example.chain([how.to_owned()]).collect::<String>();
        Some(Diagnostic { severity, ..Diagnostic::error(Name::Lint(ACCESS_OPENED), self.to_string()).help(help) })
    }
}

impl Display for Exposure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let quoted = |modules: &[&str]| modules.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let Self { name, successor, lost, left, unknown, .. } = self;
        if !unknown.is_empty() {
            return write!(f, "this may open access to {name}: it has {unknown} to compare");
        }
        if successor.is_none() && lost.is_empty() {
            return write!(f, "this opens access: {name} no longer restricts anything");
        }
        if let Some(successor) = successor.as_ref().filter(|_| lost.is_empty()) {
            let opens = match successor == name {
                true => format!("{name} has a backend for requests that it refused"),
                false => format!("{successor} takes over requests that {name} refused"),
            };
            return write!(f, "this opens access: {opens}, without a restriction");
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
