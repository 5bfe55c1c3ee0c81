//! Why a plan was not applied.

use std::io::ErrorKind;

use super::fault_message::fault_message;
use crate::reconcile::prelude::*;

/// Why a plan was not applied; nothing has changed.
#[derive(Debug)]
pub enum ApplyError {
    /// The manifests have errors, or a safety limit refuses the plan.
    Refused(Vec<Diagnostic>),
    /// The store refused the changes or failed.
    Commit(CommitError),
    /// A token could not be written to its `token_file`.
    TokenFile(PathBuf, std::io::Error),
    /// The client sent no token hash for a new key.
    NoTokenHash(Id),
}

impl ApplyError {
    /// Returns the error as a diagnostic.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            ApplyError::Refused(found) => {
                found.first().cloned().unwrap_or_else(|| Diagnostic::error(Code::Internal, "there is no plan to apply"))
            }
            ApplyError::TokenFile(path, error) => {
                let (code, reason) = match error.kind() {
                    ErrorKind::AlreadyExists => (Code::Conflict, "the file already exists".to_owned()),
                    _ => (Code::Unreadable, error.to_string()),
                };
                Diagnostic::error(code, format!("cannot write the token to {}: {reason}", path.display()))
                    .help("name a new file in a folder that you can write to; nothing was changed")
            }
            ApplyError::NoTokenHash(key) => {
                Diagnostic::error(Code::Required, format!("the token hash of the new API key {key} is required"))
            }
            ApplyError::Commit(CommitError::Failed(error)) => {
                Diagnostic::error(error.code, error.message.clone()).help(error.code.info().cure)
            }
            ApplyError::Commit(error @ CommitError::Stale { .. }) => {
                Diagnostic::error(Code::Stale, error.to_string()).help("plan again and review the new plan")
            }
            ApplyError::Commit(CommitError::Refused(refusal)) => {
                let fault = refusal.faults.first();
                let code = fault.map_or(Code::Internal, |fault| fault.code);
                Diagnostic::error(code, fault.map(|fault| fault_message(&refusal.key, fault)).unwrap_or_default())
                    .help(code.info().cure)
            }
        }
    }
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.diagnostic().message)
    }
}

impl std::error::Error for ApplyError {}
