//! What lists show of a record: everything but the calls and resources, of which only the numbers are known. A list of
//! records would otherwise have every resource of an estate in memory, once for each large commit.

use std::{fmt, ops::ControlFlow};

use bytes::Bytes;
use jiff::Timestamp;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};

use super::{
    Store, StoreError,
    engine::Query,
    history::{Outcome, Record, Touched},
    large_records::LARGE,
    record_head::damaged,
    record_touched::each_touched,
};
use crate::model::operation::Author;

/// A record without the calls and resources.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct RecordSummary {
    /// The number of the record.
    pub position: u64,
    /// The new revision, or none if the attempt changed nothing.
    #[serde(default)]
    pub revision: Option<u64>,
    /// The time at which the attempt began, in whole seconds.
    pub at: Timestamp,
    /// The time until the record was written, in milliseconds.
    #[serde(default)]
    pub milliseconds: u64,
    /// The author.
    pub author: Author,
    /// The source that was suspended or resumed.
    #[serde(default)]
    pub source: Option<String>,
    /// The outcome.
    pub outcome: Outcome,
    /// The message of [`Record::message`].
    #[serde(default)]
    pub message: String,
    /// The number of calls.
    #[serde(rename = "calls", deserialize_with = "counted")]
    pub operations: usize,
    /// The number of resources that the attempt changed.
    #[serde(default, rename = "resources", deserialize_with = "counted")]
    pub changed: usize,
}

impl RecordSummary {
    /// Parses the canonical form of a record.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        serde_json::from_slice(bytes).map_err(damaged)
    }

    /// Summarizes a record.
    pub(crate) fn of(record: &Record) -> Self {
        Self {
            position: record.position,
            revision: record.revision,
            at: record.at,
            milliseconds: record.milliseconds,
            author: record.author.clone(),
            source: record.source.clone(),
            outcome: record.outcome,
            message: record.message.clone(),
            operations: record.calls.len(),
            changed: record.resources.len(),
        }
    }
}

impl Store {
    /// Returns the summaries of at most `limit` records before a position, newest first. Each record is read by itself, and
    /// a large one only once.
    pub(crate) fn summaries(&self, query: &Query, before: u64, limit: usize) -> Result<Vec<RecordSummary>, StoreError> {
        let mut found = Vec::new();
        let Some(positions) = self.engine.positions(query, before, limit)? else {
            for record in self.engine.history(query, before, limit)? {
                found.push(self.summary_of(&record)?);
            }
            return Ok(found);
        };
        for position in positions {
            match self.large.summary(position) {
                Some(summary) => found.push(summary),
                None => found.extend(self.stored(position)?.map(|record| self.summary_of(&record)).transpose()?),
            }
        }
        Ok(found)
    }

    /// Returns the record that made a revision, or none if it is no longer kept.
    pub(crate) fn stored_revision(&self, revision: u64) -> Result<Option<StoredRevision>, StoreError> {
        #[derive(Deserialize)]
        struct Calls {
            calls: Vec<String>,
        }
        let mut found = None;
        self.each_stored(&Query::Revision(revision), u64::MAX, 1, &mut |record| {
            let Calls { calls } = serde_json::from_slice(&record).map_err(damaged)?;
            found = Some(StoredRevision { summary: self.summary_of(&record)?, calls, record });
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    fn summary_of(&self, record: &[u8]) -> Result<RecordSummary, StoreError> {
        let summary = RecordSummary::from_bytes(record)?;
        if record.len() > LARGE {
            self.large.note_summary(&summary);
        }
        Ok(summary)
    }
}

/// A record of a revision whose resources are read one after the other: all at once take ten times the memory.
pub(crate) struct StoredRevision {
    /// What lists show of it.
    pub summary: RecordSummary,
    /// The calls as `METHOD path`, in order.
    pub calls: Vec<String>,
    record: Bytes,
}

impl StoredRevision {
    /// Visits the resources that the revision changed.
    pub(crate) fn each_resource(&self, visit: &mut dyn FnMut(Touched)) -> Result<(), StoreError> {
        each_touched(&self.record, None, visit)
    }
}

/// Counts the elements of a list.
fn counted<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    struct Counter;

    impl<'de> Visitor<'de> for Counter {
        type Value = usize;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<S: SeqAccess<'de>>(self, mut elements: S) -> Result<usize, S::Error> {
            let mut count = 0;
            while elements.next_element::<IgnoredAny>()?.is_some() {
                count += 1;
            }
            Ok(count)
        }
    }

    deserializer.deserialize_seq(Counter)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        model::{Kind, id::Id, key::Key, kind::https_edge::HttpsEdge, operation::Operation},
        store::{Attempt, Commit, MEMORY, mint},
    };

    #[test]
    fn a_summary_is_a_record_with_its_numbers() {
        let folder = tempfile::tempdir().unwrap();
        for store in [Store::open(MEMORY).unwrap(), Store::open(folder.path()).unwrap()] {
            let create = |number: u32| {
                let key = Key::new(Kind::HttpsEdge, Id::new(&format!("edghts_{number}")));
                let spec = Arc::new(HttpsEdge { metadata: "x".repeat(400), ..HttpsEdge::default() });
                Operation::Create { key, spec, claim: None, token: None }
            };
            store.note(Attempt::new(Author::Local), Outcome::Refused, "no".into()).unwrap();
            let operations = (1..=3_000).map(create).collect();
            store.commit(Commit { base: None, operations, author: Author::Local, at: mint::now() }).unwrap();
            let operations = vec![create(3_001)];
            let author = Author::source("shop", Some("4f2a111".into()));
            store.commit(Commit { base: None, operations, author, at: mint::now() }).unwrap();
            for (query, count) in [(Query::All, 3), (Query::Reconciliations, 1), (Query::Revision(1), 1)] {
                let records = store.history(&query, u64::MAX, 10).unwrap();
                let expected: Vec<String> = records.iter().map(|it| format!("{:?}", RecordSummary::of(it))).collect();
                // The second time, the large record is known.
                for _ in 0..2 {
                    let found = store.summaries(&query, u64::MAX, 10).unwrap();
                    assert_eq!(found.iter().map(|it| format!("{it:?}")).collect::<Vec<_>>(), expected);
                }
                assert_eq!(expected.len(), count);
            }
            let page = store.summaries(&Query::All, 3, 1).unwrap();
            assert_eq!(page.iter().map(|it| (it.position, it.changed)).collect::<Vec<_>>(), [(2, 3_000)]);
        }
    }
}
