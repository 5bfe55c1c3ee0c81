//! What others than its source have written to a resource, and where it came from: the newest records of the history,
//! back to the one of the source (D85, D86).

use std::collections::{BTreeSet, HashMap};

use serde::Deserialize;
use serde_json::Value;

use super::{
    Store, StoreError,
    blame::SetBy,
    engine::Query,
    history::Touched,
    large_records::LARGE,
    record_head::{RecordHead, damaged},
    record_summary::RecordSummary,
    record_touched::touched_in,
    touched::OWNED_BY,
};
use crate::model::{
    Kind,
    code::Code,
    drift::{DriftFields, ForeignWrite, writer},
    id::Id,
    key::Key,
    operation::Author,
    resource::AnyResource,
    secret::Secrets,
    snapshot::Snapshot,
};

/// How many records of a resource are read at once: first the newest, which is usually enough, and at most this many.
const MOST_RECORDS: usize = 32;
/// How many records are read at most if the engine has no index: each search reads the files.
const MOST_SCANNED: usize = 1_000;
/// How many records of a resource are searched.
const MOST_SEARCHED: usize = 1_000;
/// Where a resource came from, and what changed it last.
#[derive(Debug, Clone)]
pub(crate) struct Provenance {
    /// The last change of the resource; none if that is no longer in the history.
    pub changed: Option<SetBy>,
    /// The last change by the resource's source, and the file and line that declared the resource then.
    pub applied: Option<(SetBy, Option<String>)>,
}

/// The places of what a record changed.
#[derive(Deserialize)]
struct RecordPlaces {
    #[serde(default)]
    resources: Vec<TouchedPlace>,
}

#[derive(Deserialize)]
struct TouchedPlace {
    path: String,
}

fn places_in(bytes: &[u8]) -> Result<Vec<TouchedPlace>, StoreError> {
    serde_json::from_slice(bytes).map(|RecordPlaces { resources }| resources).map_err(damaged)
}

impl Store {
    /// Finds what others have written to fields since a source last wrote them, up to a revision, newest first. Resources
    /// without such writes are left out.
    pub(crate) fn foreign_writes(
        &self,
        keys: &[Key],
        source: &str,
        upto: u64,
    ) -> Result<HashMap<Key, Vec<ForeignWrite>>, StoreError> {
        let mut found: HashMap<Key, Vec<ForeignWrite>> = HashMap::new();
        if keys.is_empty() {
            return Ok(found);
        }
        let state = self.snapshot();
        if self.engine.finds_by_resource() {
            for key in keys {
                let path = key.path();
                let (mut search, mut read) = (ForeignSearch::default(), 0);
                self.each_record_since_large(&path, source, upto, |head, bytes| {
                    if head.revision.is_none_or(|revision| revision > upto) {
                        return Ok(Search::GoesOn);
                    }
                    let is_own = head.is_of(source);
                    // A look at its fields, for each resource, would cost more than the rest of a run.
                    if is_own && bytes.len() > LARGE {
                        return Ok(Search::Ends);
                    }
                    read += 1;
                    let end = search.read(is_own, writes_to(&path, bytes, source, &state)?);
                    Ok(if read < MOST_SEARCHED { end } else { Search::Ends })
                })?;
                if !search.writes.is_empty() {
                    found.insert(key.clone(), search.writes);
                }
            }
            return Ok(found);
        }
        let mut open: HashMap<String, (&Key, ForeignSearch)> =
            keys.iter().map(|key| (key.path(), (key, ForeignSearch::default()))).collect();
        for bytes in self.engine.history(&Query::All, u64::MAX, MOST_SCANNED)? {
            if open.is_empty() {
                break;
            }
            let head = RecordHead::read(&bytes)?;
            if head.revision.is_none_or(|revision| revision > upto) {
                continue;
            }
            let is_own = head.is_of(source);
            if is_own && bytes.len() > LARGE {
                break;
            }
            for TouchedPlace { path } in &places_in(&bytes)? {
                let Some((_, search)) = open.get_mut(path) else { continue };
                if search.read(is_own, writes_to(path, &bytes, source, &state)?) == Search::Ends
                    && let Some((key, search)) = open.remove(path)
                {
                    found.insert(key.clone(), search.writes);
                }
            }
        }
        found.extend(open.into_values().map(|(key, search)| (key.clone(), search.writes)));
        found.retain(|_, writes| !writes.is_empty());
        Ok(found)
    }

