//! An engine that fails on purpose.

use std::sync::atomic::{AtomicBool, Ordering};

use edgewright::{
    Code,
    storage::{Batch, Engine, History, MemoryEngine, State, Statistics, StoreError},
};

/// How an engine fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It says that it cannot write.
    Health,
    /// It writes nothing and says so.
    Append,
    /// It panics while it writes.
    Panic,
}

/// An engine in memory that fails from now on, or once [`FailingEngine::fail`] is called.
pub(crate) struct FailingEngine {
    inner: MemoryEngine,
    failure: Failure,
    fails: AtomicBool,
}

impl FailingEngine {
    pub(crate) fn new(failure: Failure) -> Self {
        Self { inner: MemoryEngine::default(), failure, fails: AtomicBool::new(failure == Failure::Health) }
    }

    pub(crate) fn fail(&self, fails: bool) {
        self.fails.store(fails, Ordering::SeqCst);
    }

    fn fails(&self, failure: Failure) -> bool {
        self.failure == failure && self.fails.load(Ordering::SeqCst)
    }
}

impl Engine for FailingEngine {
    fn load(&self) -> Result<State, StoreError> {
        self.inner.load()
    }

    fn append(&self, after: u64, batches: &[Batch]) -> Result<(), StoreError> {
        if self.fails(Failure::Append) {
            return Err(StoreError::new(Code::StoreFailed, "on purpose"));
        }
        assert!(!self.fails(Failure::Panic), "on purpose");
        self.inner.append(after, batches)
    }

    fn history(&self) -> &dyn History {
        &self.inner
    }

    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }

    fn probe(&self) -> Result<(), StoreError> {
        match self.fails(Failure::Append) {
            true => Err(StoreError::new(Code::StoreFailed, "on purpose")),
            false => Ok(()),
        }
    }

    fn health(&self) -> Result<(), StoreError> {
        match self.fails(Failure::Health) {
            true => Err(StoreError::new(Code::StoreFailed, "/secret/path: on purpose")),
            false => Ok(()),
        }
    }
}
