//! The first fields of a record of the history. A record can have every resource of a store, and most questions are about
//! who made it and when.

use jiff::Timestamp;
use serde::{
    Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor},
};

use super::StoreError;
use crate::model::{code::Code, operation::Author};

/// The first fields of a record. Those of a large commit have the resources of an estate after them.
#[derive(Debug)]
pub(super) struct RecordHead {
    pub position: u64,
    pub revision: Option<u64>,
    pub at: Timestamp,
    pub author: Author,
}

/// The error of a record that cannot be read.
pub(super) fn damaged(error: impl std::fmt::Display) -> StoreError {
    StoreError::new(Code::StoreCorrupt, format!("a history record is damaged: {error}"))
}

impl RecordHead {
    /// Reads a record up to its author.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, StoreError> {
        let mut head = None;
        // Whatever follows the head is an error for the parser.
        let end = HeadSeed(&mut head).deserialize(&mut serde_json::Deserializer::from_slice(bytes));
        match (head, end) {
            (Some(head), _) => Ok(head),
            (None, Ok(())) => Err(damaged("no author")),
            (None, Err(error)) => Err(damaged(error)),
        }
    }

    /// Whether a source is the author.
    pub(super) fn is_of(&self, wanted: &str) -> bool {
        matches!(&self.author, Author::Source { source, .. } if source == wanted)
    }
}

/// Reads the head of a record, and stops there.
struct HeadSeed<'h>(&'h mut Option<RecordHead>);

impl<'de> DeserializeSeed<'de> for HeadSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for HeadSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut fields: M) -> Result<(), M::Error> {
        let (mut position, mut revision, mut at) = (None, None, None);
        while let Some(name) = fields.next_key::<String>()? {
            match name.as_str() {
                "position" => position = Some(fields.next_value()?),
                "revision" => revision = fields.next_value()?,
                "at" => at = Some(fields.next_value()?),
                "author" => {
                    let author = fields.next_value()?;
                    let head = position.zip(at);
                    *self.0 = head.map(|(position, at)| RecordHead { position, revision, at, author });
                    return Ok(());
                }
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}
