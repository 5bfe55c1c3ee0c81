//! Long public texts, parsed once.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::unknown_value::is_unknown;
use crate::model::field_rule::{SOURCED_TEXT, deserialize_by};

/// The result of parsing a [`Text`], errors included.
pub trait Reading: Send + Sync + 'static {
    /// Parses a text; called once per value.
    fn read(text: &str) -> Self;
}

/// A long public text, PEM or XML, that is parsed into an `R` on first use; clones share the result. In reviews, it
/// shows as size and digest.
pub struct Text<R>(Arc<SharedText<R>>);

struct SharedText<R> {
    text: Box<str>,
    reading: OnceLock<R>,
}

impl<R> Text<R> {
    /// Wraps a text.
    pub fn new(text: &str) -> Self {
        Self(Arc::new(SharedText { text: text.into(), reading: OnceLock::new() }))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Whether the text stands for an unknown one.
    pub(crate) fn is_unknown(&self) -> bool {
        is_unknown(self.as_str())
    }

    /// Shares the parsed value of `former` if the texts are equal.
    pub fn keep_reading(&mut self, former: &Self) {
        if self == former {
            self.clone_from(former);
        }
    }
}

impl<R: Reading> Text<R> {
    /// The parsed text.
    pub fn read(&self) -> &R {
        self.0.reading.get_or_init(|| R::read(&self.0.text))
    }
}

impl<R> Clone for Text<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R> Default for Text<R> {
    fn default() -> Self {
        Self::new("")
    }
}

impl<R> PartialEq for Text<R> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.as_str() == other.as_str()
    }
}

impl<R> Eq for Text<R> {}

impl<R> fmt::Debug for Text<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({} bytes)", self.as_str().len())
    }
}

impl<R> Serialize for Text<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(SOURCED_TEXT, self.as_str())
    }
}

impl<'de, R> Deserialize<'de> for Text<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_by(SOURCED_TEXT, String::new(), deserializer).map(|text| Self::new(&text))
    }
}

/// The schema name of [`Text`].
pub(crate) const TEXT_SCHEMA: &str = "Text";

impl<R> JsonSchema for Text<R> {
    fn schema_name() -> Cow<'static, str> {
        TEXT_SCHEMA.into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "description": "A long text, such as PEM or XML."})
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    static READ: AtomicUsize = AtomicUsize::new(0);

    /// Counts how often texts are parsed.
    struct CountedReading;

    impl Reading for CountedReading {
        fn read(_: &str) -> Self {
            READ.fetch_add(1, Ordering::Relaxed);
            Self
        }
    }

    #[test]
    fn a_text_and_its_clones_are_parsed_once() {
        let text = Text::<CountedReading>::new("a");
        let clone = text.clone();
        assert_eq!(READ.load(Ordering::Relaxed), 0);
        for text in [&text, &clone, &text] {
            text.read();
        }
        assert_eq!(READ.load(Ordering::Relaxed), 1);
        let (mut same, mut other) = (Text::<CountedReading>::new("a"), Text::<CountedReading>::new("b"));
        same.keep_reading(&text);
        same.read();
        assert_eq!(READ.load(Ordering::Relaxed), 1);
        other.keep_reading(&text);
        other.read();
        assert_eq!((READ.load(Ordering::Relaxed), other.as_str()), (2, "b"));
    }
}
