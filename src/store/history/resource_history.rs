//! Finds the histories of resources in commits that are read one after the other.

use std::{collections::HashMap, ops::ControlFlow};

use crate::store::commit::batch::Batch;
use crate::store::commit::codec::resource_changes;
use crate::store::commit::header::{CommitHeader, damaged};
use crate::store::commit::record_key::{RECORD, decode_key};
use crate::store::engine::{ResourceHistoryQuery, ResourceHistoryVisit};
use crate::store::error::StoreError;

/// The resources whose histories go on: the numbers of their paths.
pub(crate) struct OpenResourceHistories(HashMap<String, usize>);

impl OpenResourceHistories {
    /// Begins with all that are wanted.
    pub(crate) fn new(wanted: &ResourceHistoryQuery<'_>) -> Self {
        Self(wanted.paths.iter().cloned().zip(0..).collect())
    }

    /// Whether nobody wants to know more.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a commit did something to any of these resources.
    pub(crate) fn concern(&self, batch: &Batch) -> Result<bool, StoreError> {
        for entry in resource_changes(&batch.entries) {
            let path = decode_key(RECORD, entry.key.as_bytes()).map_err(damaged)?.path();
            if self.0.contains_key(&path) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Visits what a commit did to these resources.
    pub(crate) fn visit(
        &mut self,
        wanted: &ResourceHistoryQuery<'_>,
        batch: &Batch,
        visit: &mut ResourceHistoryVisit<'_>,
    ) -> Result<(), StoreError> {
        let header = CommitHeader::from_bytes(&batch.header)?;
        if wanted.source.is_some() && wanted.source != header.applied_by() {
            return Ok(());
        }
        for entry in resource_changes(&batch.entries) {
            let path = decode_key(RECORD, entry.key.as_bytes()).map_err(damaged)?.path();
            let Some(number) = self.0.get(&path).copied() else { continue };
            if visit(number, &header, &entry)? == ControlFlow::Break(()) {
                self.0.remove(&path);
            }
        }
        Ok(())
    }
}
