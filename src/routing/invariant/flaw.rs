//! What is wrong with the requests of a class: a clause about them, and where in the configuration.

use crate::model::Path;

/// The resource that a flaw is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FlawPlace {
    /// The edge that serves the requests.
    Edge,
    /// The route that handles them.
    Route,
}

/// What is wrong with requests, or may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flaw {
    /// Whether the requirement is certainly not met. Otherwise nobody can tell.
    pub(crate) is_certain: bool,
    /// What a request does, as in "reaches the backend `a` without `b`"; or what it depends on, as in "the effect of `c`".
    pub(crate) clause: String,
    /// The resource.
    pub(crate) place: FlawPlace,
    /// The field in its Spec.
    pub(crate) path: Path,
    /// The method of a request for which it is so.
    pub(crate) method: String,
}

impl Flaw {
    /// A requirement that is not met.
    pub(super) fn certain(clause: String, place: FlawPlace) -> Self {
        Self { is_certain: true, clause, place, path: Path::root(), method: String::new() }
    }

    /// A requirement of which nobody can tell whether it is met, and what that depends on.
    pub(super) fn doubt(on: &str, place: FlawPlace) -> Self {
        Self { is_certain: false, ..Self::certain(on.to_owned(), place) }
    }

    /// Sets the field.
    pub(super) fn at(self, path: impl Into<Path>) -> Self {
        Self { path: path.into(), ..self }
    }
}
