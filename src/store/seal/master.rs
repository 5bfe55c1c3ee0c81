//! The master key, which wraps the data keys.

use std::fmt;

use zeroize::Zeroizing;

use super::cipher::{self, KEY, context};
use super::form;
use super::ids::{KeyId, StoreId};
use crate::model::Code;
use crate::model::secrets::digest_key::DigestKey;
use crate::store::error::StoreError;
use crate::store::ids;

/// A key that wraps the data keys of stores.
#[derive(Clone)]
pub(crate) struct MasterKey {
    key: Zeroizing<[u8; KEY]>,
    id: KeyId,
    /// Where it came from, for messages.
    origin: String,
}

impl MasterKey {
    /// Makes a random key.
    pub(crate) fn random(origin: String) -> Self {
        Self::new(Zeroizing::new(ids::random_secret()), origin)
    }

    /// Reads a key in hexadecimal or base64, or, if `raw` is set, as 32 bytes.
    pub(super) fn read(bytes: &[u8], raw: bool, origin: String) -> Result<Self, StoreError> {
        match form::key_from(bytes, raw) {
            Ok(key) => Ok(Self::new(key, origin)),
            Err(reason) => Err(unusable(format!("{origin} is not a master key: {reason}"))),
        }
    }

    fn new(key: Zeroizing<[u8; KEY]>, origin: String) -> Self {
        let id = context("edgewright 2026 id of a master key", &[key.as_slice()]);
        let id = id.first_chunk::<8>().map_or(0, |start| u64::from_be_bytes(*start));
        Self { key, id: KeyId(id), origin }
    }

    /// The text of the key, for a file.
    pub(crate) fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{}\n", *Zeroizing::new(form::encoded(self.key.as_slice()))))
    }

    /// The id.
    pub(crate) fn id(&self) -> KeyId {
        self.id
    }

    /// Where it came from.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// The key of digests that are kept beside a store.
    pub(crate) fn digest_key(&self) -> DigestKey {
        DigestKey::new(context("edgewright 2026 digests beside a store", &[self.key.as_slice()]))
    }

    /// Encrypts a data key of a store.
    pub(super) fn wrap(&self, store: &StoreId, id: KeyId, key: &[u8; KEY]) -> Option<Vec<u8>> {
        cipher::seal(&self.key, &self.wrapping(store, id), key)
    }

    /// Decrypts a data key of a store.
    pub(super) fn unwrap(&self, store: &StoreId, id: KeyId, wrapped: &[u8]) -> Option<Zeroizing<[u8; KEY]>> {
        let key = cipher::open(&self.key, &self.wrapping(store, id), wrapped)?;
        <&[u8; KEY]>::try_from(key.as_slice()).ok().map(|key| Zeroizing::new(*key))
    }

    fn wrapping(&self, store: &StoreId, id: KeyId) -> [u8; 32] {
        context("edgewright 2026 wrapped data key", &[store, &id.bytes(), &self.id.bytes()])
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKey({})", self.id)
    }
}

/// Creates the error of a master key that cannot be used.
pub(super) fn unusable(message: String) -> StoreError {
    StoreError::new(Code::MasterKey, message)
}
