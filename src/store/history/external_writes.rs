//! Writes to a resource that its source did not make, and where they came from: the newest records of the history,
//! back to the one of the source (D85, D86).
//!
//! Only the history of the resource is read, and of each commit only the header and one entry. The search ends at the
//! last write of the source to a field, at the revision at which a sync has found what the manifests declare
//! ([`Baseline`]), and within bounds: what is beyond them counts as pending. A commit of the source that changed very
//! many resources counts for all of their fields, because reading them for each resource would cost more than the rest
//! of a run.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::blame::SetBy;
use super::change_description::{OWNED_BY, digested};
use crate::model::drift::{DriftFields, ExternalWrite, named_writer, writer};
use crate::model::{AnyResource, Author, Claim, Key, LazySpec, Snapshot};
use crate::store::commit::header::{CommitHeader, ResourceChange};
use crate::store::commit::record;
use crate::store::engine::ResourceHistoryQuery;
use crate::store::error::StoreError;
use crate::store::open_store::Store;

/// The number of resources from which on a commit of the source counts for all of their fields.
const LARGE: usize = 1_000;
/// The most resources that a [`Baseline`] notes as left as they were.
const MOST_LEFT: usize = 1_000;
/// How many writes of others to a resource are searched.
const MOST_SEARCHED: usize = 1_000;

/// The last sync of a source that found what its manifests declare: they have taken over what others had written before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Baseline {
    /// The revision that it found.
    pub revision: u64,
    /// The paths of the resources that it left as they were, because of drift, and the revision of their own last such sync.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    left: BTreeMap<String, u64>,
}

impl Baseline {
    /// The baseline after another sync, which found a revision and left some resources as they were. If these are very many, it
    /// is the former one: more counts as drift then.
    pub(crate) fn after(before: Option<Self>, revision: u64, left: &BTreeSet<String>) -> Option<Self> {
        if left.len() > MOST_LEFT {
            return before;
        }
        let known = |path: &String| (path.clone(), before.as_ref().map_or(0, |before| before.of(path)));
        Some(Self { revision, left: left.iter().map(known).collect() })
    }

    /// Whether a store at a revision can have it. A copy may have been made while the source was synced.
    pub(crate) fn is_reached_at(&self, revision: u64) -> bool {
        self.revision <= revision
    }

    /// The revision up to which nothing that others have written to a resource is drift.
    fn of(&self, path: &str) -> u64 {
        self.left.get(path).copied().unwrap_or(self.revision)
    }
}

/// Where a resource came from, and what changed it last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Provenance {
    /// The last change of the resource; none if that is no longer in the history.
    pub changed: Option<SetBy>,
    /// The last change by the resource's source, and the file and line that declared the resource then.
    pub applied: Option<(SetBy, Option<String>)>,
}

