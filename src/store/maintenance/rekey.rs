//! New keys for the secrets at rest (D96): a new data key, and a new master key if there is one.

use std::sync::Arc;

use crate::model::{Code, Entry};
use crate::store::commit::record;
use crate::store::disk::sidecar_files::forget_runs;
use crate::store::error::StoreError;
use crate::store::open_store::Store;
use crate::store::seal::{FormerKey, KeyId, KeyLifetimes, MasterKeySource};

/// The change of the master key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MasterChange<'a> {
    /// The key stays.
    Keep,
    /// The key of this source replaces it.
    To(&'a MasterKeySource),
    /// The key is read again from where it came from, and another one there replaces it.
    ReadAgain,
}

/// The keys of a store after new ones were made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RekeyResult {
    /// The new data key.
    pub(crate) key: KeyId,
    /// How many records were encrypted with it.
    pub(crate) records: usize,
    /// The master key.
    pub(crate) master: KeyId,
    /// Whether the master key has replaced another one.
    pub(crate) is_new_master: bool,
    /// The former data keys that still decrypt, oldest first.
    pub(crate) former: Vec<FormerKey>,
    /// The former data keys that were destroyed.
    pub(crate) destroyed: Vec<KeyId>,
}

impl Store {
    /// Notes that somebody was told of the store's master key.
    pub(crate) fn set_master_key_announced(&self) -> Result<(), StoreError> {
        self.keyring.as_ref().map_or(Ok(()), |keyring| keyring.set_announced())
    }

    /// Changes how long data keys encrypt and decrypt, where that is set.
    pub(crate) fn set_key_lifetimes(&self, lifetimes: KeyLifetimes) -> Result<(), StoreError> {
        self.keyring.as_ref().map_or(Ok(()), |keyring| keyring.set_lifetimes(lifetimes))
    }

    /// Encrypts all secrets of the current state with a new data key, after a change of the master key. If `forgets` is set,
    /// all former data keys are destroyed: earlier states lose their secrets.
    ///
    /// Others read and commit meanwhile. Whenever this is interrupted, the store opens with the former or the new master
    /// key, and this can be done again.
    pub(crate) fn rekey(&self, change: MasterChange<'_>, forgets: bool) -> Result<RekeyResult, StoreError> {
        self.health()?;
        let Some(keyring) = &self.keyring else {
            return Err(StoreError::new(Code::Conflict, "this store does not encrypt its secrets"));
        };
        let (former_master, before) = (keyring.master(), keyring.former());
        let former_key = keyring.current();
        let master = match change {
            MasterChange::Keep => None,
            MasterChange::To(source) => {
                let missing = || StoreError::new(Code::MasterKey, "the new master key is missing");
                Some(source.read(None)?.ok_or_else(missing)?)
            }
            MasterChange::ReadAgain => keyring.master_again()?,
        };
        if let Some(master) = master {
            keyring.change_master(master)?;
        }
        // Asked for at a moment without commits on their way: one that is still encrypted with a key that is destroyed would
        // be lost.
        let written = self.checkpoint_now(|| keyring.request_rotation(forgets));
        // A later checkpoint, which commits may overtake, must not do what this one has failed to do.
        keyring.cancel_rotation();
        written?;
        if forgets {
            // The state before it cannot be opened any more, and one that can be must stand behind this one.
            self.checkpoint_now(|| {})?;
        }
        if let Some(on_disk) = self.sidecar_location() {
            forget_runs(&on_disk.folder)?;
        }
        if forgets {
            self.forget_secrets();
        }
        let former = keyring.former();
        if forgets && !former.is_empty() {
            let message = format!("{} former data keys are still in `keys`: run the command again", former.len());
            return Err(StoreError::new(Code::StoreFailed, message));
        }
        let retired = before.iter().map(|key| key.id).chain([former_key]);
        let destroyed = retired.filter(|id| former.iter().all(|key| key.id != *id)).collect();
        let sealed = |entry: &&Arc<Entry>| record::is_sealed(entry, || entry.lazy_spec.form_once());
        let records = self.snapshot().iter().filter(sealed).count();
        let master = keyring.master();
        Ok(RekeyResult {
            key: keyring.current(),
            records,
            master,
            is_new_master: master != former_master,
            former,
            destroyed,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::commit::header::Retention;

    #[test]
    fn a_checkpoint_that_is_being_written_does_not_keep_a_former_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        for _ in 0..20 {
            let store = Store::open_briefly(&path, Retention::default(), &MasterKeySource::Beside).unwrap();
            let keyring = store.keyring.as_ref().unwrap();
            // As when the data key is old: this checkpoint makes a new one, too.
            keyring.request_rotation(false);
            store.checkpoint_if_wanted(&mut store.queue.lock());
            store.rekey(MasterChange::Keep, true).unwrap();
            assert_eq!(keyring.former(), []);
        }
    }
}
