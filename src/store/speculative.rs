//! The input of a commit: operations, or the result of operations that were tried on it before.
//!
//! A plan of 100,000 operations is tried before it is shown, so that it says whether it would be refused. To apply it again
//! inside the commit would take as long, and all other writers would wait for it. So a speculative commit keeps the state that
//! it led to. If the store is still at the state that it began with, the commit takes that result; if others have committed
//! since, or it is more than a minute old, it is not used. What is committed is the same in both cases.
//!
//! Every commit of this process gets its next state here, so invariants are enforced here (D120). A proof takes long, too. For a
//! request that changes a single resource, it is made before the commit as well ([`JudgedOperations`]), and counts if nothing has
//! changed since on which it depends. If something has, such a request is not committed ([`NextState::judged`]).

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::{attempt::Attempt, clock};
use crate::model::{Fault, Key, Kind, Operation, Path, Snapshot, snapshot::Refusal};
use crate::routing::invariant::{VerdictInputs, depend_on, enforce};

/// An older try is not committed: its time would be that of the new resources. An older verdict does not count: exemptions end.
const LONGEST: Duration = Duration::from_secs(60);

/// The state after operations, which a commit can take instead of applying them again. For a large plan that takes as
/// long as everything else under the lock.
#[derive(Debug)]
pub(crate) struct SpeculativeCommit {
    before: Snapshot,
    next: NextSnapshot,
    at: Timestamp,
    began: Instant,
}

impl SpeculativeCommit {
    /// Applies operations to a state, without committing them. Returns every refusal at which a manifest can be corrected.
    pub(crate) fn new(before: &Snapshot, operations: &[&Operation]) -> Result<Self, CommitRefusals> {
        let (at, began) = (clock::now(), Instant::now());
        Ok(Self { before: before.clone(), next: NextSnapshot::new(before, operations, at)?, at, began })
    }

    /// Whether the operations were applied to this very state, a moment ago.
    pub(crate) fn fits(&self, current: &Snapshot) -> bool {
        self.before.is_same(current) && self.began.elapsed() < LONGEST
    }

    /// The state before the operations.
    pub(crate) fn before(&self) -> &Snapshot {
        &self.before
    }

    /// The state after the operations.
    pub(crate) fn after(&self) -> &Snapshot {
        &self.next.after
    }

    /// The changed keys.
    pub(crate) fn changed(&self) -> &BTreeSet<Key> {
        &self.next.changed
    }

    /// The invariants of which nobody can tell after the operations whether they hold, each with the resource that it
    /// depends on.
    pub(crate) fn doubts(&self) -> &[(Key, Fault)] {
        &self.next.doubts
    }
}

/// What invariants say about operations: the unknown answers, or the reason for refusing the operations.
type InvariantVerdict = Result<Vec<(Key, Fault)>, Refusal>;

/// The judgement of invariants on operations on a state, before they are committed.
#[derive(Debug)]
pub(crate) struct JudgedOperations {
    inputs: VerdictInputs,
    verdict: InvariantVerdict,
    judged: Instant,
}

impl JudgedOperations {
    /// Whether invariants depend on what operations change.
    pub(crate) fn are_needed(state: &Snapshot, operations: &[Operation]) -> bool {
        let has_invariants = || state.newest_first(Kind::Invariant, None, u64::MAX).next().is_some();
        let mut kinds = operations.iter().map(|operation| operation.key().kind).filter(|kind| depend_on(*kind));
        kinds.any(|kind| kind == Kind::Invariant || has_invariants())
    }

    /// Judges operations on a state. Returns none if it refuses them for another reason.
    pub(crate) fn new(before: &Snapshot, operations: &[Operation]) -> Option<Self> {
        let at = clock::now();
        let (after, changed) = before.apply(operations, at).ok()?;
        let refused = |(first, others)| CommitRefusals { first, others }.into_one();
        let verdict = enforce(before, &after, &changed, at).map_err(refused);
        Some(Self { inputs: VerdictInputs::new(before, &after, &changed), verdict, judged: Instant::now() })
    }

    /// Whether the verdict is the same on another state.
    fn stands(&self, current: &Snapshot) -> bool {
        self.judged.elapsed() < LONGEST && self.inputs.are_same_in(current)
    }
}

/// A state after operations, which meets all invariants as far as anybody can tell.
#[derive(Debug, Clone)]
pub(super) struct NextSnapshot {
    pub(super) after: Snapshot,
    /// The changed keys.
    pub(super) changed: Arc<BTreeSet<Key>>,
    /// The invariants of which nobody can tell any longer whether they hold, each with the resource that it depends on.
    pub(super) doubts: Vec<(Key, Fault)>,
}

impl NextSnapshot {
    fn new<O: Borrow<Operation> + Sync>(
        before: &Snapshot,
        operations: &[O],
        at: Timestamp,
    ) -> Result<Self, CommitRefusals> {
        let (after, changed) = before.apply(operations, at)?;
        let doubts =
            enforce(before, &after, &changed, at).map_err(|(first, others)| CommitRefusals { first, others })?;
        Ok(Self { after, changed: Arc::new(changed), doubts })
    }
}

