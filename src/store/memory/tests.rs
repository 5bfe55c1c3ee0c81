//! Engines of tests: the log is one in memory, and some of the calls are the test's.

use std::sync::Arc;

use super::MemoryEngine;
use crate::store::commit::batch::{Batch, Tip};
use crate::store::engine::{Engine, FollowedWriter, Forgotten, History, SidecarFiles, State, Statistics};
use crate::store::error::StoreError;

/// An engine that passes to its log what a test does not change.
pub(crate) trait MemoryBacked: Send + Sync {
    fn log(&self) -> &MemoryEngine;

    fn append(&self, after: u64, batches: &[Batch]) -> Result<(), StoreError> {
        self.log().append(after, batches)
    }

    fn batches_after(&self, known: Tip) -> Result<Vec<Batch>, StoreError> {
        self.log().batches_after(known)
    }

    fn forgotten(&self) -> Result<Forgotten, StoreError> {
        self.log().forgotten()
    }

    fn followed_writer(&self) -> Option<FollowedWriter> {
        self.log().followed_writer()
    }

    fn is_shared(&self) -> bool {
        self.log().is_shared()
    }

    fn history(&self) -> &dyn History {
        self.log()
    }

    fn sidecar_files(&self) -> Option<Arc<dyn SidecarFiles>> {
        self.log().sidecar_files()
    }

    fn health(&self) -> Result<(), StoreError> {
        self.log().health()
    }
}

impl<E: MemoryBacked> Engine for E {
    fn load(&self) -> Result<State, StoreError> {
        self.log().load()
    }

    fn append(&self, after: u64, batches: &[Batch]) -> Result<(), StoreError> {
        MemoryBacked::append(self, after, batches)
    }

    fn batches_after(&self, known: Tip) -> Result<Vec<Batch>, StoreError> {
        MemoryBacked::batches_after(self, known)
    }

    fn forgotten(&self) -> Result<Forgotten, StoreError> {
        MemoryBacked::forgotten(self)
    }

    fn followed_writer(&self) -> Option<FollowedWriter> {
        MemoryBacked::followed_writer(self)
    }

    fn is_shared(&self) -> bool {
        MemoryBacked::is_shared(self)
    }

    fn history(&self) -> &dyn History {
        MemoryBacked::history(self)
    }

    fn statistics(&self) -> Statistics {
        self.log().statistics()
    }

    fn sidecar_files(&self) -> Option<Arc<dyn SidecarFiles>> {
        MemoryBacked::sidecar_files(self)
    }

    fn health(&self) -> Result<(), StoreError> {
        MemoryBacked::health(self)
    }
}
