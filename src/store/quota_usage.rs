//! Who has filled the share of a store's history, also before the last restart.

use std::{sync::Weak, time::Duration};

use super::clock;
use super::engine::Query;
use super::error::StoreError;
use super::history_quota::{DAY, holder_of};
use super::open_store::Store;
use crate::background::yield_to_requests;
use crate::model::{Author, Code, Id};
use crate::syntax::text::number_of;

/// The records that are looked up at once.
const PAGE: usize = 1000;
/// How long a header is, and an entry, more or less: of records of earlier processes, only the header is read.
const RECORD_BYTES: u64 = 300;
const RESOURCE_BYTES: u64 = 700;

impl Store {
    /// Returns the time until an owner of API keys can record something again, if its share of the history is full.
    pub(crate) fn share_wait(&self, owner: &Id) -> Option<Duration> {
        self.quota.wait(owner, self.quota.now())
    }

    /// Fails if the author of a change has filled its share of the history.
    pub(crate) fn has_room_for(&self, author: &Author) -> Result<(), StoreError> {
        let Some(wait) = holder_of(author).and_then(|holder| self.share_wait(&holder)) else { return Ok(()) };
        let message = format!(
            "the source has used up its daily share of the history; it can be applied again in {}",
            number_of(wait.as_secs() as usize + 1, "second")
        );
        Err(StoreError::new(Code::RateLimited, message))
    }

    /// Finds what earlier processes have recorded within a day, newest first, of at most [`PAGE`] records before a position.
    /// Returns the position of the last one, or none if there is nothing older.
    fn earlier_records(&self, before: u64, found: &mut Vec<EarlierRecord>) -> Option<u64> {
        let (clock, now) = (clock::now(), self.quota.now());
        let mut last = None;
        for header in self.headers(&Query::All, before, PAGE).ok()? {
            yield_to_requests();
            let ago = Duration::try_from(clock.duration_since(header.at)).unwrap_or_default();
            if ago < DAY {
                last = Some(header.position);
                let bytes = RECORD_BYTES + RESOURCE_BYTES * header.changed as u64;
                found.extend(holder_of(&header.author).map(|holder| (holder, bytes, now.saturating_sub(ago))));
            }
        }
        last
    }
}

/// The owner of a record, its size in bytes, and its time.
type EarlierRecord = (Id, u64, Duration);

/// Counts what earlier processes have recorded within a day: a restart empties no share.
pub(super) fn count_earlier_records(store: &Weak<Store>) {
    let (mut before, mut found) = (None, Vec::new());
    // Nobody waits for the rest when the store is closed.
    while let Some(store) = store.upgrade() {
        before = store.earlier_records(before.unwrap_or(store.quota.position.saturating_add(1)), &mut found);
        if before.is_none() {
            for (owner, bytes, at) in found.iter().rev() {
                store.quota.fill(owner, *bytes, *at);
            }
            return;
        }
    }
}
