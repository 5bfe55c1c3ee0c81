//! Scrubs API tokens from the history of a store (D23): from records, and from former values of resources. A scrubbed record
//! keeps its hash; a later record lists it with the digest of its new form, so that the hash chain shows what was changed. A
//! chain that was computed anew could not be told from a forgery.
//!
//! The record that lists them comes first. Then the segments of the log that have a token are written anew, and a new state
//! replaces the former ones. Each step leaves an intact store, so that an interrupted scrub can be repeated. A former value is
//! encrypted with the data key that it had: its secrets must not last longer than before.

use bytes::Bytes;

use crate::store::commit::batch::Batch;
use crate::store::commit::entries::{CommitEntries, CommitEntry};
use crate::store::commit::header::ScrubbedRecord;
use crate::store::commit::record::scrub;
use crate::store::commit::{codec, record_key};
use crate::store::disk::sidecar_files::forget_runs;
use crate::store::error::StoreError;
use crate::store::open_store::Store;
use crate::store::seal::Keyring;
use crate::syntax::text::{has_token, without_tokens};

/// The API tokens in the history.
#[derive(Debug, Default)]
pub(crate) struct RecordedTokens {
    /// The records that have one, in their scrubbed form.
    pub records: Vec<ScrubbedRecord>,
    /// The number of former values of resources that have one.
    pub former: u64,
}

impl RecordedTokens {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.former == 0
    }

    /// Says how many there are.
    pub(crate) fn text(&self) -> String {
        let count = |count: u64, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
        format!("{} and {}", count(self.records.len() as u64, "record"), count(self.former, "former value"))
    }
}

impl Store {
    /// Returns the records of the current state that have an API token in a public text, by their keys. Only commits change
    /// them.
    pub(crate) fn current_tokens(&self) -> Result<Vec<String>, StoreError> {
        let (snapshot, mut found) = (self.snapshot(), Vec::new());
        for record in codec::records(&snapshot, self.keyring.as_deref())? {
            let (name, value) = record?;
            if has_token(&name) || is_with_token(&value) {
                let key = record_key::decode_key(record_key::RECORD, name.as_bytes());
                found.push(key.map_or(name, |key| key.to_string()));
            }
        }
        Ok(found)
    }

    /// Finds the API tokens in the history, which must be intact.
    pub(crate) fn recorded_tokens(&self) -> Result<RecordedTokens, StoreError> {
        self.verify()?;
        let (mut found, keyring) = (RecordedTokens::default(), self.keyring.as_deref());
        self.walk(0, &mut |_, batch| {
            if let Some(scrubbed) = scrubbed_batch(&batch, keyring)? {
                found.records.push(ScrubbedRecord::new(&scrubbed));
            }
            found.former += batch.entries.iter().filter(|entry| entry.before.is_some_and(is_with_token)).count() as u64;
            Ok(())
        })?;
        Ok(found)
    }

    /// Hides the secret parts of the API tokens in the history. The current state must have none. Whenever this is
    /// interrupted, the store is intact, and this can be done again.
    pub(crate) fn scrub(&self, found: &RecordedTokens) -> Result<(), StoreError> {
        // After it, the part of the log that is being written has no batch yet.
        self.checkpoint_now(|| {})?;
        self.note_scrubbed(found.records.clone(), format!("scrubbed {} of API tokens", found.text()))?;
        let keyring = self.keyring.as_deref();
        self.engine.edit_history(&mut |batch| scrubbed_batch(batch, keyring))?;
        // Nothing may be left that has them, also not the state from before.
        self.checkpoint_now(|| {})?;
        self.earlier_states.forget();
        self.sidecar_location().map_or(Ok(()), |on_disk| forget_runs(&on_disk.folder))
    }
}

fn is_with_token(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(has_token)
}

/// A text without the secret parts of its tokens. Tokens have no character that JSON escapes.
fn scrubbed_text(text: &Bytes) -> Option<Bytes> {
    let text = std::str::from_utf8(text).ok().filter(|text| has_token(text))?;
    Some(without_tokens(text).into_owned().into())
}

/// A commit without the secret parts of its tokens, or none if it has none.
fn scrubbed_batch(batch: &Batch, keyring: Option<&Keyring>) -> Result<Option<Batch>, StoreError> {
    let (header, calls) = (scrubbed_text(&batch.header), scrubbed_text(&batch.calls));
    let has_token = |entry: CommitEntry<'_>| {
        [entry.after, entry.before].into_iter().flatten().any(is_with_token)
            || [entry.key, entry.place, entry.drift].into_iter().any(has_token)
    };
    if header.is_none() && calls.is_none() && !batch.entries.iter().any(has_token) {
        return Ok(None);
    }
    let mut entries = CommitEntries::default();
    for entry in batch.entries.iter() {
        let scrub = |value: Option<&[u8]>| -> Result<Option<Vec<u8>>, StoreError> {
            let scrubbed = value.map(|value| scrub::scrubbed(entry.key, value, keyring)).transpose()?.flatten();
            Ok(scrubbed.or_else(|| value.map(<[u8]>::to_vec)))
        };
        let (after, before) = (scrub(entry.after)?, scrub(entry.before)?);
        let (place, drift) = (without_tokens(entry.place), without_tokens(entry.drift));
        entries.push(&CommitEntry {
            key: entry.key,
            after: after.as_deref(),
            before: before.as_deref(),
            place: &place,
            drift: &drift,
        });
    }
    let (header, calls) =
        (header.unwrap_or_else(|| batch.header.clone()), calls.unwrap_or_else(|| batch.calls.clone()));
    Ok(Some(Batch { header, digest: entries.digest(&calls), calls, entries, ..*batch }))
}