impl Store {
    /// Finds what others have written to fields since a source last wrote them or its manifests last agreed with them, up to
    /// a revision, newest first. Resources without such writes are left out.
    pub(crate) fn external_writes(
        &self,
        keys: &[Key],
        source: &str,
        upto: u64,
        baseline: impl FnOnce() -> Option<Baseline>,
    ) -> Result<HashMap<Key, Vec<ExternalWrite>>, StoreError> {
        if keys.is_empty() {
            return Ok(HashMap::new());
        }
        let baseline = baseline();
        let state = self.snapshot();
        let paths: Vec<String> = keys.iter().map(Key::path).collect();
        let mut searches: Vec<ExternalSearch> = keys.iter().map(|_| ExternalSearch::default()).collect();
        let wanted = ResourceHistoryQuery { paths: &paths, before: u64::MAX, source: None };
        self.resource_histories(wanted, &mut |number, header, entry| {
            let Some(search) = searches.get_mut(number) else { return Ok(ControlFlow::Break(())) };
            let Some(revision) = header.revision.filter(|revision| *revision <= upto) else {
                return Ok(ControlFlow::Continue(()));
            };
            search.read += 1;
            let agreed = baseline.as_ref().zip(paths.get(number)).map_or(0, |(baseline, path)| baseline.of(path));
            if revision <= agreed {
                return Ok(ControlFlow::Break(()));
            }
            let is_own = header.applied_by() == Some(source);
            // A look at its fields, for each resource, would cost more than the rest of a run.
            if is_own && header.changed > LARGE {
                return Ok(ControlFlow::Break(()));
            }
            let Some(change) = self.change_in(entry)? else { return Ok(ControlFlow::Continue(())) };
            let (write, is_received) = written_by(header, revision, change, source, &state);
            let is_over = search.add(is_own, write, is_received) || search.read >= MOST_SEARCHED;
            Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        let found = keys.iter().cloned().zip(searches.into_iter().map(|search| search.writes));
        Ok(found.filter(|(_, writes)| !writes.is_empty()).collect())
    }

    /// Returns the fields of a Spec in the form of a resource's history: with the digests that its record has of the same
    /// secrets, which outlive their data keys.
    pub(crate) fn digested(
        &self,
        key: &Key,
        spec: &Arc<dyn AnyResource>,
        claim: Option<&Claim>,
    ) -> Result<DriftFields, StoreError> {
        let keyring = self.keyring.as_deref();
        let recorded = keyring.and_then(|keyring| record::digested(key, &LazySpec::new(Arc::clone(spec)), keyring));
        let spec = recorded.as_ref().map_or(spec, LazySpec::spec);
        digested(spec.as_ref(), claim, &self.digest_key).map_err(StoreError::internal)
    }

    /// Finds the last change of a resource, and the last one by its source, if it has one.
    pub(crate) fn provenance(&self, key: &Key, source: Option<&str>) -> Result<Provenance, StoreError> {
        let mut found = Provenance::default();
        self.resource_history(&key.path(), u64::MAX, None, &mut |header, entry| {
            let Some(revision) = header.revision else { return Ok(ControlFlow::Continue(())) };
            let set = SetBy { revision, at: header.at, author: header.author.clone() };
            let is_own = source.is_some() && header.applied_by() == source;
            if is_own {
                let place = Some(entry.place).filter(|place| !place.is_empty()).map(str::to_owned);
                found.applied = Some((set.clone(), place));
            }
            found.changed.get_or_insert(set);
            Ok(if is_own || source.is_none() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(found)
    }
}

/// The search for what others have written to a resource, from its newest commit to older ones.
#[derive(Debug, Default)]
struct ExternalSearch {
    writes: Vec<ExternalWrite>,
    /// The fields that the source itself has written since. It may have left others as somebody had set them.
    own: BTreeSet<String>,
    /// How many commits were read.
    read: usize,
}

impl ExternalSearch {
    /// Adds what a commit wrote. Returns whether older ones do not matter.
    fn add(&mut self, is_own: bool, mut write: ExternalWrite, is_received: bool) -> bool {
        let is_whole = write.before.is_none() || write.after.is_none();
        if is_own {
            self.own.extend([&write.before, &write.after].into_iter().flatten().flat_map(names_in));
            return is_received || is_whole;
        }
        for side in [&mut write.before, &mut write.after].into_iter().flatten() {
            if let Some(fields) = side.as_object_mut() {
                fields.retain(|name, _| !self.own.contains(name));
            }
        }
        let is_empty = |side: &Option<Value>| side.as_ref().is_none_or(|side| names_in(side).next().is_none());
        if is_whole || !is_empty(&write.before) || !is_empty(&write.after) {
            self.writes.push(write);
        }
        is_received
    }
}

fn names_in(side: &Value) -> impl Iterator<Item = String> {
    side.as_object().into_iter().flat_map(|fields| fields.keys().cloned())
}

/// The changes of a commit to a resource, and whether `source` received the resource by it, from another source or from nobody:
/// it took over what was there, so what others had written before is none of its drift (D85, D104). `state` has the
/// descriptions of API keys.
fn written_by(
    header: &CommitHeader,
    revision: u64,
    change: ResourceChange,
    source: &str,
    state: &Snapshot,
) -> (ExternalWrite, bool) {
    let ResourceChange { mut before, mut after, .. } = change;
    let owner_in = |side: &mut Option<Value>| {
        let claim = side.as_mut().and_then(|side| side.as_object_mut()).and_then(|side| side.remove(OWNED_BY));
        claim.and_then(|claim| claim.get("source")?.as_str().map(str::to_owned))
    };
    let (owner, next) = (owner_in(&mut before), owner_in(&mut after));
    let was_there = before.is_some() && owner.as_deref() != Some(source);
    let is_received = was_there && next.as_deref() == Some(source);
    let (by, by_name) = (writer(&header.author, state), named_writer(&header.author, state));
    let (by_rollback, at) = (matches!(header.author, Author::Rollback { .. }), header.at.to_string());
    let write = ExternalWrite { before, after, owner, by, by_name, by_rollback, revision, at };
    (write, is_received)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::{HttpsEdge, Id, Kind, Operation};

    fn key() -> Key {
        Key::new(Kind::HttpsEdge, Id::new("edghts_1"))
    }

    fn commit(store: &Store, author: Author, operation: Operation) {
        store.commit(author, vec![operation]).unwrap();
    }

    fn patch(text: &str) -> Operation {
        let spec = Arc::new(HttpsEdge { description: text.into(), ..HttpsEdge::default() });
        Operation::Patch { key: key(), spec, fields: vec!["description".into()] }
    }

    /// A resource of `shop` that was applied as revision 1, and changed by others as revisions 2, 4 and 5.
    fn history(store: &Store) {
        let shop = || Author::source("shop", Some("4f2a".into()));
        let claim = Some(Arc::new(Claim::new("shop", "a")));
        let create = Operation::Create { key: key(), spec: Arc::new(HttpsEdge::default()), claim, token: None };
        commit(store, shop(), create);
        commit(store, Author::Local, patch("before"));
        commit(store, shop(), patch("applied"));
        let api = Author::Api { key: Id::new("ak_1"), owner: Id::new("usr_1") };
        commit(store, api, patch("by hand"));
        commit(store, Author::Local, patch("again"));
    }

    #[test]
    fn writes_of_others_are_found_back_to_the_last_one_of_the_source() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        history(&Store::open(&path).unwrap());
        for to_read in [false, true] {
            let store = if to_read { Store::open_to_read(&path) } else { Store::open(&path) }.unwrap();
            let found = |upto| {
                store.external_writes(&[key()], "shop", upto, || None).unwrap().remove(&key()).unwrap_or_default()
            };
            let told = |upto| found(upto).into_iter().map(|it| (it.revision, it.by)).collect::<Vec<_>>();
            let (hand, again) = ((4, "API key ak_1 of usr_1".to_owned()), (5, "command line".to_owned()));
            assert_eq!(told(5), [again, hand.clone()]);
            assert_eq!(told(4), [hand]);
            assert!(told(3).is_empty());
            let first = found(4).remove(0).before.unwrap();
            assert_eq!(first.get("description").and_then(|it| it.as_str()), Some("applied"));
            let came = store.provenance(&key(), Some("shop")).unwrap();
            assert_eq!((came.changed.unwrap().revision, came.applied.unwrap().0.revision), (5, 3));
        }
    }

    #[test]
    fn what_the_manifests_have_taken_over_is_no_drift() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        history(&store);
        let found = |baseline: &Baseline| {
            let writes = store.external_writes(&[key()], "shop", 5, || Some(baseline.clone())).unwrap();
            writes.into_values().flatten().map(|it| it.revision).collect::<Vec<_>>()
        };
        let (nothing, drifted) = (BTreeSet::new(), BTreeSet::from([key().path()]));
        let after = |before: Option<&Baseline>, revision, left: &BTreeSet<String>| {
            Baseline::after(before.cloned(), revision, left).unwrap()
        };
        let first = after(None, 4, &nothing);
        assert_eq!(found(&first), [5]);
        assert!(found(&after(Some(&first), 5, &nothing)).is_empty());
        assert_eq!(found(&after(Some(&first), 5, &drifted)), [5], "what is left as it is stays drift");
        assert_eq!(found(&after(None, 5, &drifted)), [5, 4], "nothing was agreed before");
        let many = (0..=MOST_LEFT).map(|number| number.to_string()).collect();
        assert_eq!(after(Some(&first), 5, &many), first);
        assert!(first.is_reached_at(4) && !first.is_reached_at(3));
    }

    #[test]
    fn what_the_former_owner_wrote_is_no_drift_of_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        history(&store);
        let claim = Claim::new("pay", "a");
        let taken = Operation::Claim { key: key(), claim: Some(Arc::new(claim)) };
        commit(&store, Author::source("pay", None), taken);
        let writes = |upto| store.external_writes(&[key()], "pay", upto, || None).unwrap();
        assert!(writes(6).is_empty(), "{:?}", writes(6));
        commit(&store, Author::Local, patch("by hand since"));
        assert_eq!(writes(7).remove(&key()).map(|writes| writes.len()), Some(1));
    }

    #[test]
    fn what_was_written_before_the_adoption_is_no_drift() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let create = Operation::create(key(), Arc::new(HttpsEdge::default()));
        commit(&store, Author::Local, create);
        commit(&store, Author::Local, patch("by hand"));
        let claim = Claim::new("shop", "a");
        let adopted = Operation::Claim { key: key(), claim: Some(Arc::new(claim)) };
        commit(&store, Author::source("shop", None), adopted);
        let writes =
            |upto| store.external_writes(&[key()], "shop", upto, || None).unwrap().remove(&key()).unwrap_or_default();
        assert!(writes(3).is_empty(), "{:?}", writes(3));
        commit(&store, Author::Local, patch("by hand since"));
        assert_eq!(writes(4).into_iter().map(|it| it.revision).collect::<Vec<_>>(), [4]);
    }
}
