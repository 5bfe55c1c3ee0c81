//! An engine in memory, without durability.

use super::commit::batch::{Batch, Tip};
use super::commit::header::CommitHeader;
use super::engine::{
    BatchVisit, Engine, History, Query, ResourceHistoryQuery, ResourceHistoryVisit, State, Statistics,
};
use super::error::StoreError;
use super::history::resource_history::OpenResourceHistories;
use super::ids;
use crate::lock::Lock;
use crate::model::Code;

/// An engine whose log is lost when it is dropped.
pub struct MemoryEngine {
    log: Lock<Vec<Batch>>,
    root_secret: [u8; 32],
}

impl Default for MemoryEngine {
    fn default() -> Self {
        Self { log: Lock::default(), root_secret: ids::random_secret() }
    }
}

#[cfg(test)]
impl MemoryEngine {
    /// Drops the oldest commits, as an engine does that keeps no more of them.
    pub(crate) fn forget(&self, commits: usize) {
        self.log.lock().drain(..commits);
    }
}

fn tip(log: &[Batch]) -> Tip {
    log.last().map(Tip::after).unwrap_or_default()
}

impl Engine for MemoryEngine {
    fn load(&self) -> Result<State, StoreError> {
        Ok(State { root_secret: self.root_secret, batches: self.log.lock().clone(), ..State::default() })
    }

    fn append(&self, after: u64, batches: &[Batch]) -> Result<(), StoreError> {
        let mut log = self.log.lock();
        let position = tip(&log).position;
        if position != after {
            let message = format!("the log is at record {position}, not at {after}");
            return Err(StoreError::new(Code::StoreFailed, message));
        }
        log.extend_from_slice(batches);
        Ok(())
    }

    fn history(&self) -> &dyn History {
        self
    }

    fn statistics(&self) -> Statistics {
        let oldest = self.log.lock().first().map_or(0, |batch| batch.position);
        Statistics { bytes: 0, oldest }
    }
}

impl History for MemoryEngine {
    fn headers(&self, query: &Query, before: u64, limit: usize) -> Result<Vec<CommitHeader>, StoreError> {
        let log = self.log.lock();
        let earlier = log.iter().rev().filter(|batch| batch.position < before);
        let headers = earlier.map(|batch| CommitHeader::from_bytes(&batch.header));
        let selects = |header: &Result<CommitHeader, StoreError>| header.as_ref().map_or(true, |it| query.selects(it));
        headers.filter(selects).take(limit).collect()
    }

    fn commit(&self, position: u64) -> Result<Option<Batch>, StoreError> {
        Ok(self.log.lock().iter().find(|batch| batch.position == position).cloned())
    }

    fn resource_histories(
        &self,
        wanted: ResourceHistoryQuery<'_>,
        visit: &mut ResourceHistoryVisit<'_>,
    ) -> Result<(), StoreError> {
        let batches: Vec<Batch> = self.log.lock().clone();
        let mut open = OpenResourceHistories::new(&wanted);
        for batch in batches.iter().rev().filter(|batch| batch.position < wanted.before) {
            if open.is_empty() {
                break;
            }
            open.visit(&wanted, batch, visit)?;
        }
        Ok(())
    }

    fn walk(&self, revision: u64, upto: u64, visit: &mut BatchVisit<'_>) -> Result<(), StoreError> {
        let mut before = Tip::default();
        // Without the lock, so that commits need not wait.
        let batches: Vec<Batch> = self.log.lock().clone();
        for batch in batches.into_iter().take_while(|batch| batch.position <= upto) {
            let after = Tip::after(&batch);
            if after.revision > revision || revision == 0 {
                visit(before, batch)?;
            }
            before = after;
        }
        Ok(())
    }
}
