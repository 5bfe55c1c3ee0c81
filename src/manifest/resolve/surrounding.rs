//! What surrounding manifests declare, which a source uses without owning it (D107).
//!
//! # The problem
//!
//! A plan must be one that can be applied. Surrounding manifests are a copy of what others declare, and may be older or
//! newer than what they have applied.
//!
//! # The idea
//!
//! What exists in manifests alone is taken from them: module sets. What a store has is taken from the store: resources.
//! Only without a store or server, the surrounding resources stand for it, as those of another source with the name
//! [`SURROUNDING_OWNER`].
//!
//! For example, a route with `edge: shop` and `modules_from: [base]` gets `base` from the surrounding manifests. If the
//! store has no edge `shop`, that is an error, with the advice to apply the other manifests first.
//!
//! Surrounding resources can be on edges of the source, as routes that it delegates to. So where they need names that they do not
//! declare, they are resolved again beside the resources of the source.
//!
//! Invariants are answered one by one, and nothing refers to them. So each gets an ID of its own, however many have its name:
//! they can be of several sources. What else the state does not show, or is a guess in it, is `guessed_identity` (D120): of two
//! edges of one name it has the first.
//!
//! # What it never does
//!
//! Nothing here is planned, pruned, linted or counted. A set of the source hides one of the same name.

use std::iter;

use foldhash::HashSet;

use super::resolver::{resolve_beside, resolve_offline};
use super::surrounding_declarations::SurroundingDeclarations;
use crate::manifest::load::declaration::{Declaration, ModuleSet, Origins};
use crate::manifest::load::declarations::Declarations;
use crate::manifest::loader::Loaded;
use crate::manifest::prelude::*;
use crate::model::claim::SURROUNDING_OWNER;
use crate::model::key::derived_id;
use crate::model::{Entry, Severity};
use crate::routing::invariant::Unseen;

/// The state of a store that has the surrounding resources, as far as their manifests tell.
#[derive(Debug, Default)]
pub(crate) struct SurroundingState {
    /// The state.
    pub(crate) state: Snapshot,
    /// Warnings of what the manifests declare and the state lacks: of two declarations of one name, it has the first.
    pub(crate) told: Vec<Diagnostic>,
    /// The declarations that the state lacks, or has without a part.
    pub(super) incomplete: Vec<Unseen>,
    /// The declarations of the surrounding resources.
    pub(super) origins: Origins,
    /// The declarations of all surrounding edges.
    pub(super) edges: Vec<Arc<Declaration>>,
    /// The source that they surround.
    pub(super) source: String,
}

impl Loaded {
    /// The declarations of the surrounding manifests.
    pub(super) fn surrounding(&self) -> &Declarations {
        &self.surrounding.declared
    }

    /// The module sets that routes of the source can use: its own, and those of the surrounding manifests.
    pub(super) fn usable_sets(&self) -> &BTreeMap<String, Arc<ModuleSet>> {
        let own = &self.declared().sets;
        if self.surrounding().sets.is_empty() {
            return own;
        }
        self.surrounding.sets.get_or_init(|| {
            let mut sets = self.surrounding().sets.clone();
            sets.extend(own.iter().map(|(name, set)| (name.clone(), Arc::clone(set))));
            sets
        })
    }

    /// The module sets that routes of the source use, and whose names several surrounding sets have.
    pub(super) fn ambiguous_sets(&self) -> BTreeSet<&String> {
        let own = self.declared();
        let used = own.resources.iter().flat_map(|it| &it.modules_from);
        used.filter(|name| self.surrounding.ambiguous.contains(*name) && !own.sets.contains_key(*name)).collect()
    }

    /// The module sets that no route uses, not even a surrounding one. A source without routes has its sets for the
    /// routes of others.
    pub(super) fn unused_sets(&self) -> Vec<String> {
        let (own, surrounding) = (self.declared(), self.surrounding());
        if !own.resources.iter().any(|it| it.kind == Kind::HttpsEdgeRoute) {
            return Vec::new();
        }
        let users = own.resources.iter().chain(&surrounding.resources);
        let used: HashSet<&String> = users.flat_map(|it| &it.modules_from).collect();
        own.sets.keys().filter(|name| !used.contains(name)).cloned().collect()
    }

    /// The state of a store that has only the resources of the manifests that surround those of a source.
    pub(crate) fn surrounding_state(&self, source: &str) -> Snapshot {
        self.resolve_surrounding(&Snapshot::default(), source).state
    }

