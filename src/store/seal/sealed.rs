//! What [`Keyring::seal`](super::Keyring::seal) makes, as records have it.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{form, ids::KeyId};

/// Encrypted bytes, and the data key that opens them. As text: the id of the key, a dot, and the bytes in base64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sealed {
    /// The data key.
    pub(crate) key: KeyId,
    pub(super) bytes: Vec<u8>,
}

impl Serialize for Sealed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}.{}", self.key, form::encoded(&self.bytes)))
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
