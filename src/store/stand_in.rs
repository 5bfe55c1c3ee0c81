//! A local copy in place of the store in the database, which does not answer (D115). It answers what is read, like the server
//! that has written it, and changes nothing.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;

use super::clock;
use super::commit::batch::Batch;
use super::engine::{Engine, FollowedWriter, History, State, Statistics};
use super::error::StoreError;
use super::folder::FolderEngine;
use crate::model::Code;

/// An engine that only reads a local copy.
pub(super) struct StandIn {
    copy: Arc<FolderEngine>,
    since: Timestamp,
    opened: Instant,
}

impl StandIn {
    /// Reads an open copy from now on.
    pub(super) fn new(copy: Arc<FolderEngine>) -> Self {
        Self { copy, since: clock::now(), opened: Instant::now() }
    }
}

impl Engine for StandIn {
    fn load(&self) -> Result<State, StoreError> {
        self.copy.load()
    }

    fn append(&self, _after: u64, _batches: &[Batch]) -> Result<(), StoreError> {
        self.health()
    }

    fn followed_writer(&self) -> Option<FollowedWriter> {
        Some(FollowedWriter { name: "unknown".to_owned(), url: None, began: None, gone_since: None, seen: self.opened })
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn stands_in_since(&self) -> Option<Timestamp> {
        Some(self.since)
    }

    fn history(&self) -> &dyn History {
        self.copy.history()
    }

    fn statistics(&self) -> Statistics {
        self.copy.statistics()
    }

    fn health(&self) -> Result<(), StoreError> {
        let message = "the database does not answer, and its local copy can only be read";
        Err(StoreError::new(Code::StoreUnavailable, message))
    }
}
