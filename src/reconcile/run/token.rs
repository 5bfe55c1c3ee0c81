//! Tokens of new API keys, which are written to files on the client. The store gets only their hashes (D23, D27).

use std::io::{self, Read, Write};
use std::path::Path;

use rustix::fs::{Access, access};

use super::apply_error::ApplyError;
use crate::files::{folder_of, if_exists, private};
use crate::model::{Kind, Secret};
use crate::reconcile::prelude::*;
use crate::store::tokens;

/// A source of token hashes for new keys.
pub(crate) trait Tokens {
    /// Returns the hash of a key's token, which goes to a file.
    fn hash(&mut self, key: &Id, file: &Path) -> Result<Secret, ApplyError>;

    /// Removes the tokens, because the keys are not created.
    fn take_back(&mut self) {}
}

/// Creates tokens and writes them to the files named by the manifests.
#[derive(Debug, Default)]
pub(crate) struct TokenFiles {
    written: Vec<PathBuf>,
}

impl Tokens for TokenFiles {
    fn hash(&mut self, key: &Id, file: &Path) -> Result<Secret, ApplyError> {
        let (token, hash) = tokens::token(key);
        write_new(file, &token)?;
        self.written.push(file.to_owned());
        Ok(hash)
    }

    fn take_back(&mut self) {
        for file in self.written.drain(..) {
            let _ = fs::remove_file(file);
        }
    }
}

/// Hashes sent by a client that has the tokens.
#[derive(Debug, Default)]
pub(crate) struct TokenHashes(pub BTreeMap<Id, Secret>);

impl Tokens for TokenHashes {
    fn hash(&mut self, key: &Id, _file: &Path) -> Result<Secret, ApplyError> {
        self.0.get(key).cloned().ok_or_else(|| ApplyError::NoTokenHash(key.clone()))
    }
}

/// Returns the operations of a plan with the token hash of each new key.
pub(super) fn with_hashes(plan: &Plan, tokens: &mut dyn Tokens) -> Result<Vec<Operation>, ApplyError> {
    let mut operations = Vec::new();
    for change in &plan.changes {
        for operation in &change.operations {
            let mut operation = operation.clone();
            if let (Operation::Create { key, token, .. }, Some(file)) = (&mut operation, &change.token_file)
                && key.kind == Kind::ApiKey
            {
                *token = Some(tokens.hash(&key.id, file)?);
            }
            operations.push(operation);
        }
    }
    Ok(operations)
}

/// Writes the token of a store's first admin, and replaces an earlier token: a process that was killed before it created
/// the admin has left one of no use. Anything else at the path is an error: a device or somebody's file must not be lost to a
/// mistyped option.
pub(crate) fn replace_token(path: &Path, token: &Secret) -> io::Result<()> {
    remove_token(path)?;
    write(path, token)
}

fn remove_token(path: &Path) -> io::Result<()> {
    let Some(facts) = if_exists(fs::symlink_metadata(path))? else { return Ok(()) };
    if !facts.is_file() {
        return Err(io::Error::other("it exists and is not a regular file"));
    }
    let mut start = [0; 3];
    // An empty one is what a process has left that was killed before it wrote the token.
    let known = facts.len() == 0 || (fs::File::open(path)?.read_exact(&mut start).is_ok() && start == *b"ew_");
    if !known {
        return Err(io::Error::other("it exists and does not contain a token"));
    }
    // The existing file may be readable by others, so it is replaced rather than overwritten.
    fs::remove_file(path)
}

/// Returns the error that [`write_new`] would return, as far as it can be predicted without writing.
pub(crate) fn check_new(path: &Path) -> Result<(), ApplyError> {
    let checked: io::Result<()> = match if_exists(fs::symlink_metadata(path)) {
        Ok(Some(_)) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) => Err(error),
        Ok(None) => access(folder_of(path), Access::WRITE_OK | Access::EXEC_OK).map_err(io::Error::from),
    };
    checked.map_err(|error| ApplyError::TokenFile(path.to_owned(), error))
}

/// Writes a token to a new file that only its user can read (D27). An existing file is an error, because it may contain
/// another key's token.
pub(crate) fn write_new(path: &Path, token: &Secret) -> Result<(), ApplyError> {
    write(path, token).map_err(|error| ApplyError::TokenFile(path.to_owned(), error))
}

fn write(path: &Path, token: &Secret) -> io::Result<()> {
    let mut file = private().write(true).create_new(true).open(path)?;
    let mut written = || {
        file.write_all(token.expose().as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()
    };
    // A part of a token is of no use, and the next run would find a file that exists.
    written().inspect_err(|_| drop(fs::remove_file(path)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_token_replaces_an_earlier_one_and_what_a_killed_process_left_but_no_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.token");
        for (before, is_replaced) in [("", true), ("ew_ak_1_2\n", true), ("mine", false)] {
            fs::write(&path, before).unwrap();
            assert_eq!(replace_token(&path, &Secret::new("ew_new")).is_ok(), is_replaced, "{before}");
            let expected = if is_replaced { "ew_new\n" } else { before };
            assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        }
    }
}
