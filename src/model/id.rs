//! IDs: a prefix for the kind, and 27 base62 characters (D11).

pub(super) mod head;

use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::LazyLock;

use arcstr::ArcStr;
use blake3::hazmat::{ContextKey, HasherExt as _, hash_derive_key_context};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::syntax::text::has_token;
use head::IdHead;

/// The key that separates derived IDs from all other hashes. It is the same for each of them, so it is made once.
static DERIVATION: LazyLock<ContextKey> = LazyLock::new(|| hash_derive_key_context("edgewright 2026 id from manifest"));

/// An opaque ID; cheap to clone. IDs sort like their texts.
#[derive(Clone, PartialEq, Eq)]
pub struct Id {
    /// Compared first.
    head: IdHead,
    text: ArcStr,
}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Ord for Id {
    fn cmp(&self, other: &Self) -> Ordering {
        if let Some(order) = self.head.order(other.head) {
            return order;
        }
        // The children of a parent share its ID, and are compared with each other most often.
        if ArcStr::ptr_eq(&self.text, &other.text) { Ordering::Equal } else { self.as_str().cmp(other.as_str()) }
    }
}

impl PartialOrd for Id {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Id {
    /// Creates an ID from any text, without validation.
    pub fn new(text: &str) -> Self {
        Self { text: ArcStr::from(text), head: IdHead::new(text) }
    }

    /// Derives the ID of a resource in a manifest. The same parts give the same ID everywhere, so a plan shows real IDs
    /// before the resources exist, and a store rebuilt from the same commit has the same IDs.
    pub fn derived<'a>(prefix: &str, parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = blake3::Hasher::new_from_context_key(&DERIVATION);
        for part in parts {
            // Without the length, ("ab", "c") and ("a", "bc") would have the same ID.
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let mut bytes = [0; 20];
        hasher.finalize_xof().fill(&mut bytes);
        Self::from_bytes(prefix, bytes)
    }

    /// Returns the bot that owns the API keys of a source whose manifests name no owner (D27).
    pub(crate) fn bot_of(source: &str) -> Self {
        Self::derived("bot_", [source.as_bytes()])
    }

    /// Creates the ID with the given 160 bits.
    pub fn from_bytes(prefix: &str, bytes: [u8; 20]) -> Self {
        const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        // Five digits at a time, because every response has an ID.
        const FIVE_DIGITS: u64 = 62_u64.pow(5);
        let mut number = [0_u32; 5];
        for (part, bytes) in number.iter_mut().zip(bytes.chunks_exact(4)) {
            *part = u32::from_be_bytes(bytes.try_into().unwrap_or_default());
        }
        let mut text = [b'0'; 27];
        for digits in text.rchunks_mut(5) {
            let mut rest = 0_u64;
            for part in &mut number {
                let value = (rest << 32) | u64::from(*part);
                *part = (value / FIVE_DIGITS) as u32;
                rest = value % FIVE_DIGITS;
            }
            for digit in digits.iter_mut().rev() {
                *digit = DIGITS.get((rest % 62) as usize).copied().unwrap_or(b'0');
                rest /= 62;
            }
        }
        Self::new(&[prefix, str::from_utf8(&text).unwrap_or_default()].concat())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Borrow<str> for Id {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_str().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        Ok(Self::new(&text))
    }
}

/// Whether a text is valid as the ID of a resource that another service owns: 1 to 255 bytes without slashes, white
/// space or control characters (D20).
pub(crate) fn is_opaque_id(text: &str) -> bool {
    let is_plain = |c: char| c != '/' && !c.is_whitespace() && !c.is_control();
    (1..=255).contains(&text.len()) && text.chars().all(is_plain) && !has_token(text)
}

/// Whether a text is valid as a manifest name: lower-case letters, digits, '-' and '.' (D26). A name has no '_' and an
/// ID always has one, so the two cannot be confused.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=253).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_its_prefix_and_27_base62_characters() {
        let zero = Id::from_bytes("ak_", [0; 20]);
        assert_eq!(zero.as_str(), "ak_000000000000000000000000000");
        // The largest KSUID, as its authors print it.
        assert_eq!(Id::from_bytes("", [0xff; 20]).as_str(), "aWgEPTl1tmebfsQzFP4bxwgy80V");
        let counting = std::array::from_fn(|at| at as u8 + 1);
        assert_eq!(Id::from_bytes("", counting).as_str(), "08umpsRGMi9hXbwR6pXWz2Ckob6");
    }

    #[test]
    fn derived_ids_are_those_of_the_derivation_by_its_context() {
        let mut hasher = blake3::Hasher::new_derive_key("edgewright 2026 id from manifest");
        hasher.update(&2_u64.to_le_bytes()).update(b"ab");
        let mut bytes = [0; 20];
        hasher.finalize_xof().fill(&mut bytes);
        assert_eq!(Id::derived("x_", [b"ab".as_slice()]), Id::from_bytes("x_", bytes));
    }

    #[test]
    fn derived_ids_depend_on_where_one_part_ends() {
        let id = |parts: &[&str]| Id::derived("x_", parts.iter().map(|p| p.as_bytes()));
        assert_eq!(id(&["ab", "c"]), id(&["ab", "c"]));
        assert_ne!(id(&["ab", "c"]), id(&["a", "bc"]));
    }
}
