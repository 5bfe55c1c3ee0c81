//! What is wrong with the requests of a class: a clause about them, and where in the configuration.

use std::collections::BTreeSet;

use crate::model::module::tls_termination::TlsVersion;
use crate::model::{Key, Path};
use crate::routing::behaviour::Fate;

/// The resource that a flaw is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FlawPlace {
    /// The edge that serves the requests.
    Edge,
    /// The route that handles them.
    Route,
}

/// How much a flaw lets happen, to compare what was wrong before a change with what is wrong after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FlawExtent {
    /// All that its requirement forbids.
    Whole,
    /// Clients whose addresses are in some IP policy of each of these sets reach a backend.
    Addresses(Vec<BTreeSet<String>>),
    /// The requests reach this backend.
    Backend(String),
    /// Clients can use this version of TLS.
    Tls(TlsVersion),
    /// Nobody knows: the requests are not judged.
    Unjudged,
}

impl FlawExtent {
    /// Whether the extent lets nothing happen that another one does not.
    fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Whole) => true,
            (Self::Addresses(own), Self::Addresses(wider)) => {
                wider.iter().all(|wider| own.iter().any(|own| own.is_subset(wider)))
            }
            (Self::Tls(own), Self::Tls(oldest)) => own >= oldest,
            (own, other) => own == other,
        }
    }
}

/// A certain or possible violation by requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flaw {
    /// Whether the requirement is certainly not met. Otherwise nobody can tell.
    pub(crate) is_certain: bool,
    /// The action of a request, as in "reaches the backend `a` without `b`"; or its condition, as in "the effect of `c`".
    pub(crate) clause: String,
    /// The resource.
    pub(crate) place: FlawPlace,
    /// The field in its Spec.
    pub(crate) path: Path,
    /// The method of a request for which it is so.
    pub(crate) method: String,
    /// How much it lets happen.
    pub(crate) extent: FlawExtent,
    /// How to meet the requirement, as in "add `c` to the route"; empty if that depends on what nobody can tell.
    pub(crate) cure: String,
}

impl Flaw {
    /// A requirement that is not met.
    pub(super) fn certain(clause: String, place: FlawPlace) -> Self {
        let (extent, path) = (FlawExtent::Whole, Path::root());
        Self { is_certain: true, clause, place, path, method: String::new(), extent, cure: String::new() }
    }

    /// A requirement of which nobody can tell whether it is met, and what that depends on.
    pub(super) fn doubt(on: &str, place: FlawPlace) -> Self {
        Self { is_certain: false, ..Self::certain(on.to_owned(), place) }
    }

    /// Sets the field.
    pub(super) fn at(self, path: impl Into<Path>) -> Self {
        Self { path: path.into(), ..self }
    }

    /// Sets how to meet the requirement.
    pub(super) fn cured_by(self, cure: impl Into<String>) -> Self {
        Self { cure: cure.into(), ..self }
    }

    /// Sets how much it lets happen.
    pub(super) fn letting(self, extent: FlawExtent) -> Self {
        Self { extent, ..self }
    }

    /// The edge or route to blame, of those that take the requests.
    pub(super) fn culprit<'s>(&self, fate: &Fate<'s>) -> Option<&'s Key> {
        let taken_by = match self.place {
            FlawPlace::Edge => fate.edge,
            FlawPlace::Route => fate.route.or(fate.edge),
        };
        taken_by.map(|entry| &entry.key)
    }

    /// The flaw of requests of which nobody can tell whether the invariant is about them, because that depends on something.
    pub(super) fn depending_on(self, on: &str) -> Self {
        let clause = if self.is_certain { format!("{on}, which {}", self.clause) } else { self.clause };
        Self { is_certain: false, clause, ..self }
    }

    /// The flaw of requests of which nobody can tell what takes them, because that depends on something.
    pub(super) fn guessed(self, on: &str) -> Self {
        match self.is_certain {
            true => Self { is_certain: false, clause: format!("{on}; by a guess, it {}", self.clause), ..self },
            false => self,
        }
    }

    /// Whether the flaw is no worse than a former one by the same requirement.
    pub(super) fn is_within(&self, former: &Self) -> bool {
        self.is_certain <= former.is_certain && self.extent.is_within(&former.extent)
    }
}
