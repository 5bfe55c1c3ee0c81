//! Secrets. Every serializer masks a secret. The only ways to see one are [`Secret::expose`] and the functions of
//! [`crate::model::json`], which take a [`Secrets`](super::Secrets).

use std::{borrow::Cow, fmt, sync::Arc};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use subtle::ConstantTimeEq;

use super::unknown_value::is_unknown;
use crate::model::field_rule::{SOURCED_SECRET, deserialize_by};

/// The replacement for a secret.
pub const MASK: &str = "********";

/// A value that is never printed: a client secret, a webhook secret, a private key. Equality takes constant time.
#[derive(Clone, Default)]
pub struct Secret(Arc<SecretString>);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Arc::new(SecretString::from(text.into())))
    }

    /// Returns the secret. The caller must not print or log it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Whether the secret is empty.
    pub fn is_empty(&self) -> bool {
        self.expose().is_empty()
    }

    /// Whether the text stands for an unknown secret.
    pub(crate) fn is_unknown(&self) -> bool {
        is_unknown(self.expose())
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose().as_bytes().ct_eq(other.expose().as_bytes()).into()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(SOURCED_SECRET, &GuardedSecret(self))
    }
}

/// The fill character that reveals a [`GuardedSecret`]. No other code formats with this private-use character, so the
/// serializers of other crates always get the mask.
const OPEN: char = '\u{F5EC}';

/// The form of a secret for serializers: a text that displays as [`MASK`], unless it is [`ExposedText`].
struct GuardedSecret<'a>(&'a Secret);

impl fmt::Display for GuardedSecret<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match f.fill() {
            OPEN => self.0.expose(),
            _ if self.0.is_empty() => "",
            _ if self.0.is_unknown() => "(unknown)",
            _ => MASK,
        })
    }
}

impl Serialize for GuardedSecret<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Displays a [`GuardedSecret`] in full.
pub(crate) struct ExposedText<'a, T: ?Sized>(pub(crate) &'a T);

impl<T: fmt::Display + ?Sized> fmt::Display for ExposedText<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The character of `OPEN`, because a fill cannot be an argument.
        write!(f, "{:\u{F5EC}<}", self.0)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_by(SOURCED_SECRET, String::new(), deserializer).map(Self::new)
    }
}

/// The schema name of [`Secret`].
pub(crate) const SECRET_SCHEMA: &str = "Secret";

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        SECRET_SCHEMA.into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "description": "A secret. It is masked in responses to viewers."})
    }
}