    /// Whether nobody but a source has written to edges and routes, so that [`Store::foreign_writes`] finds nothing for
    /// any of them that the source owns.
    pub(crate) fn edges_are_written_by(&self, source: &str) -> Result<bool, StoreError> {
        if self.engine.finds_by_resource() {
            return Ok(false);
        }
        // The path of an edge without its id: those of all edges and routes start with it.
        let edges = Key::new(Kind::HttpsEdge, Id::new("")).path();
        let (mut before, mut left, mut limit) = (u64::MAX, MOST_SCANNED, MOST_RECORDS);
        loop {
            let count = limit.min(left);
            let records = self.engine.history(&Query::All, before, count)?;
            for bytes in &records {
                let head = RecordHead::read(bytes)?;
                before = head.position;
                if head.revision.is_none() {
                    continue;
                }
                if head.is_of(source) {
                    if bytes.len() > LARGE {
                        return Ok(true);
                    }
                } else if places_in(bytes)?.iter().any(|place| place.path.starts_with(&edges)) {
                    return Ok(false);
                }
            }
            left = left.saturating_sub(records.len());
            if records.len() < count || left == 0 {
                return Ok(true);
            }
            // The newest are usually enough, and a record can be large.
            limit *= 4;
        }
    }

    /// Returns the fields of a Spec in the form of the history.
    pub(crate) fn digested(&self, spec: &dyn AnyResource) -> Result<DriftFields, StoreError> {
        let fields = spec.to_json(Secrets::Digested(&self.digest_key));
        fields.map_err(|error| StoreError::new(Code::Internal, error.to_string()))
    }

    /// Finds the last change of a resource, and the last one by its source, if it has one.
    pub(crate) fn provenance(&self, key: &Key, source: Option<&str>) -> Result<Provenance, StoreError> {
        let query = Query::Resource(key.path());
        let mut found = Provenance { changed: None, applied: None };
        let (mut before, mut limit) = (u64::MAX, self.first_search());
        loop {
            let records = self.summaries(&query, before, limit)?;
            limit = (limit * 4).min(MOST_RECORDS);
            if records.is_empty() {
                return Ok(found);
            }
            for RecordSummary { position, revision, at, author, .. } in records {
                before = position;
                let Some(revision) = revision else { continue };
                let owner =
                    source.filter(|source| matches!(&author, Author::Source { source: by, .. } if by == source));
                let set = SetBy { revision, at, author: author.clone() };
                if let Some(owner) = owner {
                    found.applied = Some((set.clone(), self.place_in(position, key, owner)?));
                }
                if found.changed.is_none() {
                    found.changed = Some(set);
                }
                if owner.is_some() || source.is_none() {
                    return Ok(found);
                }
            }
        }
    }

    /// How many records of a resource are searched for first.
    fn first_search(&self) -> usize {
        if self.engine.finds_by_resource() { 1 } else { MOST_SCANNED }
    }

    /// The file and line that declared a resource in the record at a position, the newest one of its source.
    fn place_in(&self, position: u64, key: &Key, source: &str) -> Result<Option<String>, StoreError> {
        let path = key.path();
        if let Some(place) = self.engine.declared_at(&path, source)? {
            return Ok(Some(place));
        }
        let Some(record) = self.stored(position)? else { return Ok(None) };
        Ok(touched_in(&record, &path)?.into_iter().find_map(|touched| touched.declared_at))
    }

    /// Visits the records of a resource, newest first, up to a large one of a source that made a revision up to `upto`. It
    /// may visit that one, too.
    fn each_record_since_large(
        &self,
        path: &str,
        source: &str,
        upto: u64,
        visit: impl FnMut(&RecordHead, &[u8]) -> Result<Search, StoreError>,
    ) -> Result<(), StoreError> {
        self.each_record_before(path, |position| self.is_large_of(position, source, upto), visit)
    }

