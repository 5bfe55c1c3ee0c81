//! New keys for the secrets at rest (D96): a new data key, and a new master key if one is given.

use super::{
    Store, StoreError,
    seal::{MasterKey, MasterKeySource},
};
use crate::model::code::Code;

impl Store {
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
        keyring.want_new(forgets);
        self.checkpoint_now()
    }
}
