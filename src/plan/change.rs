//! A plan and its changes.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use super::calls::deletion;
use super::{effect::Effect, kept_resources::KeptResource, plan_effects::PlanEffects, summary::Summary};
use crate::model::drift::only_others_changed;
use crate::model::{AnyResource, ApiKey, Code, Diagnostic, Drift, Entry, Id, Key, Kind, Operation};

/// The operations to run, and the revision they are based on.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The revision the plan is based on.
    pub base: u64,
    /// The changes by resource, in execution order.
    pub changes: Vec<Change>,
    /// The number of unchanged resources.
    pub unchanged: usize,
    /// Errors that forbid running the plan.
    pub refusals: Vec<Diagnostic>,
    /// The undeclared resources that are not deleted, because other sources still use them (D35).
    pub kept_resources: Vec<KeptResource>,
    /// The number of changes whose drift was not looked up, because the plan is large and has drift (D85).
    pub unexamined_drift: usize,
    /// What it does besides its changes.
    pub effects: PlanEffects,
    /// The values of a followed source that have changed since the same commit was applied (D28).
    pub changed_values: Vec<String>,
    /// The new API keys whose manifests name no owner (D27).
    pub unnamed_owners: BTreeSet<Key>,
    /// The resources that change and whose manifests state their ID, or that of their subscription (D112).
    pub stated: BTreeSet<Key>,
}

/// The identity of a resource for people, independent of its ID: kind, parent and name.
pub(super) type ChangeIdentity<'c> = (Kind, Option<&'c Id>, &'c str);

/// All operations on one resource.
#[derive(Debug, Clone)]
pub struct Change {
    /// The resource.
    pub key: Key,
    /// The name in the manifests, prefixed with the parent's name.
    pub name: String,
    /// The effect on the resource.
    pub effect: Effect,
    /// Notes for the reviewer, such as a changed name or protection.
    pub notes: Vec<String>,
    /// The resource before the change.
    pub before: Option<Arc<dyn AnyResource>>,
    /// The operations, in order.
    pub operations: Vec<Operation>,
    /// The token file of a new API key.
    pub token_file: Option<PathBuf>,
    /// The changes that others have made to the resource since its source applied it, if known (D85).
    pub drift: Option<Drift>,
}

impl Plan {
    /// Whether the plan has no changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Forbids running the plan.
    pub(super) fn refuse(&mut self, code: Code, message: impl Into<String>, help: impl Into<String>) {
        self.refusals.push(Diagnostic::error(code, message).help(help));
    }

    /// Adds the deletion of a resource, and refuses it with a help if `prevent_destroy` is set. An implicit resource without
    /// modules goes with its last child (D34).
    pub(super) fn delete(&mut self, entry: &Entry, name: String, help: &str) {
        if entry.claim.as_deref().is_some_and(|claim| claim.prevent_destroy) {
            let message = format!("{} has `prevent_destroy` and would be deleted", named(&entry.key, &name));
            self.refuse(Code::PreventDestroy, message, help);
        }
        let operations = deletion(entry);
        if !operations.is_empty() {
            self.changes.push(Change::new(entry.key.clone(), name, Effect::Delete, Some(entry), operations));
        }
    }

    /// All operations, in execution order.
    pub fn operations(&self) -> Vec<Operation> {
        self.changes.iter().flat_map(|change| change.operations.iter().cloned()).collect()
    }

    /// All operations, without a copy.
    pub(crate) fn each_operation(&self) -> Vec<&Operation> {
        self.changes.iter().flat_map(|change| &change.operations).collect()
    }

    /// An operation as it is reviewed: without an owner that the manifest does not name.
    pub(crate) fn reviewed<'o>(&self, operation: &'o Operation) -> Cow<'o, Operation> {
        if let Operation::Create { key, spec, claim, token } = operation
            && self.unnamed_owners.contains(key)
            && let Some(api_key) = spec.as_any().downcast_ref::<ApiKey>()
        {
            let spec = Arc::new(ApiKey { owner_id: String::new(), ..api_key.clone() });
            let (key, claim, token) = (key.clone(), claim.clone(), token.clone());
            return Cow::Owned(Operation::Create { key, spec, claim, token });
        }
        Cow::Borrowed(operation)
    }

    /// The resources that are replaced, by the keys of those that replace them.
    pub(crate) fn replaced(&self) -> HashMap<&Key, &Key> {
        let with = |effect: Effect| self.changes.iter().filter(move |change| change.effect == effect);
        let mut old: HashMap<ChangeIdentity<'_>, Vec<&Key>> = HashMap::new();
        for change in with(Effect::Replaced) {
            old.entry(change.identity()).or_default().push(&change.key);
        }
        with(Effect::Replace).filter_map(|new| Some((&new.key, old.get_mut(&new.identity())?.pop()?))).collect()
    }

    /// Whether all that the plan does is to revert drift (D85).
    pub(crate) fn only_reverts_drift(&self) -> bool {
        // The deletion of a replaced resource has its drift at the resource that replaces it.
        let reverts = |change: &Change| change.effect == Effect::Replaced || change.only_reverts_drift();
        !self.changes.is_empty() && self.changes.iter().all(reverts)
    }

    /// Whether nobody has committed what the plan does: it only reverts drift, or the same commit has other values (D28,
    /// D85).
    pub(crate) fn is_uncommitted(&self) -> bool {
        self.only_reverts_drift() || !self.changed_values.is_empty()
    }

    /// The number of changes by effect.
    pub fn summary(&self) -> Summary {
        self.summary_of(|_| true)
    }

    /// The number of some of the changes by effect.
    pub(crate) fn summary_of(&self, is_counted: impl Fn(&Change) -> bool) -> Summary {
        let changes = self.changes.iter().filter(|change| is_counted(change));
        Summary::count(changes.map(|change| (change.effect, change.drift.as_ref())), self.unchanged)
    }
}

impl Change {
    /// A change without notes.
    pub(super) fn new(
        key: Key,
        name: String,
        effect: Effect,
        before: Option<&Entry>,
        operations: Vec<Operation>,
    ) -> Self {
        let before = before.map(|entry| Arc::clone(entry.spec()));
        Self { key, name, effect, notes: Vec::new(), before, operations, token_file: None, drift: None }
    }

    /// Whether only others have changed what it changes. If the manifests have changed as well, it is pending.
    pub(crate) fn is_drift_alone(&self) -> bool {
        self.drift.as_ref().is_some_and(|drift| only_others_changed(&drift.fields))
    }

    fn only_reverts_drift(&self) -> bool {
        let is_claim = |operation: &Operation| matches!(operation, Operation::Claim { .. });
        self.is_drift_alone() && !self.operations.iter().any(is_claim)
    }

    pub(super) fn identity(&self) -> ChangeIdentity<'_> {
        (self.key.kind, self.key.parent.as_ref(), &self.name)
    }
}

/// Names a resource by its kind, its name in the manifests and its ID.
pub(super) fn named(key: &Key, name: &str) -> String {
    format!("{} {name} ({})", key.kind, key.id)
}
