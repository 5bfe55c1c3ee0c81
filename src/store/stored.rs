//! Records of the history as they are stored, one after the other: each can have as many resources as an estate, so that
//! several at once may not fit into memory.

use std::ops::ControlFlow;

use bytes::Bytes;

use super::{Store, StoreError, engine::Query, record_head::RecordHead};

impl Store {
    /// Visits at most `limit` records before a position, newest first, in their canonical form, until `visit` breaks.
    pub(super) fn each_stored(
        &self,
        query: &Query,
        before: u64,
        limit: usize,
        visit: &mut dyn FnMut(Bytes) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        let Some(positions) = self.engine.positions(query, before, limit)? else {
            for record in self.engine.history(query, before, limit)? {
                if visit(record)?.is_break() {
                    break;
                }
            }
            return Ok(());
        };
        for position in positions {
            let Some(record) = self.stored(position)? else { continue };
            if visit(record)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The record at a position, unless it was dropped meanwhile.
    pub(super) fn stored(&self, position: u64) -> Result<Option<Bytes>, StoreError> {
        let Some(record) = self.engine.history(&Query::All, position.saturating_add(1), 1)?.pop() else {
            return Ok(None);
        };
        Ok((RecordHead::read(&record)?.position == position).then_some(record))
    }
}