/// The changes of a commit to the state that it was computed from.
pub(crate) enum NextState {
    /// The operations to apply, and what invariants say about them on this state, if they were asked before.
    Operations(Vec<Operation>, Option<InvariantVerdict>),
    /// The result of operations that were tried on this state, and their calls.
    Speculative(Arc<SpeculativeCommit>, Vec<String>),
    /// No other resources: a source accepts those of the state, so that none of its manifests are rejected any longer (D78).
    Accepted,
}

impl NextState {
    /// Returns the commit of operations on a state. None if invariants must be asked about them first: all other writers would
    /// wait for that here.
    pub(crate) fn judged(
        current: &Snapshot,
        operations: Vec<Operation>,
        judged: Option<&JudgedOperations>,
    ) -> Option<Self> {
        let verdict = judged.filter(|judged| judged.stands(current)).map(|judged| judged.verdict.clone());
        // What is refused for another reason is not judged.
        let is_quick =
            || !JudgedOperations::are_needed(current, &operations) || current.apply(&operations, clock::now()).is_err();
        (verdict.is_some() || is_quick()).then_some(Self::Operations(operations, verdict))
    }

    /// Whether nothing changes.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            NextState::Operations(operations, _) => operations.is_empty(),
            NextState::Speculative(..) | NextState::Accepted => false,
        }
    }

    /// Dates an attempt: resources are as old as the record that creates them.
    pub(super) fn dated(&self, attempt: Attempt) -> Attempt {
        match self {
            NextState::Operations(..) | NextState::Accepted => attempt,
            NextState::Speculative(tried, _) => {
                Attempt { at: tried.at, began: attempt.began.min(tried.began), ..attempt }
            }
        }
    }

    /// Returns the state after `before`.
    pub(super) fn next(&self, before: &Snapshot, at: Timestamp) -> Result<NextSnapshot, Refusal> {
        match self {
            NextState::Operations(operations, Some(verdict)) => {
                let (after, changed) = before.apply(operations, at)?;
                Ok(NextSnapshot { after, changed: Arc::new(changed), doubts: verdict.clone()? })
            }
            NextState::Operations(operations, None) => {
                NextSnapshot::new(before, operations, at).map_err(CommitRefusals::into_one)
            }
            NextState::Speculative(tried, _) => Ok(tried.next.clone()),
            NextState::Accepted => {
                let (after, changed) = before.apply::<Operation>(&[], at)?;
                Ok(NextSnapshot { after, changed: Arc::new(changed), doubts: Vec::new() })
            }
        }
    }

    /// Returns the calls, for the history.
    pub(super) fn into_calls(self) -> Vec<String> {
        match self {
            NextState::Operations(operations, _) => operations.iter().map(ToString::to_string).collect(),
            NextState::Speculative(_, calls) => calls,
            NextState::Accepted => {
                vec!["(in sync: the manifests that a rollback undid can be applied again)".to_owned()]
            }
        }
    }
}

/// Why operations are refused, at each resource at which that can be corrected.
#[derive(Debug)]
pub(crate) struct CommitRefusals {
    first: Refusal,
    others: Vec<Refusal>,
}

impl From<Refusal> for CommitRefusals {
    fn from(first: Refusal) -> Self {
        Self { first, others: Vec::new() }
    }
}

impl CommitRefusals {
    /// All of them.
    pub(crate) fn into_vec(self) -> Vec<Refusal> {
        [vec![self.first], self.others].concat()
    }

