//! Errors of opening, reading and writing a store, and of commits.

use std::{borrow::Cow, fmt, io, path::Path};

use thiserror::Error;

use crate::model::{Code, Diagnostic, snapshot::Refusal};

/// An error of a store.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct StoreError {
    /// The registered code.
    pub code: Code,
    /// The message: one sentence without a full stop.
    pub message: String,
    /// How to fix the error, if that is not what the code says.
    pub help: Option<Cow<'static, str>>,
}

impl StoreError {
    /// Creates an error.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: None }
    }

    /// Creates the error of something that should never fail.
    pub(crate) fn internal(error: impl fmt::Display) -> Self {
        Self::new(Code::Internal, error.to_string())
    }

    /// Sets how to fix the error.
    #[must_use]
    pub fn help(self, help: impl Into<Cow<'static, str>>) -> Self {
        Self { help: Some(help.into()), ..self }
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

impl From<StoreError> for Diagnostic {
    fn from(error: StoreError) -> Self {
        Diagnostic::error(error.code, error.message).help(error.help.unwrap_or(Cow::Borrowed(error.code.info().cure)))
    }
}

/// Says what a file operation was for.
pub(crate) trait Doing<T> {
    /// Turns a failure into an error of the store; `doing` completes "cannot …".
    fn doing(self, doing: &str, path: &Path) -> Result<T, StoreError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &str, path: &Path) -> Result<T, StoreError> {
        self.map_err(|error| StoreError::io(doing, path, &error))
    }
}

/// An error of a commit that changed nothing.
#[derive(Debug, Error)]
pub enum CommitError {
    /// A rule refuses the changes.
    #[error("{}", messages_of(.0))]
    Refused(Refusal),
    /// The store has a newer revision.
    #[error("the plan was made from revision {base}, but the store is at revision {current}")]
    Stale {
        /// The revision that the Operations were computed from.
        base: u64,
        /// The current revision.
        current: u64,
    },
    /// The engine failed.
    #[error(transparent)]
    Failed(StoreError),
}

/// An error of [`Store::commit_with`](super::Store::commit_with), which changed nothing.
#[derive(Debug)]
pub enum Declined<E> {
    /// The closure returned an error instead of Operations.
    Declined(E),
    /// The commit was refused or failed.
    Commit(CommitError),
}

fn messages_of(refusal: &Refusal) -> String {
    let messages: Vec<&str> = refusal.faults.iter().map(|fault| fault.message.as_str()).collect();
    messages.join("; ")
}
