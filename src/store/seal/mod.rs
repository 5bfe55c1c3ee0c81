//! Secrets at rest (D96): data keys encrypt them, and a master key, which is kept elsewhere, wraps the data keys.
//!
//! # The problem
//!
//! The private key of a certificate leaked, and was replaced. The former one is in the log, because a rollback must be able
//! to bring it back; in a state that was replaced; in every backup since; and in blocks of the disk that no file has any
//! more. None of these can be overwritten. But it must be gone at some time, and whoever finds a disk or a backup must read
//! neither the former key nor the new one.
//!
//! # The idea
//!
//! What cannot be deleted is encrypted, and its key is deleted. Every secret in every file is encrypted with a *data key*.
//! Data keys live in one small file, `keys`, wrapped by the *master key*, which is not in the store. A data key encrypts for
//! some days, and then only decrypts, until it is destroyed: with it go all secrets that it encrypted, wherever their copies
//! are.
//!
//! ```text
//! day 0    key A encrypts
//! day 7    key B encrypts; a checkpoint writes the state again, with B. A still decrypts former values in the log
//! day 14   key C …
//! day 37   A is destroyed: removed from `keys` and its copy. Nobody can read what it encrypted, wherever that is
//! ```
//!
//! A leak does not wait: `store rekey --forget-secrets` destroys all former keys at once. The master key can change without
//! any record, because only `keys` is written again.
//!
//! # What is bound
//!
//! [`Keyring::seal`] and [`Keyring::open`] are all that the rest of the store needs. What is sealed is bound to the store and
//! to what the caller names: the key of the record, and the rest of its Spec. Moved to another record, it does not open. A
//! digest beside each secret, whose key comes from the root secret and thus outlives data keys, says whether two secrets are
//! the same after both are lost.
//!
//! # What it never does
//!
//! The master key is never written to a file of the store, unless there is no other place, and never logged; neither is what
//! a key command prints. A key is never destroyed while the state, or the log from which it could be rebuilt, needs it. A
//! wrong master key changes nothing. What is destroyed keeps its ID, so that it is told from damage.

mod cipher;
pub(crate) mod command;
mod encrypted;
mod form;
mod keyring;
mod lifetimes;
mod master;
mod source;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub(crate) use encrypted::EncryptedKeys;
pub use keyring::Keyring;
pub(crate) use keyring::{FormerKey, NewMaster, NotOpened, ReadMaster, SaveKeys};
pub(crate) use lifetimes::{KeyLifetimes, MOST_DAYS};
pub(crate) use master::MasterKey;
pub use source::MasterKeySource;

/// Names a data key or a master key, without revealing it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct KeyId(u64);

impl KeyId {
    /// Parses what [`KeyId`] displays.
    fn parse(text: &str) -> Option<Self> {
        let is_hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hex { u64::from_str_radix(text, 16).ok().map(Self) } else { None }
    }

    /// The id as bytes.
    fn bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for KeyId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KeyId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("not the ID of a key"))
    }
}

/// Encrypted bytes, and the data key that opens them. As text: the id of the key, a dot, and the bytes in base64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sealed {
    key: KeyId,
    bytes: Vec<u8>,
}

impl Sealed {
    /// The data key.
    pub(crate) fn key(&self) -> KeyId {
        self.key
    }
}

impl fmt::Display for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.key, form::encoded(&self.bytes))
    }
}

impl Serialize for Sealed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sealed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parts = text.split_once('.').and_then(|(key, bytes)| Some((KeyId::parse(key)?, form::decoded(bytes)?)));
        let (key, bytes) = parts.ok_or_else(|| de::Error::custom("not encrypted bytes"))?;
        Ok(Self { key, bytes })
    }
}

/// Identifies the store that something is sealed for.
pub(crate) type StoreId = [u8; 16];

/// Derives the id of a store from its root secret, which the id does not reveal.
pub(crate) fn id_of(root_secret: &[u8; 32]) -> StoreId {
    let mut id = StoreId::default();
    let derived = blake3::derive_key("edgewright 2026 store files", root_secret);
    id.copy_from_slice(derived.first_chunk::<16>().unwrap_or(&[0; 16]));
    id
}

/// Writes the id of a store in hexadecimal.
pub(crate) fn name_of(store: &StoreId) -> String {
    format!("{:032x}", u128::from_be_bytes(*store))
}

/// Reads what [`name_of`] wrote.
pub(crate) fn store_named(name: &str) -> Option<StoreId> {
    let is_hex = name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex { u128::from_str_radix(name, 16).ok().map(u128::to_be_bytes) } else { None }
}
