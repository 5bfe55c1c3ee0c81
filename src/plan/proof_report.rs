//! The answers about invariants in a report: proven, refuted by a request, dependent on something, or unused (D120).

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::claim::SURROUNDING_OWNER;
use crate::model::kind::invariant::{Invariant, InvariantScope};
use crate::model::{Entry, Snapshot};
use crate::routing::invariant::{Breach, Proof, ProofAnswer, is_refused, prove, prove_change};
use crate::syntax::text::printable;

/// The answers about all invariants of a state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofReport {
    /// The invariants, oldest first.
    pub invariants: Vec<InvariantProof>,
}

/// The answer about an invariant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InvariantProof {
    /// The name in the manifests, or the ID if no source owns it.
    pub invariant: String,
    /// The source that owns it; null if none does.
    pub source: Option<String>,
    /// The description.
    pub description: String,
    /// The requests that it is about.
    pub scope: InvariantScope,
    /// The answer.
    pub answer: ProofAnswer,
    /// Whether changes are refused because of it.
    pub refuses: bool,
    /// The number of classes of requests for which it must hold. An edge and a route treat all requests of a class alike.
    pub classes: usize,
    /// The number of classes of requests for which an exemption counts.
    pub exempt: usize,
    /// The modules that no request may lose, which is judged at each change.
    pub keeps: Vec<String>,
    /// Whether `keeps` has an earlier state to be compared with: that of a store or server. Manifests alone have none.
    pub keeps_compared: bool,
    /// Requests that break it, or of which nobody can tell, one for each edge or route: at most ten of each sort.
    pub requests: Vec<ProofRequest>,
}

/// A request that breaks an invariant, or of which nobody can tell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofRequest {
    /// Whether the request breaks the invariant for certain.
    pub certain: bool,
    /// The method.
    pub method: String,
    /// The URL.
    pub url: String,
    /// The action that breaks the invariant, or the condition on which the answer depends.
    pub reason: String,
    /// The way: edge, route and modules.
    pub way: String,
}

impl ProofReport {
    /// The answers about the invariants of the state of a store at a time. Each change to it was judged by what they keep.
    pub(crate) fn new(state: &Snapshot, now: Timestamp) -> Self {
        Self::described(&prove(state, now), state, true)
    }

    /// The answers about the invariants of the state after a change.
    pub(crate) fn of_change(before: &Snapshot, after: &Snapshot, now: Timestamp) -> Self {
        Self::described(&prove_change(before, after, now), after, true)
    }

    /// The answers about the invariants of a state that no other one precedes.
    pub(crate) fn of_first_state(state: &Snapshot, now: Timestamp) -> Self {
        Self::described(&prove(state, now), state, false)
    }

    fn described(proofs: &[Proof<'_>], state: &Snapshot, has_former: bool) -> Self {
        Self { invariants: proofs.iter().map(|proof| InvariantProof::new(proof, state, has_former)).collect() }
    }

    /// The number of invariants with an answer.
    pub fn count(&self, answer: ProofAnswer) -> usize {
        self.invariants.iter().filter(|it| it.answer == answer).count()
    }

    /// Whether changes are refused because of some invariant.
    pub fn refuses(&self) -> bool {
        self.invariants.iter().any(|it| it.refuses)
    }
}

impl InvariantProof {
    fn new(proof: &Proof<'_>, state: &Snapshot, has_former: bool) -> Self {
        let entry: &Entry = proof.entry;
        let spec = entry.spec_as::<Invariant>();
        Self {
            invariant: entry.name().unwrap_or(entry.key.id.as_str()).to_owned(),
            source: entry.source().map(str::to_owned),
            description: spec.map(|it| it.description.clone()).unwrap_or_default(),
            scope: spec.map(|it| it.scope.clone()).unwrap_or_default(),
            answer: proof.answer(),
            refuses: proof.breaches.iter().any(is_refused),
            classes: proof.classes,
            exempt: proof.exempt,
            keeps: spec.map(|it| it.keeps.clone()).unwrap_or_default(),
            keeps_compared: has_former,
            requests: proof.breaches.iter().map(|breach| ProofRequest::new(breach, state)).collect(),
        }
    }

    /// Over how many classes of requests the answer is.
    pub(crate) fn coverage(&self) -> String {
        let classes = |count: usize| match count {
            1 => "1 class of requests".to_owned(),
            count => format!("{count} classes of requests"),
        };
        if self.answer == ProofAnswer::Unused {
            return self.unused();
        }
        match (self.classes, self.exempt) {
            (0, 0) => "over no class of requests".to_owned(),
            (0, exempt) => format!("an exemption counts for all requests in its scope: {}", classes(exempt)),
            (count, 0) => format!("over {}", classes(count)),
            (count, exempt) => format!("over {}, {exempt} more exempt", classes(count)),
        }
    }

    /// What it keeps; none if that is nothing.
    pub(crate) fn kept(&self) -> Option<String> {
        let names = self.keeps.join(", ");
        match (self.keeps.is_empty(), self.keeps_compared) {
            (true, _) => None,
            (false, true) => Some(format!("kept at each change: {names}")),
            (false, false) => Some(format!("keeps not compared: no earlier state ({names})")),
        }
    }

    /// Keeps modules, and nothing tells whether a request loses them.
    pub(crate) fn lacks_comparison(&self) -> bool {
        !self.keeps.is_empty() && !self.keeps_compared
    }

    /// The advice if no edge serves requests in the scope.
    fn unused(&self) -> String {
        let names: Vec<String> =
            self.scope.hosts.iter().chain(&self.scope.sources).map(|name| format!("`{}`", printable(name))).collect();
        let question = match names.as_slice() {
            [] => String::new(),
            [name] => format!(": is {name} right?"),
            names => format!(": are {} right?", names.join(", ")),
        };
        format!("no edge serves requests in its scope{question}")
    }

    /// The name with the source.
    pub(crate) fn full_name(&self) -> String {
        match self.source.as_deref() {
            Some(SURROUNDING_OWNER) => format!("{} (--with)", self.invariant),
            Some(source) => format!("{source}/{}", self.invariant),
            None => self.invariant.clone(),
        }
    }
}

impl ProofRequest {
    fn new(breach: &Breach<'_>, state: &Snapshot) -> Self {
        Self {
            certain: breach.flaw.is_certain,
            method: breach.request.method.clone(),
            url: breach.url(),
            reason: breach.flaw.clause.clone(),
            way: breach.way(state),
        }
    }

    /// One line about it.
    pub(crate) fn line(&self) -> String {
        let Self { method, url, reason, .. } = self;
        match self.certain {
            true => format!("{method} {url} {reason}"),
            false => format!("{method} {url} depends on {reason}"),
        }
    }
}