    /// A state without a store, with the surrounding resources of this run in place of those of an earlier one, and what it does not
    /// show.
    pub(crate) fn resolve_surrounding(&self, state: &Snapshot, source: &str) -> SurroundingState {
        let mut declared = self.surrounding().clone();
        let invariants = declared.take(Kind::Invariant);
        let is_surrounding = |entry: &Entry| entry.is_owned_by(SURROUNDING_OWNER);
        let is_empty = declared.resources.is_empty() && invariants.is_empty();
        if is_empty && !state.iter().any(|entry| is_surrounding(entry)) {
            return SurroundingState { state: state.clone(), ..SurroundingState::default() };
        }
        let mut told = Vec::new();
        let all = declared.resources.clone();
        declared.report_duplicates(&mut told);
        declared.resources = unmarked(all, &declared.resources);
        // The sets of the source are surrounding ones for the others.
        let beside = SurroundingDeclarations::from_files([self.declared().clone()]);
        let count = declared.resources.len();
        let surrounding = Loaded { declared: OnceLock::from(declared), surrounding: beside, ..Loaded::default() };
        let others = replace(state, |entry| !is_surrounding(entry), iter::empty());
        let mut resolved = resolve_beside(&surrounding, &others, source);
        if resolved.desired.len() < count {
            let alone = replace(&others, |_| true, entries(&resolved.desired));
            let own = resolve_offline(self, &alone, source);
            resolved = resolve_beside(&surrounding, &with_source(&others, source, &own.desired), source);
        }
        // The rest is for the sources that these are, whose names nobody knows.
        let is_unknown = |found: &Diagnostic| found.is_one_of(&[Code::UnknownReference, Code::AmbiguousReference]);
        told.extend(std::mem::take(&mut resolved.diagnostics).into_iter().filter(is_unknown));
        for found in &mut told {
            found.message = format!("in the surrounding manifests: {}", found.message);
            (found.severity, found.is_surrounding) = (Severity::Warning, true);
        }
        let incomplete = self.incomplete(&resolved, source);
        let state = replace(&others, |_| true, entries(&resolved.desired));
        let state = with_invariants(&state, &invariants, source, |_| false);
        let edges = self.surrounding().resources.iter().filter(|it| it.kind == Kind::HttpsEdge).cloned().collect();
        SurroundingState { state, told, incomplete, origins: resolved.origins, edges, source: source.to_owned() }
    }

    /// A state with the surrounding invariants beside those that it has, and beside those that a source declares.
    pub(crate) fn with_surrounding_invariants(
        &self,
        state: &Snapshot,
        source: &str,
        desired: &BTreeMap<Key, Desired>,
    ) -> Snapshot {
        let declared = self.surrounding().resources.iter().filter(|it| it.kind == Kind::Invariant);
        let invariants: Vec<Arc<Declaration>> = declared.cloned().collect();
        with_invariants(state, &invariants, source, |key| desired.contains_key(key))
    }
}

/// The declarations that are left without repeated ones, as they were before these were marked: a name that several sources have is
/// no fault of either.
fn unmarked(all: Vec<Arc<Declaration>>, left: &[Arc<Declaration>]) -> Vec<Arc<Declaration>> {
    let place = |it: &Declaration| (it.origin.document_key(), it.kind, it.parent.clone(), Arc::clone(&it.name));
    let mut left = left.iter().peekable();
    all.into_iter().filter(|it| left.next_if(|next| place(next) == place(it)).is_some()).collect()
}

/// A state with more invariants, each under the next free ID of its name. One that another source than `source` has already is not
/// answered twice.
fn with_invariants(
    state: &Snapshot,
    declared: &[Arc<Declaration>],
    source: &str,
    is_taken: impl Fn(&Key) -> bool,
) -> Snapshot {
    let mut declared: Vec<&Arc<Declaration>> = declared.iter().collect();
    declared.sort_by(|one, other| one.origin.file.source.name.cmp(&other.origin.file.source.name));
    let mut added: Vec<Entry> = Vec::new();
    for it in declared {
        let is_same = |entry: &Entry| entry.name() == Some(&*it.name) && entry.spec().same(it.spec.as_ref());
        let mut known = state.newest_first(Kind::Invariant, None, u64::MAX).filter(|entry| !entry.is_owned_by(source));
        if known.any(|entry| is_same(entry)) || added.iter().any(is_same) {
            continue;
        }
        let id = |number| derived_id(Kind::Invariant, None, &it.name, &[], number);
        let is_free =
            |key: &Key| state.get(key).is_none() && !is_taken(key) && added.iter().all(|entry| entry.key != *key);
        let key = (0..u32::MAX).map(|number| Key::new(Kind::Invariant, id(number))).find(is_free);
        let claim = Arc::new(Claim::new(SURROUNDING_OWNER, &*it.name));
        let entry = key.map(|key| Entry::new(key, Arc::clone(&it.spec), Timestamp::UNIX_EPOCH, 0));
        added.extend(entry.map(|entry| Entry { claim: Some(claim), ..entry }));
    }
    if added.is_empty() { state.clone() } else { replace(state, |_| true, added.into_iter()) }
}

/// A state in which a source has other resources.
pub(crate) fn with_source(state: &Snapshot, source: &str, desired: &BTreeMap<Key, Desired>) -> Snapshot {
    let stays = |entry: &Entry| !entry.is_owned_by(source) && !desired.contains_key(&entry.key);
    replace(state, stays, entries(desired))
}

/// The entries of desired resources, those of a kind in the order of files and lines.
fn entries(desired: &BTreeMap<Key, Desired>) -> impl Iterator<Item = Entry> {
    let mut wanted: Vec<&Desired> = desired.values().collect();
    wanted.sort_by_key(|it| (it.key.kind, it.position));
    wanted.into_iter().map(entry_of)
}

/// The entry of a desired resource.
fn entry_of(wanted: &Desired) -> Entry {
    let created = Entry::new(wanted.key.clone(), Arc::clone(&wanted.spec), Timestamp::UNIX_EPOCH, 0);
    Entry { claim: Some(wanted.claim.clone()), ..created }
}

/// A state with the resources that stay, and others behind them.
fn replace(state: &Snapshot, stays: impl Fn(&Entry) -> bool, added: impl Iterator<Item = Entry>) -> Snapshot {
    let staying: Vec<Entry> = state.iter().filter(|entry| stays(entry)).map(|entry| Entry::clone(entry)).collect();
    let first = staying.iter().map(|entry| entry.order + 1).max().unwrap_or_default();
    let added = added.zip(first..).map(|(entry, order)| Entry { order, ..entry });
    Snapshot::restore(state.revision, 0, iter::empty(), staying.into_iter().chain(added))
}
