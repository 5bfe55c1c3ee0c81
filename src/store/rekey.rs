//! New keys for the secrets at rest (D96): a new data key, and a new master key if one is given.

use super::{
    Store, StoreError, forget_runs,
    seal::{KeyId, MasterKey, MasterKeySource},
};
use crate::model::code::Code;

impl Store {
    /// The id of the master key.
    pub(crate) fn master_key_id(&self) -> Option<KeyId> {
        Some(self.keyring.as_ref()?.master_id())
    }

    /// Encrypts all secrets of the current state with a new data key. With a source, its master key takes the place of the
    /// current one first. If `forgets` is set, all former data keys are destroyed: earlier states lose their secrets.
    ///
    /// Whenever this is interrupted, the store opens with the former or the new master key, and this can be done again.
    pub(crate) fn rekey(&self, new_master: Option<&MasterKeySource>, forgets: bool) -> Result<(), StoreError> {
        self.health()?;
        let Some(keyring) = &self.keyring else {
            return Err(StoreError::new(Code::MasterKey, "this store does not encrypt its secrets"));
        };
        if let Some(source) = new_master {
            let missing = || StoreError::new(Code::MasterKey, "there is no new master key");
            let master: MasterKey = source.read(None)?.ok_or_else(missing)?;
            keyring.change_master(master)?;
        }
        self.checkpoint_now(|| keyring.want_new(forgets))?;
        if let Some(on_disk) = self.beside() {
            forget_runs(&on_disk.folder)?;
        }
        if !forgets {
            return Ok(());
        }
        // They share Specs with the secrets that were just destroyed.
        self.past.clear();
        match keyring.former_keys() {
            0 => Ok(()),
            left => {
                let message = format!("{left} former data keys are still in `keys`: run the command again");
                Err(StoreError::new(Code::StoreFailed, message))
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::history::Retention;

    #[test]
    fn a_checkpoint_that_is_being_written_does_not_keep_a_former_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        for _ in 0..20 {
            let store = Store::open_briefly(&path, Retention::default(), &MasterKeySource::Beside).unwrap();
            let keyring = store.keyring.as_ref().unwrap();
            // As when the data key is old: this checkpoint makes a new one, too.
            keyring.want_new(false);
            store.checkpoint_if_wanted(&mut store.queue.line());
            store.rekey(None, true).unwrap();
            assert_eq!(keyring.former_keys(), 0);
        }
    }
}
