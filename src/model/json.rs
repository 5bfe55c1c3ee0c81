//! Serialisation to JSON. A failure is an error and never an empty text, because an empty response, plan or digest
//! would pass for a real one.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use super::{code::Code, diagnostic::Diagnostic};

/// A serialisation error. It is a bug, because every type can be serialised.
#[derive(Debug)]
pub struct JsonError(serde_json::Error);

impl JsonError {
    /// Creates an error; the reason must not contain a secret.
    pub fn new(reason: impl fmt::Display) -> Self {
        Self(<serde_json::Error as serde::ser::Error>::custom(reason))
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot serialise a value: {}", self.0)
    }
}

impl std::error::Error for JsonError {}

impl From<JsonError> for serde_json::Error {
    fn from(error: JsonError) -> Self {
        error.0
    }
}

impl From<JsonError> for Diagnostic {
    fn from(error: JsonError) -> Self {
        Diagnostic::error(Code::Internal, error.to_string()).help(Code::Internal.info().cure)
    }
}

/// Serialises to a value.
pub fn value<T: Serialize + ?Sized>(value: &T) -> Result<Value, JsonError> {
    serde_json::to_value(value).map_err(JsonError)
}

/// Serialises to the fields of an object.
pub fn object<T: Serialize + ?Sized>(value: &T) -> Result<Map<String, Value>, JsonError> {
    match self::value(value)? {
        Value::Object(fields) => Ok(fields),
        _ => Err(JsonError::new("not an object")),
    }
}

/// Serialises to bytes, on one line.
pub fn bytes<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, JsonError> {
    serde_json::to_vec(value).map_err(JsonError)
}

/// Serialises to indented text with a trailing line break.
pub fn text<T: Serialize + ?Sized>(value: &T) -> Result<String, JsonError> {
    let mut text = serde_json::to_string_pretty(value).map_err(JsonError)?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_cannot_be_written_is_an_error_and_not_empty() {
        // JSON keys must be strings.
        let unwritable = BTreeMap::from([(vec![1], 2)]);
        assert!(value(&unwritable).is_err());
        assert!(object(&unwritable).is_err());
        assert!(object(&[1]).is_err(), "a list has no fields");
        assert!(bytes(&unwritable).is_err());
        let message = text(&unwritable).err().map(|error| Diagnostic::from(error).message);
        assert!(message.is_some_and(|message| message.starts_with("cannot serialise a value: ")));
    }
}
