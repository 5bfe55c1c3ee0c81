//! A range of Git revisions.

use std::path::Path;

use super::repository::{commit, discover, shallow_hint};
use crate::manifest::tree::faults::not_read;
use crate::model::Diagnostic;

/// The two sides of a revision range such as `main..HEAD`, in the repository of a path. `A...B` starts at the merge
/// base; with `A` alone, the other side is the work tree.
pub(crate) fn revisions(range: &str, path: &Path) -> Result<(String, Option<String>), Diagnostic> {
    let or_head = |name: &str| if name.is_empty() { "HEAD".to_owned() } else { name.to_owned() };
    if let Some((a, b)) = range.split_once("...") {
        let repository = discover(path)?;
        let (a, b) = (or_head(a), or_head(b));
        let base = repository.merge_base(commit(&repository, &a)?, commit(&repository, &b)?);
        let base = base.map_err(|_| {
            not_read(format!("`{a}` and `{b}` have no merge base"))
                .help(shallow_hint(&repository).unwrap_or("use two dots instead of three"))
        })?;
        return Ok((base.to_string(), Some(b)));
    }
    Ok(match range.split_once("..") {
        Some((a, b)) => (or_head(a), Some(or_head(b))),
        None => (or_head(range), None),
    })
}
