//! The format of a store's folder: one so far.
//!
//! A format that was released is read by every later version: its migration belongs here. The formats `edgewright 1` and
//! `edgewright 2` were never released, so their stores are refused, like those of newer versions. Nothing in the folder
//! changes then.

use std::path::Path;

use super::{files, head};
use crate::{model::code::Code, store::StoreError};

/// The format that this version reads and writes.
pub(super) const FORMAT: &str = "edgewright 3";
/// The format that kept everything in one sled tree.
const ONE_TREE: &str = "edgewright 1";

/// The error of a file in another format, with what to do.
pub(super) fn other_format(path: &Path, format: &str) -> StoreError {
    let format = crate::text::printable(format);
    let message = format!(
        "{} has the format `{format}`, and this version of edgewright reads only `{FORMAT}`: run `edgewright export` with the \
         version that wrote it, and `edgewright reconcile` with this one",
        path.display()
    );
    StoreError::new(Code::StoreFormat, message)
}

/// Checks that a folder has no store of a format without a head.
pub(super) fn check(folder: &Path) -> Result<(), StoreError> {
    match files::exists(&folder.join("conf"))? && !files::exists(&head::path(folder))? {
        true => Err(other_format(folder, ONE_TREE)),
        false => Ok(()),
    }
}
