//! Errors of opening, reading and writing a store, and of commits.

use std::os::unix::fs::MetadataExt;
use std::{borrow::Cow, fmt, fs, io, path::Path};

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
    /// Why the database of the store cannot be used, if it says so: completes "the database …". Unlike the message, it has no address
    /// and no path, so clients of a server see it.
    pub cause: Option<&'static str>,
}

impl StoreError {
    /// Creates an error.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: None, cause: None }
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
        let failed = Self::new(Code::StoreFailed, format!("cannot {doing} {}: {error}", path.display()));
        let help = if error.kind() == io::ErrorKind::PermissionDenied { other_owner_help(path) } else { None };
        Self { help: help.map(Cow::Owned), ..failed }
    }

    /// Creates the error of a damaged file.
    pub fn corrupt(path: &Path, found: impl fmt::Display) -> Self {
        Self::new(Code::StoreCorrupt, format!("{} is damaged: {found}", path.display()))
    }
}

/// Returns the help for a path that this user cannot access because it, or the nearest visible folder above it, belongs to
/// another one.
fn other_owner_help(path: &Path) -> Option<String> {
    let shown = |path: &Path| if path.as_os_str().is_empty() { Path::new(".").to_owned() } else { path.to_owned() };
    let visible = path.ancestors().map(shown).find_map(|it| Some((fs::metadata(&it).ok()?.uid(), it)));
    let (owner, path) = visible.filter(|(owner, _)| *owner != rustix::process::geteuid().as_raw())?;
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = user_name(&users, owner);
    // sudo takes a number in this form, too.
    let user = name.map_or_else(|| format!("#{owner}"), str::to_owned);
    let path = path.display();
    Some(format!(
        "{path} belongs to user `{user}`: run the command as that user (`sudo -u '{user}' edgewright …`), use its \
         server with `--server URL`, or change the owner"
    ))
}

/// Returns the name of a user in the text of a `passwd` file.
fn user_name(users: &str, id: u32) -> Option<&str> {
    let id = id.to_string();
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1) == Some(id.as_str())).then_some(name)
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_folder_has_a_name() {
        let users = "root:x:0:0:root:/root:/bin/sh\nedgewright:x:998:997::/var/lib/edgewright:/bin/false\nodd\n";
        assert_eq!(
            (user_name(users, 998), user_name(users, 0), user_name(users, 99)),
            (Some("edgewright"), Some("root"), None)
        );
    }
}
