//! The file of a keyring: its data keys and the root secret of the store, encrypted with the master key.

use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::cipher::KEY;
use super::form;
use super::ids::{KeyId, StoreId, id_of, name_of};
use super::keyring::{DataKey, Keyring, NewMaster, Ring, SaveKeys};
use super::lifetimes::KeyLifetimes;
use super::master::{MasterKey, unusable};
use crate::model::Code;
use crate::store::error::StoreError;
use crate::store::trusted_time::KnownTime;

const MAGIC: [u8; 8] = *b"ewkeys2\n";
/// The id of the root secret where data keys have theirs.
const ROOT: KeyId = KeyId(0);

/// The content of the file of a keyring.
#[derive(Serialize, Deserialize)]
struct KeysFile {
    /// In hexadecimal.
    store: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    announce: Option<NewMaster>,
    #[serde(default, skip_serializing_if = "KeyLifetimes::is_default")]
    lifetimes: KeyLifetimes,
    time: KnownTime,
    /// The secret that was created with the store. Two while the master key is being replaced.
    root: Vec<WrappedKey>,
    keys: Vec<WrittenKey>,
}

#[derive(Serialize, Deserialize)]
struct WrittenKey {
    id: KeyId,
    created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retired_at: Option<Timestamp>,
    /// Empty if the key is destroyed. Two while the master key is being replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    wrapped: Vec<WrappedKey>,
}

#[derive(Serialize, Deserialize)]
struct WrappedKey {
    /// The master key.
    by: KeyId,
    /// The data key in base64, encrypted.
    key: String,
}

/// A key or the root secret, encrypted with each of some master keys.
fn wrapped(store: &StoreId, id: KeyId, key: &[u8; KEY], masters: &[&MasterKey]) -> Result<Vec<WrappedKey>, StoreError> {
    let wrap = |master: &&MasterKey| -> Result<WrappedKey, StoreError> {
        let wrapped = master.wrap(store, id, key);
        let wrapped = wrapped.ok_or_else(|| StoreError::new(Code::Internal, "a data key cannot be encrypted"))?;
        Ok(WrappedKey { by: master.id(), key: form::encoded(&wrapped) })
    };
    masters.iter().map(wrap).collect()
}

impl Ring {
    /// The bytes of the file, for each of some master keys.
    pub(super) fn bytes(&self, store: &StoreId, masters: &[&MasterKey]) -> Result<Vec<u8>, StoreError> {
        let written = |key: &DataKey| -> Result<WrittenKey, StoreError> {
            let DataKey { id, created_at, retired_at, ref key } = *key;
            let wrapped = key.as_ref().map_or(Ok(Vec::new()), |key| wrapped(store, id, key, masters))?;
            Ok(WrittenKey { id, created_at, retired_at, wrapped })
        };
        let keys = self.keys.iter().map(written).collect::<Result<Vec<WrittenKey>, StoreError>>()?;
        let Self { announce, lifetimes, time, .. } = *self;
        let root = wrapped(store, ROOT, &self.root_secret, masters)?;
        let content = KeysFile { store: name_of(store), announce, lifetimes, time, root, keys };
        let content = serde_json::to_vec(&content).map_err(StoreError::internal)?;
        let mut bytes = [MAGIC.as_slice(), &content].concat();
        let checksum = blake3::hash(&bytes);
        bytes.extend_from_slice(checksum.as_bytes());
        Ok(bytes)
    }
}

/// The content of the file of a keyring, verified and still encrypted.
pub(crate) struct EncryptedKeys {
    store: StoreId,
    content: KeysFile,
}

