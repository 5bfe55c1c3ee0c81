//! Serialization to JSON. Each call says with [`Secrets`] how secrets are written; no other serializer can reveal one:
//!
//! ```text
//! json::text(&route, Secrets::Masked)    →  "secret": "********"
//! json::text(&route, Secrets::Revealed)  →  "secret": "hunter2"
//! ```
//!
//! The mode is a part of the serializer, not of the thread that runs it, so a value inside another one cannot be written in
//! another mode. A failure is an error, never an empty text: an empty response, plan or digest would pass for a real one.
//! Values without secrets whose serialization cannot fail may use `json!`.

pub(crate) mod deserialize;
pub(crate) mod long_integer;

#[cfg(test)]
mod tests;
mod writer;

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use super::diagnostics::{Code, Diagnostic};
use super::secrets::Secrets;
use super::secrets::secret_spans::SecretSpans;
use writer::Writer;

/// A value that cannot be serialized. This is a bug: every type of this crate can be.
#[derive(Debug, thiserror::Error)]
#[error("cannot serialize a value: {0}")]
pub struct JsonError(serde_json::Error);

impl JsonError {
    /// Creates the error; the reason must not contain a secret.
    pub fn new(reason: impl fmt::Display) -> Self {
        Self(<serde_json::Error as serde::ser::Error>::custom(reason))
    }
}

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

/// Serializes to a JSON value.
pub(crate) fn value<T: Serialize + ?Sized>(value: &T, secrets: Secrets<'_>) -> Result<Value, JsonError> {
    value.serialize(Writer::new(serde_json::value::Serializer, secrets)).map_err(JsonError)
}

/// Serializes the fields of an object.
pub(crate) fn object<T: Serialize + ?Sized>(value: &T, secrets: Secrets<'_>) -> Result<Map<String, Value>, JsonError> {
    let Value::Object(fields) = self::value(value, secrets)? else { return Err(JsonError::new("not an object")) };
    Ok(fields)
}

/// Removes the fields of an object that are null.
pub(crate) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        other => other,
    }
}

/// Serializes to bytes, on one line.
pub(crate) fn bytes<T: Serialize + ?Sized>(value: &T, secrets: Secrets<'_>) -> Result<Vec<u8>, JsonError> {
    let mut bytes = Vec::with_capacity(256);
    append(value, secrets, &mut bytes).map(|()| bytes)
}

/// Serializes to bytes after others, on one line.
pub(crate) fn append<T: Serialize + ?Sized>(
    value: &T,
    secrets: Secrets<'_>,
    bytes: &mut Vec<u8>,
) -> Result<(), JsonError> {
    let counted = LocatedBytes { bytes, places: secrets.places() };
    value.serialize(Writer::new(&mut serde_json::Serializer::new(counted), secrets)).map_err(JsonError)
}

/// Bytes in memory, whose number the places of secrets are relative to.
struct LocatedBytes<'a> {
    bytes: &'a mut Vec<u8>,
    places: Option<&'a SecretSpans>,
}

impl std::io::Write for LocatedBytes<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        if let Some(places) = self.places {
            places.wrote(bytes.len());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Serializes to indented text that ends with a line break.
pub(crate) fn text<T: Serialize + ?Sized>(value: &T, secrets: Secrets<'_>) -> Result<String, JsonError> {
    let mut bytes = Vec::with_capacity(256);
    value.serialize(Writer::new(&mut serde_json::Serializer::pretty(&mut bytes), secrets)).map_err(JsonError)?;
    bytes.push(b'\n');
    String::from_utf8(bytes).map_err(JsonError::new)
}
