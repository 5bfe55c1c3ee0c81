//! Secrets at rest (D96): data keys encrypt them, and a master key, which is kept elsewhere, wraps the data keys.
//!
//! [`Keyring::seal`] and [`Keyring::open`] are all that the rest of the store needs. What is sealed is bound to a store
//! and to what the caller names, so that it cannot be moved elsewhere.

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
        Self::parse(&text).ok_or_else(|| de::Error::custom("not the id of a key"))
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