impl EncryptedKeys {
    /// Reads the bytes of the file at `path`, which must be of this store.
    pub(crate) fn read(bytes: &[u8], path: &Path, store: StoreId) -> Result<Self, StoreError> {
        // Checked before the checksum: a file of a newer format is not damaged.
        if bytes.starts_with(b"ewkeys") && !bytes.starts_with(&MAGIC) && bytes.get(7) == Some(&b'\n') {
            let message = format!("{} was written by a newer version of edgewright", path.display());
            return Err(StoreError::new(Code::StoreFormat, message));
        }
        let damaged = || StoreError::corrupt(path, "its checksum does not match its content");
        let (written, sum) = bytes.split_at_checked(bytes.len().saturating_sub(32)).ok_or_else(damaged)?;
        if blake3::hash(written).as_bytes() != sum {
            return Err(damaged());
        }
        let content: Option<KeysFile> = written.strip_prefix(&MAGIC).and_then(|it| serde_json::from_slice(it).ok());
        let content = content.ok_or_else(damaged)?;
        if content.store != name_of(&store) {
            return Err(StoreError::corrupt(path, "it belongs to another store than `head`"));
        }
        if content.keys.is_empty() {
            return Err(StoreError::corrupt(path, "it has no keys"));
        }
        Ok(Self { store, content })
    }

    /// Decrypts the data keys with the master key.
    pub(crate) fn decrypt(self, path: &Path, master: MasterKey, save: SaveKeys) -> Result<Keyring, StoreError> {
        if self.content.keys.iter().any(|key| key.wrapped.len() > 1) {
            tracing::warn!("A change of the master key was interrupted. Run `edgewright store rekey` again.");
        }
        self.opened(path, master, save)
    }

    /// Replaces the keys of a keyring with these, which are of the same store. The process that writes may have replaced the master
    /// key, which is then read again; while it does so, two master keys open them.
    pub(crate) fn renew(self, path: &Path, keyring: &Keyring) -> Result<(), StoreError> {
        let known = keyring.master_key();
        let opens = self.content.root.iter().any(|wrapped| wrapped.by == known.id());
        let other = if opens { None } else { keyring.master_again()? };
        let newer = self.opened(path, other.unwrap_or(known), Box::new(|_: &[u8]| Ok(())))?;
        keyring.take_keys(&newer);
        Ok(())
    }

    fn opened(mut self, path: &Path, master: MasterKey, save: SaveKeys) -> Result<Keyring, StoreError> {
        let written = std::mem::take(&mut self.content.keys);
        let mut keys = Vec::with_capacity(written.len());
        for WrittenKey { id, created_at, retired_at, wrapped } in written {
            let key = if wrapped.is_empty() { None } else { Some(self.unwrapped(path, &master, id, &wrapped)?) };
            keys.push(DataKey { id, created_at, retired_at, key });
        }
        let root_secret = self.unwrapped(path, &master, ROOT, &self.content.root)?;
        if id_of(&root_secret) != self.store {
            return Err(StoreError::corrupt(path, "it belongs to another store than `head`"));
        }
        if keys.last().is_none_or(|last| last.key.is_none()) {
            return Err(StoreError::corrupt(path, "it has no data key to encrypt with"));
        }
        let KeysFile { announce, lifetimes, time, .. } = self.content;
        Ok(Keyring::new(self.store, Ring { master, root_secret, keys, announce, lifetimes, time }, save))
    }

    /// Decrypts a data key or the root secret.
    fn unwrapped(
        &self,
        path: &Path,
        master: &MasterKey,
        id: KeyId,
        wrapped: &[WrappedKey],
    ) -> Result<Zeroizing<[u8; KEY]>, StoreError> {
        let Some(found) = wrapped.iter().find(|wrapped| wrapped.by == master.id()) else {
            let wanted = wrapped.iter().map(|wrapped| wrapped.by.to_string()).collect::<Vec<_>>().join(" or ");
            return Err(unusable(format!(
                "{} is not the master key of the store {} (its ID is {}, expected {wanted})",
                master.origin(),
                path.parent().unwrap_or(path).display(),
                master.id(),
            )));
        };
        let key = form::decoded(&found.key).and_then(|bytes| master.unwrap(&self.store, id, &bytes));
        let what = if id == ROOT { "the root secret".to_owned() } else { format!("the data key {id}") };
        key.ok_or_else(|| StoreError::corrupt(path, format!("{what} cannot be decrypted")))
    }
}
