//! Repositories and revisions as they are opened.

use std::path::{Path, PathBuf};

use git2::{ErrorCode, Oid, Repository};

use super::ref_suggestions::{list_existing, ref_names, remote_branch, short_name};
use crate::manifest::tree::faults::not_read;
use crate::manifest::tree::paths::{self, normalize};
use crate::model::Diagnostic;
use crate::syntax::text::printable;

/// The repository of a path.
pub(super) fn discover(path: &Path) -> Result<Repository, Diagnostic> {
    let whole = absolute(path);
    // The path may exist in only one of two revisions, and not in the work tree.
    let there = whole.ancestors().find(|path| path.exists()).unwrap_or(&whole);
    Repository::discover(there).map_err(|error| {
        let message = format!("{} is not in a readable Git repository: {}", path.display(), error.message());
        open_error(&error, message, "use a path inside a Git repository")
    })
}

/// The repository at a path: a work tree, or a bare repository.
pub(super) fn open_repository(path: &Path) -> Result<Repository, Diagnostic> {
    Repository::open(path).map_err(|error| {
        let message = format!("{} is not a readable Git repository: {}", path.display(), error.message());
        open_error(&error, message, "use the path of a bare repository, or of the top folder of a work tree")
    })
}

fn open_error(error: &git2::Error, message: String, help: &'static str) -> Diagnostic {
    let help = match error.code() {
        ErrorCode::Owner => "run `git config --global --add safe.directory` if you trust its owner",
        _ => help,
    };
    not_read(message).help(help)
}

/// The absolute path, without `.` and `..`.
pub(super) fn absolute(path: &Path) -> PathBuf {
    normalize(&paths::absolute(path))
}

/// The commit of a revision.
pub(super) fn commit(repository: &Repository, revision: &str) -> Result<Oid, Diagnostic> {
    let found = repository.revparse_single(revision).and_then(|object| object.peel_to_commit());
    found.map(|commit| commit.id()).map_err(|error| {
        let is_found = !matches!(error.code(), ErrorCode::NotFound | ErrorCode::InvalidSpec | ErrorCode::Ambiguous);
        if is_found || repository.resolve_reference_from_short_name(revision).is_ok() {
            let message = format!("cannot read the commit of Git revision `{revision}`: {}", error.message());
            return not_read(message)
                .help(shallow_hint(repository).unwrap_or("run `git fsck` in the repository, or use another revision"));
        }
        let refs = ref_names(repository);
        let existing = list_existing("the repository", revision, refs.iter().filter_map(|name| short_name(name)));
        let fault = not_read(format!("unknown Git revision `{revision}`{existing}"));
        match remote_branch(revision, &refs) {
            Some(name) => fault.help(format!("use the remote's branch: `{}`", printable(name))),
            None => fault.help(shallow_hint(repository).unwrap_or("use a branch, tag or commit")),
        }
    })
}

/// The help for a commit that a shallow clone may lack.
pub(super) fn shallow_hint(repository: &Repository) -> Option<&'static str> {
    repository.is_shallow().then_some("run `git fetch --unshallow`: this clone is shallow")
}

/// The folder of the work tree, or of a bare repository.
pub(super) fn root_of(repository: &Repository) -> PathBuf {
    let root = repository.workdir().unwrap_or_else(|| repository.path());
    root.canonicalize().unwrap_or_else(|_| root.to_owned())
}
