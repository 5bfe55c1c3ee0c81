//! A trial write, which tells whether a full disk has room again.

use std::{io::Write, path::Path};

use super::files::{remove, write_whole};
use crate::store::error::StoreError;

/// The size of a trial write: more than most commits.
const PROBE_BYTES: usize = 1 << 18;

/// Checks that a file of some size can be written durably.
pub(crate) fn probe(folder: &Path) -> Result<(), StoreError> {
    let path = folder.join("probe.tmp");
    let written = write_whole(&path, |writer| writer.write_all(&[0; PROBE_BYTES]));
    let removed = remove(&path);
    written.and(removed)
}
