//! Errors of opening, reading and writing a store.

use std::{fmt, io, path::Path};

use crate::model::code::Code;

/// An error of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreError {
    /// The registered code.
    pub code: Code,
    /// The message: one sentence without a full stop.
    pub message: String,
}

impl StoreError {
    /// Creates an error.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Creates the error of a failed file operation; `doing` completes "cannot …".
    pub fn io(doing: &str, path: &Path, error: &io::Error) -> Self {
        Self::new(Code::StoreFailed, format!("cannot {doing} {}: {error}", path.display()))
    }

    /// Creates the error of a damaged file.
    pub fn corrupt(path: &Path, found: impl fmt::Display) -> Self {
        Self::new(Code::StoreCorrupt, format!("{} is damaged: {found}", path.display()))
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StoreError {}
