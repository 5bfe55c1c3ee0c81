//! Fields for which the decoder and the JSON writer have a rule of their own. Serde passes nothing but the name of a newtype
//! from a field to its format, so that name says the rule: `Secret` is a newtype [`SOURCED_SECRET`], for example. Every other
//! format ignores it.

use std::fmt;

use serde::de::{self, IntoDeserializer};
use serde::{Deserialize, Deserializer};

/// A field that accepts any object. A null inside is a value.
pub(crate) const FREE_FORM: &str = "edgewright::FreeForm";
/// A field of which a blank in a request means "not given".
pub(crate) const BLANK_IS_UNSET: &str = "edgewright::BlankIsUnset";
/// A long text, which `from_env` and `from_file` can provide (D28), and which reviews abridge.
pub(crate) const SOURCED_TEXT: &str = "edgewright::Text";
/// A secret, which `from_env` and `from_file` can provide, and which is written as `Secrets` says.
pub(crate) const SOURCED_SECRET: &str = "edgewright::Secret";

/// Deserializes a field by a rule; `unset` is its value where the rule says that it is not given.
pub(crate) fn deserialize_by<'de, D, T>(rule: &'static str, unset: T, deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct RuleVisitor<T>(T);

    impl<'de, T: Deserialize<'de>> de::Visitor<'de> for RuleVisitor<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a value")
        }
        fn visit_none<E>(self) -> Result<T, E> {
            Ok(self.0)
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            T::deserialize(text.into_deserializer())
        }
        fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
            T::deserialize(deserializer)
        }
    }

    deserializer.deserialize_newtype_struct(rule, RuleVisitor(unset))
}
