//! The IDs of keys and stores, which reveal neither.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Names a data key or a master key, without revealing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct KeyId(pub(super) u64);

impl KeyId {
    /// Parses what [`KeyId`] displays.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hex { u64::from_str_radix(text, 16).ok().map(Self) } else { None }
    }

    /// The id as bytes.
    pub(super) fn bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
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

/// Identifies the store that something is sealed for.
pub(crate) type StoreId = [u8; 16];

/// Derives the id of a store from its root secret, which the id does not reveal.
pub(crate) fn id_of(root_secret: &[u8; 32]) -> StoreId {
    let derived = blake3::derive_key("edgewright 2026 store files", root_secret);
    derived.first_chunk().copied().unwrap_or_default()
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
