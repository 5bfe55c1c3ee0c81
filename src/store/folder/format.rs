//! The format of a store's folder: one so far.
//!
//! A format that was released is read by every later version: its migration belongs here. The formats `edgewright 1` to
//! `edgewright 3` were never released, so their stores are refused, like those of newer versions. Nothing in the folder
//! changes then.

use std::path::Path;

use crate::model::Code;
use crate::store::disk::files;
use crate::store::error::StoreError;
use crate::store::log::head;

/// The format that this version reads and writes.
pub(crate) const FORMAT: &str = "edgewright 4";
/// The format that kept everything in one sled tree.
const ONE_TREE: &str = "edgewright 1";
/// The last format with bases.
const BASES: &str = "edgewright 3";

/// The error of a file in another format, with what to do.
pub(crate) fn other_format(path: &Path, format: &str) -> StoreError {
    let format = crate::syntax::text::printable(format);
    let message = format!(
        "{} has the format `{format}`, and this version of edgewright reads only `{FORMAT}`: run `edgewright export` with the \
         version that wrote it, and `edgewright reconcile` with this one",
        path.display()
    );
    StoreError::new(Code::StoreFormat, message)
}

/// Checks that a folder has no store of an earlier format.
pub(crate) fn check(folder: &Path) -> Result<(), StoreError> {
    if files::exists(&folder.join("conf"))? && !files::exists(&head::path(folder))? {
        return Err(other_format(folder, ONE_TREE));
    }
    let is_base = |name: &str| name.strip_prefix("base.").is_some_and(|number| number.parse::<u64>().is_ok());
    let mut names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    match names.any(|name| name.to_str().is_some_and(is_base)) {
        true => Err(other_format(folder, BASES)),
        false => Ok(()),
    }
}
