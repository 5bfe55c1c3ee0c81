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
//! # What it never does
//!
//! Nothing here is planned, pruned, linted or counted. A set of the source hides one of the same name.

use std::iter;

use foldhash::HashSet;

use super::resolver::resolve_offline;
use super::surrounding_declarations::SurroundingDeclarations;
use crate::manifest::load::declaration::ModuleSet;
use crate::manifest::load::declarations::Declarations;
use crate::manifest::loader::Loaded;
use crate::manifest::prelude::*;
use crate::model::claim::SURROUNDING_OWNER;
use crate::model::{Entry, Name, Severity};

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
        self.with_surrounding(&Snapshot::default(), source)
    }

    /// A state without a store, with the surrounding resources of this run in place of those of an earlier one.
    pub(crate) fn with_surrounding(&self, state: &Snapshot, source: &str) -> Snapshot {
        self.resolve_surrounding(state, source).0
    }

    /// Like [`Self::with_surrounding`], with warnings of what surrounding manifests declare and the state lacks: of two declarations
    /// of one name, it has the first.
    pub(crate) fn resolve_surrounding(&self, state: &Snapshot, source: &str) -> (Snapshot, Vec<Diagnostic>) {
        let mut declared = self.surrounding().clone();
        let is_surrounding = |entry: &Entry| entry.is_owned_by(SURROUNDING_OWNER);
        if declared.resources.is_empty() && !state.iter().any(|entry| is_surrounding(entry)) {
            return (state.clone(), Vec::new());
        }
        let mut unseen = Vec::new();
        declared.report_duplicates(&mut unseen);
        // The sets of the source are surrounding ones for the others.
        let beside = SurroundingDeclarations::from_files([self.declared().clone()]);
        let count = declared.resources.len();
        let surrounding = Loaded { declared: OnceLock::from(declared), surrounding: beside, ..Loaded::default() };
        let others = replace(state, |entry| !is_surrounding(entry), iter::empty());
        let mut resolved = resolve_offline(&surrounding, &others, SURROUNDING_OWNER);
        if resolved.desired.len() < count {
            let alone = replace(&others, |_| true, resolved.desired.values().map(entry_of));
            let own = resolve_offline(self, &alone, source);
            resolved = resolve_offline(&surrounding, &with_source(&others, source, &own.desired), SURROUNDING_OWNER);
        }
        // The rest is for the sources that these are, whose names nobody knows.
        let is_unseen = |found: &Diagnostic| {
            [Code::UnknownReference, Code::AmbiguousReference].iter().any(|code| found.code == Name::Code(*code))
        };
        unseen.extend(resolved.diagnostics.into_iter().filter(is_unseen));
        let told = unseen.into_iter().map(|found| {
            let message = format!("in the surrounding manifests: {}", found.message);
            Diagnostic { severity: Severity::Warning, message, is_surrounding: true, ..found }
        });
        let told = told.collect();
        (replace(state, |entry| !is_surrounding(entry), resolved.desired.values().map(entry_of)), told)
    }

    /// A state with the surrounding invariants, also in place of those with the same IDs that differ.
    pub(crate) fn with_surrounding_invariants(&self, state: &Snapshot, source: &str) -> Snapshot {
        let surrounding = self.surrounding_state(source);
        let differs =
            |entry: &&Arc<Entry>| state.get(&entry.key).is_none_or(|known| !known.spec().same(entry.spec().as_ref()));
        let declared = surrounding.newest_first(Kind::Invariant, None, u64::MAX);
        let added: BTreeMap<Key, &Arc<Entry>> =
            declared.filter(differs).map(|entry| (entry.key.clone(), entry)).collect();
        if added.is_empty() {
            return state.clone();
        }
        replace(state, |entry| !added.contains_key(&entry.key), added.values().map(|entry| Entry::clone(entry)))
    }
}

/// A state in which a source has other resources.
pub(crate) fn with_source(state: &Snapshot, source: &str, desired: &BTreeMap<Key, Desired>) -> Snapshot {
    let stays = |entry: &Entry| !entry.is_owned_by(source) && !desired.contains_key(&entry.key);
    replace(state, stays, desired.values().map(entry_of))
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
