//! An engine in memory, without durability.

use std::{
    collections::BTreeMap,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;

use super::{
    StoreError,
    engine::{Batch, Engine, Hash, Query, State, Statistics, Tip, UndoVisit, Visit},
    mint,
};
use crate::model::code::Code;

/// An engine whose log is lost when it is dropped.
pub struct MemoryEngine {
    log: Mutex<Vec<Batch>>,
    newer: Condvar,
    root_secret: [u8; 32],
}

impl Default for MemoryEngine {
    fn default() -> Self {
        Self { log: Mutex::default(), newer: Condvar::new(), root_secret: mint::random_secret() }
    }
}

impl MemoryEngine {
    fn log(&self) -> MutexGuard<'_, Vec<Batch>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tip(log: &[Batch]) -> Tip {
    log.last().map(Tip::after).unwrap_or_default()
}

impl Engine for MemoryEngine {
    fn load(&self) -> Result<State, StoreError> {
        let log = self.log();
        let mut records = BTreeMap::new();
        for (key, value) in log.iter().flat_map(|batch| batch.changes.iter()) {
            match value {
                Some(value) => records.insert(key.to_owned(), value.to_vec()),
                None => records.remove(key),
            };
        }
        let records = records.into_iter().collect();
        Ok(State { tip: tip(&log), root_secret: self.root_secret, records, batches: Vec::new(), earlier: Vec::new() })
    }

    fn append(&self, after: u64, batches: &[Batch]) -> Result<(), StoreError> {
        let mut log = self.log();
        let position = tip(&log).position;
        if position != after {
            let message = format!("the log is at record {position}, not at {after}");
            return Err(StoreError::new(Code::StoreFailed, message));
        }
        log.extend_from_slice(batches);
        self.newer.notify_all();
        Ok(())
    }

    fn changes_since(&self, position: u64) -> Result<Option<Vec<Batch>>, StoreError> {
        Ok(Some(self.log().iter().filter(|batch| batch.position > position).cloned().collect()))
    }

    fn history(&self, query: &Query, before: u64, limit: usize) -> Result<Vec<Bytes>, StoreError> {
        let log = self.log();
        let mut found = Vec::new();
        for batch in log.iter().rev().filter(|batch| batch.position < before) {
            if query.selects(&batch.record)? {
                found.push(batch.record.clone());
            }
            if found.len() == limit {
                break;
            }
        }
        Ok(found)
    }

    fn walk(&self, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let mut before = Hash::default();
        for batch in self.log().iter() {
            visit(&before, &batch.record, &batch.hash)?;
            before = batch.hash;
        }
        Ok(())
    }

    fn undo_from(&self, revision: u64, visit: &mut UndoVisit<'_>) -> Result<(), StoreError> {
        let mut before = Tip::default();
        // Without the lock, so that commits need not wait.
        let batches: Vec<Batch> = self.log().clone();
        for mut batch in batches {
            let after = Tip::after(&batch);
            if after.revision > revision {
                batch.changes = batch.changes.undoing();
                visit(before, batch)?;
            }
            before = after;
        }
        Ok(())
    }

    fn wait_for_newer(&self, position: u64, timeout: Duration) -> u64 {
        let waited = self.newer.wait_timeout_while(self.log(), timeout, |log| tip(log).position <= position);
        tip(&waited.unwrap_or_else(PoisonError::into_inner).0).position
    }

    fn statistics(&self) -> Statistics {
        let log = self.log();
        let oldest = log.first().map_or(0, |batch| batch.position);
        Statistics { position: tip(&log).position, bytes: 0, oldest }
    }
}
