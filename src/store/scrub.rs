//! Scrubs API tokens from the history of a store (D23): from records, and from former values of resources. A scrubbed record
//! keeps its hash; a later record lists it with the digest of its new form, so that the hash chain shows what was changed.

use bytes::Bytes;

use super::{
    Store, StoreError,
    changes::Changes,
    codec,
    engine::{Batch, UNDO},
    folder::forget_manifests,
    history::ScrubbedRecord,
    record,
    seal::Keyring,
};
use crate::text::{has_token, without_tokens};

/// What the history has of API tokens.
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
                let key = codec::decode_key(codec::RECORD, name.as_bytes());
                found.push(key.map_or(name, |key| key.to_string()));
            }
        }
        Ok(found)
    }

    /// Finds the API tokens in the history, which must be intact.
    pub(crate) fn recorded_tokens(&self) -> Result<RecordedTokens, StoreError> {
        self.verify()?;
        let mut found = RecordedTokens::default();
        self.engine.undo_from(0, &mut |_, batch| {
            if let Some(record) = scrubbed_record(&batch.record) {
                found.records.push(ScrubbedRecord::new(batch.position, &record));
            }
            let former = batch.changes.iter().filter(|(key, _)| key.starts_with(UNDO));
            found.former += former.filter(|(_, value)| value.is_some_and(is_with_token)).count() as u64;
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
        self.past.forget();
        self.beside().map_or(Ok(()), |on_disk| forget_manifests(&on_disk.folder))
    }
}

fn is_with_token(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(has_token)
}

/// A record without the secret parts of its tokens, or none if it has none. Tokens have no character that JSON escapes.
fn scrubbed_record(record: &[u8]) -> Option<Bytes> {
    let text = std::str::from_utf8(record).ok().filter(|text| has_token(text))?;
    Some(without_tokens(text).into_owned().into())
}

/// A batch of the history without the secret parts of its tokens, or none if it has none.
fn scrubbed_batch(batch: &Batch, keyring: Option<&Keyring>) -> Result<Option<Batch>, StoreError> {
    let record = scrubbed_record(&batch.record);
    let has_former = batch.changes.iter().any(|(_, value)| value.is_some_and(is_with_token));
    if record.is_none() && !has_former {
        return Ok(None);
    }
    let mut changes = Changes::default();
    for (key, value) in batch.changes.iter() {
        let name = key.strip_prefix(UNDO).unwrap_or(key);
        let scrubbed = value.map(|value| record::scrubbed(name, value, keyring)).transpose()?.flatten();
        changes.push(key, scrubbed.as_deref().or(value));
    }
    let record = record.unwrap_or_else(|| batch.record.clone());
    Ok(Some(Batch { record, changes, ..*batch }))
}
