//! Reads commits as people see them: headers for lists, and what they did to resources.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::change_description::ChangeOutline;
use crate::store::commit::batch::Batch;
use crate::store::commit::entries::{CommitEntry, Hash};
use crate::store::commit::header::{CommitHeader, Record, ResourceChange, calls_of};
use crate::store::engine::{BatchVisit, Query, ResourceHistoryQuery, ResourceHistoryVisit};
use crate::store::error::StoreError;
use crate::store::open_store::Store;

/// How many headers are read at once.
pub(super) const PAGE: usize = 100;

/// Visits what a commit did to a resource. Breaks if older ones do not matter.
type EntryVisit<'v> = dyn FnMut(&CommitHeader, &CommitEntry<'_>) -> Result<ControlFlow<()>, StoreError> + 'v;

impl Store {
    /// Returns the headers of at most `limit` commits before a position, newest first.
    pub(crate) fn headers(&self, query: &Query, before: u64, limit: usize) -> Result<Vec<CommitHeader>, StoreError> {
        self.engine.history().headers(query, self.visible(before), limit)
    }

    /// Returns the headers of all commits before a position, newest first. They are read as they are asked for; an error is the
    /// end.
    pub(crate) fn headers_before(
        &self,
        query: &Query,
        mut before: u64,
    ) -> impl Iterator<Item = Result<CommitHeader, StoreError>> {
        let (mut page, mut is_last) = (Vec::<CommitHeader>::new().into_iter(), false);
        std::iter::from_fn(move || {
            if page.as_slice().is_empty() && !is_last {
                let read = self.headers(query, before, PAGE);
                is_last = read.as_ref().map_or(true, |read| read.len() < PAGE);
                page = match read {
                    Ok(read) => read.into_iter(),
                    Err(error) => return Some(Err(error)),
                };
            }
            let header = page.next()?;
            before = header.position;
            Some(Ok(header))
        })
    }

    /// A position that is at most the one after the last visible commit.
    fn visible(&self, before: u64) -> u64 {
        before.min(self.position().saturating_add(1))
    }

    /// Returns the commit at a position, or none if it is no longer kept or not visible yet.
    pub(crate) fn batch(&self, position: u64) -> Result<Option<Batch>, StoreError> {
        if position > self.position() { Ok(None) } else { self.engine.history().commit(position) }
    }

    /// Visits all commits after the last one of a revision, oldest first. Some before them may come first.
    pub(crate) fn walk(&self, revision: u64, visit: &mut BatchVisit<'_>) -> Result<(), StoreError> {
        self.engine.history().walk(revision, self.position(), visit)
    }

