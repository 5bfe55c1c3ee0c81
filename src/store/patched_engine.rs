//! An engine in memory for tests, which change only what they are about.

use std::sync::Arc;

use super::commit::batch::{Batch, Tip};
use super::commit::header::CommitHeader;
use super::engine::{
    BatchVisit, Engine, FollowedWriter, Forgotten, History, Query, ResourceHistoryQuery, ResourceHistoryVisit,
    SidecarFiles, State, Statistics,
};
use super::error::StoreError;
use super::memory::MemoryEngine;
use crate::lock::Lock;

/// Returns what another process has appended.
pub(crate) type BatchesAfter = dyn Fn(Tip) -> Result<(Vec<Batch>, Forgotten), StoreError> + Send + Sync;

/// An engine in memory. By default, it is that and nothing else.
#[derive(Default)]
pub(crate) struct PatchedEngine {
    pub log: Arc<MemoryEngine>,
    pub is_shared: bool,
    pub files: Option<Arc<dyn SidecarFiles>>,
    pub writer: Lock<Option<FollowedWriter>>,
    pub batches_after: Option<Box<BatchesAfter>>,
    /// Why it cannot write.
    pub refusal: Arc<Lock<Option<StoreError>>>,
    /// Runs before the next append.
    pub before_append: Lock<Option<Box<dyn FnOnce() + Send>>>,
    /// Runs after each search for histories of resources.
    pub after_search: Lock<Option<Box<dyn FnMut() + Send>>>,
}

impl Engine for PatchedEngine {
    fn load(&self) -> Result<State, StoreError> {
        self.log.load()
    }

    fn append(&self, after: u64, batches: &[Batch]) -> Result<(), StoreError> {
        let before = self.before_append.lock().take();
        if let Some(before) = before {
            before();
        }
        self.log.append(after, batches)
    }

    fn batches_after(&self, known: Tip) -> Result<(Vec<Batch>, Forgotten), StoreError> {
        self.batches_after.as_ref().map_or_else(|| Ok(Default::default()), |after| after(known))
    }

    fn followed_writer(&self) -> Option<FollowedWriter> {
        self.writer.lock().clone()
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn history(&self) -> &dyn History {
        self
    }

    fn statistics(&self) -> Statistics {
        self.log.statistics()
    }

    fn sidecar_files(&self) -> Option<Arc<dyn SidecarFiles>> {
        self.files.clone()
    }

    fn health(&self) -> Result<(), StoreError> {
        self.refusal.lock().clone().map_or(Ok(()), Err)
    }
}

impl History for PatchedEngine {
    fn headers(&self, query: &Query, before: u64, limit: usize) -> Result<Vec<CommitHeader>, StoreError> {
        self.log.headers(query, before, limit)
    }

    fn commit(&self, position: u64) -> Result<Option<Batch>, StoreError> {
        self.log.commit(position)
    }

    fn resource_histories(
        &self,
        wanted: ResourceHistoryQuery<'_>,
        visit: &mut ResourceHistoryVisit<'_>,
    ) -> Result<(), StoreError> {
        let found = self.log.resource_histories(wanted, visit);
        if let Some(after) = self.after_search.lock().as_mut() {
            after();
        }
        found
    }

    fn walk(&self, revision: u64, upto: u64, visit: &mut BatchVisit<'_>) -> Result<(), StoreError> {
        self.log.walk(revision, upto, visit)
    }
}
