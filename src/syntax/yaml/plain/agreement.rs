//! The comparison of the plain reader with serde_yaml, for tests and fuzzing.

use serde::Deserialize;

use super::blocks::plain_documents;
use crate::syntax::yaml::tape::Tape;

/// Whether the plain reader reads a text. Panics unless serde_yaml then reads the same documents.
pub(crate) fn plain_reader_agrees(text: &str) -> bool {
    let Some(documents) = plain_documents(text, usize::MAX) else { return false };
    let mut others = serde_yaml::Deserializer::from_str(text);
    for (number, document) in documents.iter().enumerate() {
        let other = others.next().map(Tape::deserialize);
        let reason = match &other {
            None => "there is no such document".to_owned(),
            Some(Err(error)) => error.to_string(),
            Some(Ok(other)) if document == other => continue,
            Some(Ok(other)) => format!("read as {document:?} instead of {other:?}"),
        };
        assert!(reason.is_empty(), "document {number} of {text:?}: {reason}");
    }
    assert!(others.next().is_none(), "{text:?} has more than {} documents", documents.len());
    true
}