    /// One refusal with all faults.
    pub(crate) fn into_one(self) -> Refusal {
        let Refusal { key, mut faults } = self.first;
        // A path in another resource would be read as one in the first.
        let others = self.others.into_iter().flat_map(|refusal| refusal.faults);
        faults.extend(others.map(|fault| fault.at(Path::root())));
        Refusal { key, faults }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::{AnyResource, Id};

    fn create(key: Key, spec: Value) -> Operation {
        let spec: Arc<dyn AnyResource> = (key.kind.info().restore)(&spec.to_string()).unwrap();
        Operation::Create { key, spec, claim: None, token: None }
    }

    /// The ID of the edge of a host below `example.com`.
    fn edge_id(name: &str) -> Id {
        Id::new(&format!("edghts_{}", name.replace('*', "any").replace('.', "-")))
    }

    fn edge(name: &str) -> Operation {
        let spec = json!({"hostports": [format!("{name}.example.com:443")]});
        create(Key::new(Kind::HttpsEdge, edge_id(name)), spec)
    }

    fn route(edge: &str, name: &str, matched: &str) -> Operation {
        let key = Key::child(Kind::HttpsEdgeRoute, edge_id(edge), Id::new(&format!("edghtsrt_{name}")));
        create(key, json!({"match_type": "path_prefix", "match": matched, "backend": {"backend_id": "bkd_1"}}))
    }

    fn applied(state: &Snapshot, operation: Operation) -> Snapshot {
        state.apply(&[operation], clock::now()).unwrap().0
    }

    #[test]
    fn a_verdict_stands_until_something_changes_on_which_it_depends() {
        let spec = json!({"description": "d", "scope": {"path_prefixes": ["/admin"]}, "requires_any": ["oidc"]});
        let invariant = create(Key::new(Kind::Invariant, Id::new("inv_1")), spec);
        let edges = ["a", "b", "*.b", "c"].into_iter().fold(Snapshot::default(), |state, it| applied(&state, edge(it)));
        let state = applied(&edges, invariant.clone());
        let (open, admin) = (route("a", "1", "/"), route("a", "1", "/admin"));
        assert!(JudgedOperations::are_needed(&state, std::slice::from_ref(&open)));
        assert!(!JudgedOperations::are_needed(&edges, &[open]));
        assert!(JudgedOperations::are_needed(&edges, std::slice::from_ref(&invariant)));
        let owner = create(Key::new(Kind::Owner, Id::new("own_1")), json!({"role": "viewer"}));
        let other = create(Key::new(Kind::Invariant, Id::new("inv_2")), json!({"description": "e", "keeps": ["oidc"]}));
        let stand = |operation: &Operation, changes: &[(Operation, bool)]| {
            let judged = JudgedOperations::new(&state, std::slice::from_ref(operation)).unwrap();
            assert!(judged.stands(&state));
            for (change, stands) in changes {
                assert_eq!(judged.stands(&applied(&state, change.clone())), *stands, "{operation}, then {change}");
            }
        };
        // A route: everything of its edge, and the edges of its host.
        let changes = [
            (owner.clone(), true),
            (other.clone(), false),
            (route("b", "2", "/x"), true),
            (route("a", "2", "/x"), false),
            (edge("d"), true),
            (edge("*"), false),
        ];
        stand(&admin, &changes);
        // An edge that gets other hosts: also the routes of the edges whose hosts meet these.
        let changes = [
            (owner.clone(), true),
            (other, false),
            (route("*.b", "2", "/x"), false),
            (route("b", "2", "/x"), true),
            (route("c", "2", "/x"), true),
            (edge("y.b"), true),
            (edge("*"), false),
        ];
        stand(&edge("x.b"), &changes);
        // An edge that keeps its hosts: only its own routes.
        let spec = json!({"hostports": ["*.b.example.com:443"], "tls_termination": {"min_version": "1.2"}}).to_string();
        let spec: Arc<dyn AnyResource> = (Kind::HttpsEdge.info().restore)(&spec).unwrap();
        let patch = |field: &str| {
            let key = Key::new(Kind::HttpsEdge, edge_id("*.b"));
            Operation::Patch { key, spec: Arc::clone(&spec), fields: vec![field.to_owned()] }
        };
        let changes = [(route("*.b", "2", "/x"), false), (route("b", "2", "/x"), true), (edge("y.b"), false)];
        stand(&patch("tls_termination"), &changes);
        // Hostports that it has already: others can take them away before they are set again.
        stand(&patch("hostports"), &changes);
        // An edge that is as it was: it would be another one again, if others had changed it.
        let spec = json!({"hostports": ["a.example.com:443"]}).to_string();
        let spec: Arc<dyn AnyResource> = (Kind::HttpsEdge.info().restore)(&spec).unwrap();
        let key = Key::new(Kind::HttpsEdge, edge_id("a"));
        let repeated = Operation::Patch { key, spec, fields: vec!["hostports".to_owned()] };
        stand(&repeated, &[(route("a", "2", "/x"), false), (route("b", "2", "/x"), true)]);
        // Every edge.
        let whole = JudgedOperations::new(&edges, &[invariant]).unwrap();
        assert!(whole.stands(&applied(&edges, owner)));
        assert!(!whole.stands(&applied(&edges, route("b", "2", "/x"))), "it is about the requests of every edge");
    }

    #[test]
    fn what_invariants_must_be_asked_about_is_not_judged_in_the_commit() {
        let spec = json!({"description": "d", "scope": {"path_prefixes": ["/admin"]}, "requires_any": ["oidc"]});
        let invariant = create(Key::new(Kind::Invariant, Id::new("inv_1")), spec);
        let edges = applied(&Snapshot::default(), edge("a"));
        let state = applied(&edges, invariant);
        let admin = route("a", "1", "/admin");
        let judged = JudgedOperations::new(&state, std::slice::from_ref(&admin)).unwrap();
        let committed = |current: &Snapshot, judged: Option<&JudgedOperations>| {
            let next = NextState::judged(current, vec![admin.clone()], judged);
            next.map(|it| it.next(current, clock::now()).is_ok())
        };
        assert_eq!(committed(&state, Some(&judged)), Some(false), "the verdict counts");
        assert_eq!(committed(&edges, None), Some(true), "there is no invariant");
        // Others have changed what it depends on, or it was not judged.
        assert_eq!(committed(&applied(&state, route("a", "2", "/x")), Some(&judged)), None);
        assert_eq!(committed(&state, None), None);
        // What is refused anyway is.
        assert_eq!(committed(&applied(&state, route("a", "1", "/x")), None), Some(false), "the route exists");
    }
}
