//! Changes of keys and owners that commands make while no server has the store open.

use std::{borrow::Cow, io, path::Path};

use super::event::SecurityRecord;
use super::hash_chained_file::{FileBounds, HashChainedFile};
use super::note::administrative_changes;
use crate::model::Operation;

/// The reason in the lines of these changes: nothing else says that no request made them.
const COMMAND_LINE: &str = "command line";

/// The security log of an offline store, if there is one.
#[derive(Debug, Default)]
pub(crate) struct LocalLog(Option<HashChainedFile>);

impl LocalLog {
    /// Opens the log at a path, and continues its chain. Only one process can have it open.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        HashChainedFile::open(path, FileBounds::default()).map(|file| Self(Some(file)))
    }

    /// Appends the changes of keys and owners among operations durably.
    pub(crate) fn append(&mut self, operations: &[Operation]) -> io::Result<()> {
        let changes = administrative_changes(operations).into_iter();
        let changes: Vec<SecurityRecord> =
            changes.map(|change| SecurityRecord { reason: Cow::Borrowed(COMMAND_LINE), ..change }).collect();
        match &mut self.0 {
            Some(file) if !changes.is_empty() => file.append(&changes),
            _ => Ok(()),
        }
    }
}
