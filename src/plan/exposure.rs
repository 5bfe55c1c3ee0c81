//! Plans that open access: requests that meet less that restricts it, restrictions that admit more, and other resources that
//! restrict nothing any longer (D113).
//!
//! # The problem
//!
//! One removed line among many opens an admin page to everyone, and reviewers miss it. A plan that deletes the route
//! `/admin` takes no module from any resource, but the route `/` without a login has its requests from then on.
//!
//! # The idea
//!
//! One comparison decides what a behaviour diff marks, what a replay counts and what the lint finds: [`AccessDifference`]. Each
//! module says whether it restricts access, of which sort it is, and whether it admits more than a former one. Requests whose
//! fate has fewer sorts after the plan than before, or a module that may admit somebody who was refused, are opened, whichever
//! edge and route took them and takes them now (`opened_requests.rs`). So one login in the place of another may open. Requests
//! that a route refused, because it has no enabled backend, are opened if they reach one and nothing restricts them. A route that
//! takes other requests than before is compared with itself, too: otherwise it could move and lose its login in one change. The
//! modules of TLS edges are compared in the same way, and IP restrictions are judged by all others for the same traffic
//! (`opened_unrouted.rs`): one that only has another name opens nothing.
//!
//! For example, a route that loses `oauth` and keeps `ip_restriction` opens, and the message names both.
//!
//! # What it never does
//!
//! The level of the lint `access-opened` decides what an exposure does: the default only warns, because whoever may apply
//! a source may open it. It never depends on the value of a secret. What a plan opens is known once it was tried, so a refused one
//! tells nothing of that.

pub(crate) mod opened_requests;
mod opened_unrouted;

use std::fmt::{self, Display, Formatter};

use crate::lint::Level;
use crate::model::Key;
use crate::model::module::admission::AccessChange;
use crate::plan::behaviour::wording::{names, words_of_changed, words_of_gained};
use crate::plan::plan_effects::AccessWarning;
use crate::routing::behaviour::AccessDifference;

/// The lint whose level decides what an exposure does.
pub(crate) const ACCESS_OPENED: &str = "access-opened";

/// A resource that loses what restricts access to it or may admit more, or whose requests another one takes that does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exposure {
    /// The resource that has the requests once the plan is applied.
    pub key: Key,
    /// The kind, and the name in the manifests.
    name: String,
    /// The kind and name of the resource that takes the requests, if it is another one, or if they were refused.
    successor: Option<String>,
    /// The modules that no longer restrict access; none if the resource itself did, or refused the requests.
    lost: Vec<&'static str>,
    /// The modules that may admit somebody whom they, or another login in their place, refused.
    widened: Vec<(&'static str, AccessChange)>,
    /// The modules that restrict access before and after.
    left: Vec<&'static str>,
    /// The modules that restrict access from then on.
    gained: Vec<&'static str>,
    /// Whether nothing restricts access to some of the requests.
    is_open: bool,
    /// Why nobody can tell whether requests to it are opened; empty if they are.
    unknown: String,
    /// One of the requests, as a URL.
    example: Option<String>,
}

impl Exposure {
    /// An exposure of a resource with a kind and a name, by what restricted access before and after.
    fn new(key: Key, name: String, access: &AccessDifference) -> Self {
        Self {
            key,
            name,
            successor: None,
            lost: access.lost(),
            widened: access.widened(),
            left: access.kept(),
            gained: access.gained(),
            is_open: access.has.is_empty(),
            unknown: String::new(),
            example: None,
        }
    }

    /// The warning to report, unless the lint has another level.
    fn warning(self) -> AccessWarning {
        AccessWarning {
            message: self.to_string(),
            key: self.key,
            lint: ACCESS_OPENED,
            level: Level::Warn,
            example: self.example,
            cure: "restrict it, or set the annotation `edgewright/lint.access-opened: allow (REASON)`",
        }
    }
}

impl Display for Exposure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { name, successor, lost, widened, left, gained, is_open, unknown, .. } = self;
        if !unknown.is_empty() {
            return write!(f, "this may open access to {name}: it has {unknown} to compare");
        }
        if lost.is_empty() && widened.is_empty() {
            let opens = match successor {
                None => return write!(f, "this opens access: {name} no longer restricts anything"),
                Some(successor) if successor == name => format!("{name} has a backend for requests that it refused"),
                Some(successor) => format!("{successor} takes over requests that {name} refused"),
            };
            return write!(f, "this opens access: {opens}, without a restriction");
        }
        let opens = match (successor, lost.is_empty()) {
            (Some(successor), false) => format!("{successor} takes over requests of {name}, without {}", names(lost)),
            (Some(successor), true) => format!("{successor} takes over requests of {name}"),
            (None, false) => format!("{name} loses {}", names(lost)),
            (None, true) => name.clone(),
        };
        let mut words = Vec::new();
        if !lost.is_empty() && !left.is_empty() {
            words.push(format!("{} stays", names(left)));
        }
        if !lost.is_empty() && !gained.is_empty() {
            words.push(words_of_gained(gained, left.is_empty()));
        }
        words.extend(words_of_changed(widened));
        let separator = if lost.is_empty() { ": " } else { "; " };
        match words.as_slice() {
            [] if *is_open => write!(f, "this opens access: {opens}, and nothing else restricts it"),
            [] => write!(f, "this opens access: {opens}"),
            words => write!(f, "this opens access: {opens}{separator}{}", words.join("; ")),
        }
    }
}
