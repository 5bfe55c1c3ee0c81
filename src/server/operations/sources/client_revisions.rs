//! The last revision of each source that clients apply, from the history. Nothing is read twice: the history is long, and
//! dashboards ask again and again.

use crate::model::author::RejectedManifests;
use crate::server::prelude::*;
use crate::store::history::after_rollback::AppliedManifests;
use crate::store::{CommitHeader, Query};

/// How many records are read at once.
const RECORDS: usize = 100;
/// The most times that a request reads records. The next one goes on.
const MOST_READINGS: usize = 50;
/// The most sources whose manifests in effect a request looks up after a rollback. The next one goes on.
const MOST_LOOKED_UP: usize = 10;

/// The last revision of each source in the part of the history that was read.
#[derive(Default)]
pub(crate) struct ClientRevisions(Lock<ReadHistory>);

#[derive(Default)]
struct ReadHistory {
    /// The newest and the oldest record that was read; all between them were.
    newest: u64,
    oldest: u64,
    /// None after a destroy.
    by_source: HashMap<String, Option<AppliedManifests>>,
    /// By source, the manifests that a rollback left, and the ones in effect, which only another rollback changes.
    rolled_back: HashMap<String, (Vec<RejectedManifests>, Option<AppliedManifests>)>,
}

impl ClientRevisions {
    /// Returns the last revision of each of these sources that has one; after a rollback, the one that it brought back.
    pub(super) fn latest(
        &self,
        store: &Store,
        current: &Snapshot,
        sources: &[&str],
    ) -> BTreeMap<String, AppliedManifests> {
        if sources.is_empty() {
            return BTreeMap::new();
        }
        let mut read = self.0.lock();
        if let Err(error) = read.catch_up(store, sources).and_then(|()| read.look_up(store, current, sources)) {
            tracing::warn!(code = %error.code, "cannot read from the history what sources applied last: {error}");
        }
        let found = sources.iter().filter_map(|source| {
            let last = match current.rejected(source).is_empty() {
                true => read.by_source.get(*source)?.clone()?,
                false => read.rolled_back.get(*source)?.1.clone()?,
            };
            Some(((*source).to_owned(), last))
        });
        found.collect()
    }
}

impl ReadHistory {
    /// Reads the records since the last time, and then older ones until each of the sources is found.
    fn catch_up(&mut self, store: &Store, sources: &[&str]) -> Result<(), StoreError> {
        let is_first = self.newest == 0;
        let (mut newer, mut newest, mut before, mut read) = (HashMap::new(), self.newest, u64::MAX, 0);
        // The first time, there is nothing to join, and older records are read as far as needed.
        let most = if is_first { RECORDS } else { MOST_READINGS * RECORDS };
        for record in store.headers_before(&Query::Reconciliations, u64::MAX).take(most) {
            let record = record?;
            if record.position <= self.newest {
                break;
            }
            (newest, before, read) = (newest.max(record.position), record.position, read + 1);
            note(&mut newer, record);
        }
        if is_first || read == most {
            // Nothing that was read before is next to what was read now.
            self.by_source.clear();
            self.oldest = before;
        }
        self.by_source.extend(newer);
        self.newest = newest;
        for _ in 0..MOST_READINGS {
            if self.oldest == 0 || sources.iter().all(|source| self.by_source.contains_key(*source)) {
                break;
            }
            let records = store.headers(&Query::Reconciliations, self.oldest, RECORDS)?;
            self.oldest = records.last().map_or(0, |record| record.position);
            records.into_iter().for_each(|record| note(&mut self.by_source, record));
        }
        Ok(())
    }

    /// Looks up what is in effect of the sources with manifests that a rollback left.
    fn look_up(&mut self, store: &Store, current: &Snapshot, sources: &[&str]) -> Result<(), StoreError> {
        self.rolled_back.retain(|source, (left, _)| current.rejected(source) == left.as_slice());
        let rolled_back = sources.iter().filter(|source| !current.rejected(source).is_empty());
        let unknown: Vec<&str> = rolled_back
            .copied()
            .filter(|source| !self.rolled_back.contains_key(*source))
            .take(MOST_LOOKED_UP)
            .collect();
        for source in unknown {
            let found = store.in_effect(source)?;
            self.rolled_back.insert(source.to_owned(), (current.rejected(source).to_vec(), found));
        }
        Ok(())
    }
}

/// Notes a record after all newer ones.
fn note(into: &mut HashMap<String, Option<AppliedManifests>>, record: CommitHeader) {
    if let (Author::Source { source, commit, through, destroyed, .. }, Some(revision)) =
        (record.author, record.revision)
    {
        let last = AppliedManifests { commit, revision, at: record.at, through };
        into.entry(source).or_insert((!destroyed).then_some(last));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::Kind;
    use crate::model::id::Id;
    use crate::model::key::Key;
    use crate::model::kind::https_edge::HttpsEdge;
    use crate::model::operation::Operation;
    use crate::store::MEMORY;

    #[test]
    fn the_last_revision_of_each_source_is_found_however_much_was_recorded_since() {
        let store = Store::open(MEMORY).unwrap();
        let mut count = 0;
        let mut commit = |source: &str| {
            count += 1;
            let key = Key::new(Kind::HttpsEdge, Id::new(&format!("edghts_{count}")));
            let create = Operation::create(key, Arc::new(HttpsEdge::default()));
            let author = Author::source(source, Some(format!("commit{count}")));
            store.commit(author, vec![create]).unwrap();
        };
        let revisions = ClientRevisions::default();
        let last = |source: &str| {
            let found = revisions.latest(&store, &store.snapshot(), &[source]).remove(source)?;
            assert_eq!(found.commit, Some(format!("commit{}", found.revision)));
            Some(found.revision)
        };
        assert_eq!(last("old"), None);
        commit("old");
        commit("old");
        (0..2 * RECORDS).for_each(|_| commit("busy"));
        assert_eq!((last("busy"), last("old"), last("none")), (Some(202), Some(2), None));
        (0..2 * RECORDS).for_each(|_| commit("busy"));
        assert_eq!((last("old"), last("busy")), (Some(2), Some(402)));
        commit("old");
        assert_eq!((last("old"), last("busy")), (Some(403), Some(402)));
    }
}
