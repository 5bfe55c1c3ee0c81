//! When a base is written because of a new data key, and when former data keys are destroyed (D96).

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::{files::Part, reader::LogReader};
use crate::store::{
    StoreError, codec, mint,
    seal::{KeyId, Keyring},
};

/// How long to wait before another base is written only because of a new data key. A disk can be full.
const RETRY: Duration = Duration::from_secs(30);

/// Whether the secrets of the base are encrypted with the newest data key.
pub(super) struct Resealing(Mutex<BaseKey>);

struct BaseKey {
    /// The data key of the newest base.
    key: Option<KeyId>,
    /// When another base may be written.
    after: Option<Instant>,
}

impl Resealing {
    /// Starts with the data key of the newest base.
    pub(super) fn new(key: Option<KeyId>) -> Self {
        Self(Mutex::new(BaseKey { key, after: None }))
    }

    fn base(&self) -> MutexGuard<'_, BaseKey> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a base should be written with another data key.
    pub(super) fn is_due(&self, keyring: &Keyring) -> bool {
        let base = self.base();
        let now = mint::now();
        // Only a checkpoint destroys the keys that have expired.
        let is_due = keyring.is_due(now) || keyring.has_expired(now) || base.key != Some(keyring.current());
        is_due && base.after.is_none_or(|after| Instant::now() >= after)
    }

    /// Notes that a base is about to be written.
    pub(super) fn begin(&self) {
        self.base().after = Some(Instant::now() + RETRY);
    }

    /// Notes the data key of a base that was written.
    pub(super) fn written(&self, key: Option<KeyId>) {
        self.base().key = key;
    }

    /// Destroys the former data keys that have expired, unless the base or a journal from a generation on needs them.
    pub(super) fn destroy_expired(&self, folder: &Path, generation: u64, keyring: &Keyring) -> Result<(), StoreError> {
        let now = mint::now();
        if !keyring.has_expired(now) {
            return Ok(());
        }
        let mut used: BTreeSet<KeyId> = self.base().key.into_iter().collect();
        for journal in Part::Journal.generations(folder)?.into_iter().filter(|journal| *journal >= generation) {
            let mut reader = LogReader::open(&Part::Journal.path(folder, journal), true)?;
            while let Some(framed) = reader.batch()? {
                used.extend(codec::keys_in(&framed.batch.changes));
            }
        }
        keyring.destroy_expired(now, &|id| used.contains(&id))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::seal::MasterKey;

    #[test]
    fn a_key_that_has_expired_makes_a_checkpoint_due() {
        let master = MasterKey::random("a test".into());
        let keyring = Keyring::create([5; 16], master, false, None, Box::new(|_: &[u8]| Ok(()))).unwrap();
        keyring.want_new(true);
        keyring.rotate(mint::now()).unwrap();
        let resealing = Resealing::new(Some(keyring.current()));
        assert!(resealing.is_due(&keyring));
        keyring.destroy_expired(mint::now(), &|_| false).unwrap();
        assert!(!resealing.is_due(&keyring));
    }
}
