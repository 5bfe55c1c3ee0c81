//! Errors of opening, reading and writing a store, and of commits.

use std::{fmt, io, path::Path};

use crate::model::{Code, snapshot::Refusal};

/// An error of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreError {
    /// The registered code.
    pub code: Code,
    /// The message: one sentence without a full stop.
    pub message: String,
    /// How to fix the error, if that is not what the code says.
    pub help: Option<&'static str>,
}

impl StoreError {
    /// Creates an error.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: None }
    }

    /// Sets how to fix the error.
    #[must_use]
    pub fn help(self, help: &'static str) -> Self {
        Self { help: Some(help), ..self }
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

/// An error of a commit that changed nothing.
#[derive(Debug)]
pub enum CommitError {
    /// A rule refuses the changes.
    Refused(Refusal),
    /// The store has a newer revision.
    Stale {
        /// The revision that the Operations were computed from.
        base: u64,
        /// The current revision.
        current: u64,
    },
    /// The engine failed.
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

impl fmt::Display for CommitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommitError::Refused(refusal) => {
                let messages: Vec<&str> = refusal.faults.iter().map(|fault| fault.message.as_str()).collect();
                f.write_str(&messages.join("; "))
            }
            CommitError::Stale { base, current } => {
                write!(f, "the plan was made from revision {base}, but the store is at revision {current}")
            }
            CommitError::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CommitError {}
