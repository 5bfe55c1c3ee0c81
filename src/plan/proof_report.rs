//! The answers about invariants in a report: proven, refuted by a request, dependent on something, or unused (D120).

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::claim::SURROUNDING_OWNER;
use crate::model::diagnostics::invariant_finding::InvariantFinding;
use crate::model::kind::invariant::{Invariant, InvariantScope, UnprovenLevel};
use crate::model::{Entry, Key, Path, Snapshot};
use crate::routing::invariant::{Breach, Proof, ProofAnswer, Unseen, is_refused, prove, prove_change, prove_seen};
use crate::syntax::text::printable;

/// The file and line of a field of a resource, if a manifest declares it.
pub(crate) type Declared<'d> = &'d dyn Fn(&Key, &Path) -> Option<String>;

/// The answers about all invariants of a state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofReport {
    /// The invariants, oldest first; those of manifests that are not applied last, in the order of files and lines.
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
    /// What the answer depends on that was not seen, as clauses: at most ten. Only manifests alone do not show everything.
    #[serde(default)]
    pub unseen: Vec<String>,
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
    /// The file and line to correct, such as `shop/shop.yaml:7`; absent if the manifests declare nothing to correct.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// How to meet the invariant there; absent without a place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl ProofReport {
    /// The answers about the invariants of the state of a store at a time. Each change to it was judged by what they keep.
    pub(crate) fn new(state: &Snapshot, now: Timestamp) -> Self {
        Self::described(&prove(state, now), state, true, &|_, _| None)
    }

    /// The answers about the invariants of the state after a change.
    pub(crate) fn of_change(before: &Snapshot, after: &Snapshot, now: Timestamp, declared: Declared<'_>) -> Self {
        Self::described(&prove_change(before, after, now), after, true, declared)
    }

    /// The answers about the invariants of a state without a store, from which something is missing.
    pub(crate) fn of_manifests(state: &Snapshot, unseen: &[Unseen], now: Timestamp, declared: Declared<'_>) -> Self {
        Self::described(&prove_seen(state, unseen, now), state, false, declared)
    }

    fn described(proofs: &[Proof<'_>], state: &Snapshot, has_former: bool, declared: Declared<'_>) -> Self {
        let described = proofs.iter().map(|proof| InvariantProof::new(proof, state, has_former, declared));
        Self { invariants: described.collect() }
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
    fn new(proof: &Proof<'_>, state: &Snapshot, has_former: bool, declared: Declared<'_>) -> Self {
        let entry: &Entry = proof.entry;
        let spec = entry.spec_as::<Invariant>();
        let denies = spec.is_some_and(|it| it.unproven == UnprovenLevel::Deny);
        Self {
            invariant: entry.name().unwrap_or(entry.key.id.as_str()).to_owned(),
            source: entry.source().map(str::to_owned),
            description: spec.map(|it| it.description.clone()).unwrap_or_default(),
            scope: spec.map(|it| it.scope.clone()).unwrap_or_default(),
            answer: proof.answer(),
            refuses: proof.breaches.iter().any(is_refused) || (denies && !proof.unseen.is_empty()),
            classes: proof.classes,
            exempt: proof.exempt,
            keeps: spec.map(|it| it.keeps.clone()).unwrap_or_default(),
            keeps_compared: has_former,
            unseen: proof.unseen.clone(),
            requests: proof.breaches.iter().map(|breach| ProofRequest::new(breach, state, declared)).collect(),
        }
    }

    /// The answer by one of its requests, as a finding.
    pub(crate) fn finding(&self, request: &ProofRequest) -> InvariantFinding {
        let ProofRequest { certain, method, url, reason, way, .. } = request.clone();
        let (name, source, description) = (self.invariant.clone(), self.source.clone(), self.description.clone());
        InvariantFinding { name, source, description, certain, method, url, reason, way }
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

    /// What it keeps; none if that is nothing, or was not compared.
    pub(crate) fn kept(&self) -> Option<String> {
        let is_kept = !self.keeps.is_empty() && self.keeps_compared;
        is_kept.then(|| format!("kept at each change: {}", self.keeps.join(", ")))
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
    fn new(breach: &Breach<'_>, state: &Snapshot, declared: Declared<'_>) -> Self {
        let (culprit, invariant) = (breach.culprit(), &breach.invariant.key);
        let of_culprit = declared(culprit, &breach.flaw.path).map(|place| (place, culprit, true));
        let place = of_culprit.or_else(|| Some((declared(invariant, &Path::root())?, invariant, false)));
        let (place, help) = place.map(|(place, key, is_at)| (place, breach.cure(state, key, is_at))).unzip();
        let InvariantFinding { certain, method, url, reason, way, .. } = breach.finding(state);
        Self { certain, method, url, reason, way, place, help }
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