    /// Whether the record at a position is a large one of a source, of a revision up to `upto`.
    fn is_large_of(&self, position: u64, source: &str, upto: u64) -> bool {
        if !self.large.knows(position)
            && let Ok(Some((length, beginning))) = self.engine.beginning(position)
            && length > LARGE as u64
            && let Ok(head) = RecordHead::read(&beginning)
            && head.position == position
        {
            self.large.note_head(&head);
        }
        self.large.is_of(position, source, upto)
    }

    /// Visits the records of a resource, newest first, up to one that ends the search by its position. That one is not
    /// read.
    fn each_record_before(
        &self,
        path: &str,
        is_end: impl Fn(u64) -> bool,
        mut visit: impl FnMut(&RecordHead, &[u8]) -> Result<Search, StoreError>,
    ) -> Result<(), StoreError> {
        let query = Query::Resource(path.to_owned());
        let (mut before, mut limit) = (u64::MAX, self.first_search());
        loop {
            let positions = self.engine.positions(&query, before, limit)?.unwrap_or_default();
            let end = positions.iter().position(|position| is_end(*position));
            let records = match (end, positions.first()) {
                (Some(0), _) => return Ok(()),
                // A record that is added meanwhile is not among them.
                (Some(count), Some(newest)) => self.engine.history(&query, newest + 1, count)?,
                _ => self.engine.history(&query, before, limit)?,
            };
            for bytes in &records {
                let head = RecordHead::read(bytes)?;
                before = head.position;
                if bytes.len() > LARGE {
                    self.large.note_head(&head);
                }
                if visit(&head, bytes)? == Search::Ends {
                    return Ok(());
                }
            }
            if end.is_some() || records.len() < limit {
                return Ok(());
            }
            limit = (limit * 4).min(MOST_RECORDS);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Search {
    GoesOn,
    Ends,
}

/// The search for what others have written to a resource, from its newest record to older ones.
#[derive(Debug, Default)]
struct ForeignSearch {
    writes: Vec<ForeignWrite>,
    /// The fields that the source itself has written since. It may have left others as somebody had set them.
    own: BTreeSet<String>,
}

impl ForeignSearch {
    /// Adds what a record wrote. Returns whether older ones matter.
    fn read(&mut self, is_own: bool, written: Vec<(ForeignWrite, Received)>) -> Search {
        let mut end = Search::GoesOn;
        for (mut write, received) in written {
            if received == Received::Yes {
                end = Search::Ends;
            }
            if is_own {
                self.own.extend([&write.before, &write.after].into_iter().flatten().flat_map(names_in));
                if write.before.is_none() || write.after.is_none() {
                    end = Search::Ends;
                }
                continue;
            }
            let is_whole = write.before.is_none() || write.after.is_none();
            for side in [&mut write.before, &mut write.after].into_iter().flatten() {
                if let Some(fields) = side.as_object_mut() {
                    fields.retain(|name, _| !self.own.contains(name));
                }
            }
            let is_empty = |side: &Option<Value>| side.as_ref().is_none_or(|side| names_in(side).next().is_none());
            if is_whole || !is_empty(&write.before) || !is_empty(&write.after) {
                self.writes.push(write);
            }
        }
        end
    }
}

fn names_in(side: &Value) -> impl Iterator<Item = String> {
    side.as_object().into_iter().flat_map(|fields| fields.keys().cloned())
}

/// Whether a record gave a resource that was there to the source that is asked about: from another source, or from nobody. It
/// took over what was there, so what others had written before is none of its drift (D85, D104).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Received {
    Yes,
    No,
}

/// What a record wrote to a resource, and whether `source` received the resource by it. `state` has the descriptions of
/// API keys.
fn writes_to(
    path: &str,
    bytes: &[u8],
    source: &str,
    state: &Snapshot,
) -> Result<Vec<(ForeignWrite, Received)>, StoreError> {
    let RecordHead { revision, at, author, .. } = RecordHead::read(bytes)?;
    let (by, at) = (writer(&author, state), at.to_string());
    let touched = touched_in(bytes, path)?.into_iter();
    let write = |touched: Touched| {
        let Touched { mut before, mut after, .. } = touched;
        let owner_in = |side: &mut Option<Value>| {
            let claim = side.as_mut().and_then(|side| side.as_object_mut()).and_then(|side| side.remove(OWNED_BY));
            claim.and_then(|claim| claim.get("source")?.as_str().map(str::to_owned))
        };
        let (owner, next) = (owner_in(&mut before), owner_in(&mut after));
        let was_there = before.is_some() && owner.as_deref() != Some(source);
        let is_received = was_there && next.as_deref() == Some(source);
        let (by, at) = (by.clone(), at.clone());
        let write = ForeignWrite { before, after, owner, by, revision: revision.unwrap_or_default(), at };
        (write, if is_received { Received::Yes } else { Received::No })
    };
    Ok(touched.map(write).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        model::{
            kind::{https_edge::HttpsEdge, owner::Owner},
            operation::{Author, Claim, Operation},
        },
        store::{Commit, mint},
    };

    fn key() -> Key {
        Key::new(Kind::HttpsEdge, Id::new("edghts_1"))
    }

    fn commit(store: &Store, author: Author, operation: Operation) {
        store.commit(Commit { base: None, operations: vec![operation], author, at: mint::now() }).unwrap();
    }

    fn patch(text: &str) -> Operation {
        let spec = Arc::new(HttpsEdge { description: text.into(), ..HttpsEdge::default() });
        Operation::Patch { key: key(), spec, fields: vec!["description".into()] }
    }

    /// A resource of `shop` that was applied as revision 1, and changed by others as revisions 2, 4 and 5.
    fn history(store: &Store) {
        let shop = || Author::source("shop", Some("4f2a".into()));
        let claim = Some(Arc::new(Claim { source: "shop".into(), name: "a".into(), ..Claim::default() }));
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
            let found = |upto| store.foreign_writes(&[key()], "shop", upto).unwrap().remove(&key()).unwrap_or_default();
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
    fn what_the_former_owner_wrote_is_no_drift_of_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        history(&store);
        let claim = Claim { source: "pay".into(), name: "a".into(), ..Claim::default() };
        let taken = Operation::Claim { key: key(), claim: Some(Arc::new(claim)) };
        commit(&store, Author::source("pay", None), taken);
        let writes = |upto| store.foreign_writes(&[key()], "pay", upto).unwrap();
        assert!(writes(6).is_empty(), "{:?}", writes(6));
        commit(&store, Author::Local, patch("by hand since"));
        assert_eq!(writes(7).remove(&key()).map(|writes| writes.len()), Some(1));
    }

    #[test]
    fn what_was_written_before_the_adoption_is_no_drift() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let create = Operation::Create { key: key(), spec: Arc::new(HttpsEdge::default()), claim: None, token: None };
        commit(&store, Author::Local, create);
        commit(&store, Author::Local, patch("by hand"));
        let claim = Claim { source: "shop".into(), name: "a".into(), ..Claim::default() };
        let adopted = Operation::Claim { key: key(), claim: Some(Arc::new(claim)) };
        commit(&store, Author::source("shop", None), adopted);
        let writes = |upto| store.foreign_writes(&[key()], "shop", upto).unwrap().remove(&key()).unwrap_or_default();
        assert!(writes(3).is_empty(), "{:?}", writes(3));
        commit(&store, Author::Local, patch("by hand since"));
        assert_eq!(writes(4).into_iter().map(|it| it.revision).collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn an_edge_that_others_have_written_is_found_in_the_log() {
        let create = |key: Key, spec: Arc<dyn AnyResource>| Operation::Create { key, spec, claim: None, token: None };
        for is_changed in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::open(folder.path()).unwrap();
            commit(&store, Author::source("shop", None), create(key(), Arc::new(HttpsEdge::default())));
            let owner = create(Key::new(Kind::Owner, Id::new("usr_1")), Arc::new(Owner::default()));
            commit(&store, Author::Local, owner);
            if is_changed {
                commit(&store, Author::Local, patch("by hand"));
            }
            drop(store);
            let store = Store::open_to_read(folder.path()).unwrap();
            assert_eq!(store.edges_are_written_by("shop").unwrap(), !is_changed);
            assert!(!store.edges_are_written_by("other").unwrap());
        }
    }
}