    /// Returns the headers of at most `limit` commits before a position that changed a resource, newest first. The resource
    /// is named by the path of its key.
    pub(crate) fn headers_of(&self, path: &str, before: u64, limit: usize) -> Result<Vec<CommitHeader>, StoreError> {
        let mut found: Vec<CommitHeader> = Vec::new();
        if limit > 0 {
            self.resource_history(path, before, None, &mut |header, _| {
                found.push(header.clone());
                Ok(if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            })?;
        }
        Ok(found)
    }

    /// Returns at most `limit` commits before a position that changed any of some resources, newest first, with what each did to
    /// these alone.
    pub(crate) fn changes_of(
        &self,
        paths: &[String],
        before: u64,
        limit: usize,
    ) -> Result<Vec<(CommitHeader, Vec<ResourceChange>)>, StoreError> {
        let mut found = BTreeMap::<u64, (CommitHeader, Vec<ResourceChange>)>::new();
        let wanted = ResourceHistoryQuery { paths, before, source: None };
        self.resource_histories(wanted, &mut |_, header, entry| {
            let is_older = found.keys().next().is_none_or(|oldest| header.position < *oldest);
            if found.len() >= limit && is_older {
                return Ok(ControlFlow::Break(()));
            }
            if let Some(change) = self.change_in(entry)? {
                found.entry(header.position).or_insert_with(|| (header.clone(), Vec::new())).1.push(change);
            }
            if found.len() > limit {
                found.pop_first();
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found.into_values().rev().collect())
    }

    /// Visits what commits before a position did to a resource, newest first: all commits, or those that a source applied.
    pub(super) fn resource_history(
        &self,
        path: &str,
        before: u64,
        source: Option<&str>,
        visit: &mut EntryVisit<'_>,
    ) -> Result<(), StoreError> {
        let wanted = ResourceHistoryQuery { paths: &[path.to_owned()], before, source };
        self.resource_histories(wanted, &mut |_, header, entry| visit(header, entry))
    }

    /// Visits what commits did to some resources, for each of them the newest first.
    pub(super) fn resource_histories(
        &self,
        wanted: ResourceHistoryQuery<'_>,
        visit: &mut ResourceHistoryVisit<'_>,
    ) -> Result<(), StoreError> {
        let wanted = ResourceHistoryQuery { before: self.visible(wanted.before), ..wanted };
        self.engine.history().resource_histories(wanted, visit)
    }

    /// Returns at most `limit` commits before a position, newest first, with all that they did.
    pub fn history(&self, query: &Query, before: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.whole(self.headers(query, before, limit)?)
    }

    /// Returns at most `limit` commits before a position that changed the resource with a path, as [`Store::history`] does.
    pub fn history_of(&self, path: &str, before: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.whole(self.headers_of(path, before, limit)?)
    }

    /// Returns commits with all that they did.
    pub(crate) fn whole(&self, headers: Vec<CommitHeader>) -> Result<Vec<Record>, StoreError> {
        let mut records = Vec::with_capacity(headers.len());
        for header in headers {
            // The retention may have dropped it meanwhile.
            let Some(batch) = self.batch(header.position)? else { continue };
            let resources = self.changes_in(&batch.entries).collect::<Result<Vec<_>, StoreError>>()?;
            records.push(Record { header, calls: calls_of(&batch)?, resources });
        }
        Ok(records)
    }

    /// Returns the commit that made a revision, or none if the revision does not exist or its commit is no longer kept.
    pub fn record(&self, revision: u64) -> Result<Option<Record>, StoreError> {
        Ok(self.history(&Query::Revision(revision), u64::MAX, 1)?.pop())
    }

    /// Returns the header of the commit that made a revision, or none as [`Store::record`] does.
    pub(crate) fn header(&self, revision: u64) -> Result<Option<CommitHeader>, StoreError> {
        Ok(self.headers(&Query::Revision(revision), u64::MAX, 1)?.pop())
    }

    /// Returns some of the resources that a commit changed: at most so many, after the first ones. None of the others stays in
    /// memory. Returns none if the commit is no longer kept.
    pub(crate) fn some_changes(
        &self,
        header: &CommitHeader,
        skip: usize,
        most: usize,
    ) -> Result<Option<Vec<ResourceChange>>, StoreError> {
        let entries = self.engine.history().some_entries(header.position, skip, most)?;
        let Some(entries) = entries else { return Ok(None) };
        self.changes_in(&entries).collect::<Result<Vec<_>, StoreError>>().map(Some)
    }

    /// Returns the commit that made a revision, to read what it did to one resource after the other.
    pub(crate) fn details(&self, revision: u64) -> Result<Option<CommitDetails>, StoreError> {
        let Some(header) = self.header(revision)? else { return Ok(None) };
        Ok(self.batch(header.position)?.map(|batch| CommitDetails { header, batch }))
    }
}

/// A commit whose resources are read one after the other: all at once take ten times the memory.
pub(crate) struct CommitDetails {
    pub header: CommitHeader,
    batch: Batch,
}

impl CommitDetails {
    /// The hash, unique to the commit.
    pub(crate) fn hash(&self) -> Hash {
        self.batch.hash
    }

    /// The calls as `METHOD path`, in order.
    pub(crate) fn calls(&self) -> Result<Vec<String>, StoreError> {
        calls_of(&self.batch)
    }

    /// Reads the resources that it changed, one after the other.
    pub(crate) fn changes(&self, store: &Store) -> impl Iterator<Item = Result<ResourceChange, StoreError>> {
        store.changes_in(&self.batch.entries)
    }

    /// Returns the resources that it changed, without their values.
    pub(crate) fn outlines(&self, store: &Store) -> Result<Vec<ChangeOutline>, StoreError> {
        self.changes(store).map(|change| change.map(ChangeOutline::new)).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{Author, HttpsEdge, Id, Key, Kind, Operation};
    use crate::store::commit::header::Outcome;
    use crate::store::{Attempt, MEMORY};

    #[test]
    fn headers_have_the_numbers_of_their_commits_and_one_resource_has_its_own() {
        let folder = tempfile::tempdir().unwrap();
        for store in [Store::open(MEMORY).unwrap(), Store::open(folder.path()).unwrap()] {
            let key = |number: u32| Key::new(Kind::HttpsEdge, Id::new(&format!("edghts_{number}")));
            let create = |number: u32| {
                let spec = Arc::new(HttpsEdge { metadata: "x".repeat(400), ..HttpsEdge::default() });
                Operation::create(key(number), spec)
            };
            store.note(Attempt::new(Author::Local), Outcome::Refused, "no".into()).unwrap();
            let operations = (1..=3_000).map(create).collect();
            store.commit(Author::Local, operations).unwrap();
            let author = Author::source("shop", Some("4f2a111".into()));
            let operations = vec![create(3_001)];
            store.commit(author, operations).unwrap();
            for (query, count) in [(Query::All, 3), (Query::Reconciliations, 1), (Query::Revision(1), 1)] {
                let records = store.history(&query, u64::MAX, 10).unwrap();
                assert_eq!(records.len(), count);
                for record in records {
                    assert_eq!(
                        (record.header.operations, record.header.changed),
                        (record.calls.len(), record.resources.len())
                    );
                }
            }
            let page = store.headers(&Query::All, 3, 1).unwrap();
            assert_eq!(page.iter().map(|it| (it.position, it.changed)).collect::<Vec<_>>(), [(2, 3_000)]);
            let of = |number: u32| store.headers_of(&key(number).path(), u64::MAX, 9).unwrap();
            assert_eq!(
                [of(7), of(3_001)].map(|found| found.into_iter().map(|it| it.position).collect::<Vec<_>>()),
                [[2], [3]]
            );
            // Of several resources, each commit is found once, with what it did to them.
            let paths = [7, 8, 3_001].map(|number| key(number).path());
            let changes = |before, limit| {
                let found = store.changes_of(&paths, before, limit).unwrap();
                found.into_iter().map(|(header, changes)| (header.position, changes.len())).collect::<Vec<_>>()
            };
            assert_eq!(
                [changes(u64::MAX, 9), changes(u64::MAX, 1), changes(3, 9), changes(2, 9)],
                [vec![(3, 1), (2, 2)], vec![(3, 1)], vec![(2, 2)], vec![]]
            );
            let some = |skip: usize| store.some_changes(&store.header(1).unwrap().unwrap(), skip, 25).unwrap().unwrap();
            assert_eq!([0, 2_990, 3_000].map(|skip| some(skip).len()), [25, 10, 0]);
            let details = store.details(1).unwrap().unwrap();
            assert_eq!(details.outlines(&store).unwrap().len(), 3_000);
        }
    }

    #[test]
    fn all_headers_are_read_page_by_page() {
        let store = Store::open(MEMORY).unwrap();
        for count in 1..=2 * PAGE + 1 {
            store.note(Attempt::new(Author::Local), Outcome::Refused, "no".into()).unwrap();
            if count % PAGE <= 1 {
                let mut headers = store.headers_before(&Query::All, u64::MAX);
                let read: Vec<u64> = headers.by_ref().map(|header| header.unwrap().position).collect();
                assert_eq!(read.len(), count);
                assert!(read.is_sorted_by(|newer, older| newer > older) && headers.next().is_none(), "{count}");
            }
        }
    }
}
