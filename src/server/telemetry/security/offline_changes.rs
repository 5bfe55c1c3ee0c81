//! Changes of keys and owners that commands make while no server has the store open.

use std::{borrow::Cow, io, path::Path};

use super::{
    event::SecurityRecord,
    hash_chained_file::{ChainedFile, FileBounds, LogEntry},
    note::administrative_changes,
};
use crate::model::operation::Operation;

/// The reason in the lines of these changes: nothing else says that no request made them.
const COMMAND_LINE: &str = "command line";

/// The security log of a store that no server has open, if there is one.
#[derive(Debug, Default)]
pub(crate) struct LocalLog(Option<ChainedFile>);

/// Changes of keys and owners, for the log.
#[derive(Debug)]
pub(crate) struct LocalChanges(Vec<LogEntry>);

impl LocalChanges {
    /// The changes among operations.
    pub(crate) fn from_operations(operations: &[Operation]) -> Self {
        let entries = administrative_changes(operations).into_iter().map(|change| {
            LogEntry::new(SecurityRecord {
                reason: Cow::Borrowed(COMMAND_LINE),
                target: change.target,
                role: change.role,
                ..SecurityRecord::new(change.event)
            })
        });
        Self(entries.collect())
    }
}

impl LocalLog {
    /// Opens the log at a path, and continues its chain. Only one process can have it open.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        ChainedFile::open(path, FileBounds::default()).map(|file| Self(Some(file)))
    }

    /// Appends changes durably.
    pub(crate) fn append(&mut self, changes: &LocalChanges) -> io::Result<()> {
        match &mut self.0 {
            Some(file) if !changes.0.is_empty() => file.append(&changes.0),
            _ => Ok(()),
        }
    }
}
