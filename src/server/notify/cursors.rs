//! How far each target has been notified: a file beside the store, written after each delivery.
//!
//! A cursor is written after its delivery and not before, so a crash repeats one notification and loses none. A new
//! target starts at the current revision. That of a removed target stays, because it may be configured again.

use super::state_files;
use crate::model::json;
use crate::server::prelude::*;
use crate::store::SidecarFiles;

/// The name of the file.
const FILE: &str = "notifications";
/// The most bytes of the file: a name has at most 253.
const MOST_BYTES: u64 = 1 << 20;

/// The progress of a target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursor {
    /// The last revision of which it has been told everything.
    pub(super) revision: u64,
    /// The notifications about the revision after that one that it has received.
    #[serde(default)]
    pub(super) parts: usize,
    /// The last event of a source or certificate of which it has been told.
    #[serde(default)]
    pub(super) transition: u64,
}

/// The cursors of all targets.
pub(super) struct Cursors {
    files: Option<Arc<dyn SidecarFiles>>,
    cursors: Lock<BTreeMap<String, Cursor>>,
}

impl Cursors {
    /// Reads the cursors, and adds those of new targets: they are told of what comes after the current revision and after
    /// `transition`, the last event of a source or certificate. Cursors of targets that are no longer configured are kept, because they may be configured again.
    pub(super) fn open<'n>(
        store: &Store,
        transition: u64,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<Self, StoreError> {
        let current = store.snapshot().revision;
        let files = store.sidecars();
        let follows = "notifications continue after the current revision";
        let mut cursors: BTreeMap<String, Cursor> = state_files::read(files.as_deref(), FILE, MOST_BYTES, follows)?;
        for name in names {
            let newest = Cursor { revision: current, parts: 0, transition };
            let cursor = cursors.entry(name.to_owned()).or_insert(newest);
            // The file of the events may have been removed.
            cursor.transition = cursor.transition.min(transition);
            if cursor.revision > current {
                tracing::warn!(
                    to = name,
                    "the store is at revision {current}, before the last notification about revision {}; notifications \
                     continue after the current revision",
                    cursor.revision
                );
                *cursor = Cursor { revision: current, parts: 0, ..*cursor };
            }
        }
        let cursors = Self { files, cursors: Lock::new(cursors) };
        if let Err(error) = cursors.save(&cursors.cursors.lock()) {
            tracing::warn!("cannot save the progress of notifications: {}", escaped(&error.to_string()));
        }
        Ok(cursors)
    }

    /// The cursor of a target.
    pub(super) fn get(&self, name: &str) -> Cursor {
        self.cursors.lock().get(name).copied().unwrap_or_default()
    }

    /// The last event of a source or certificate of which all of these targets have been told.
    pub(super) fn least_transition(&self, names: &[String]) -> u64 {
        let cursors = self.cursors.lock();
        names.iter().filter_map(|name| cursors.get(name)).map(|cursor| cursor.transition).min().unwrap_or_default()
    }

    /// Moves the cursor of a target. If it cannot be written, the target is notified again after a restart.
    pub(super) fn advance(&self, name: &str, cursor: Cursor) -> Result<(), StoreError> {
        let mut cursors = self.cursors.lock();
        cursors.insert(name.to_owned(), cursor);
        self.save(&cursors)
    }

    fn save(&self, cursors: &BTreeMap<String, Cursor>) -> Result<(), StoreError> {
        let Some(files) = &self.files else { return Ok(()) };
        let bytes = json::bytes(cursors, Secrets::Masked).map_err(StoreError::internal)?;
        files.write(FILE, &bytes)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_cursor_survives_a_restart_and_a_damaged_file_is_moved_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let open = |names: &[&str]| Cursors::open(&Store::open(&path).unwrap(), 3, names.iter().copied()).unwrap();
        let cursors = open(&["a", "b"]);
        assert_eq!(cursors.get("a"), Cursor { revision: 0, parts: 0, transition: 3 });
        // A later revision than that of the store is one of another store.
        cursors.advance("a", Cursor { revision: 0, parts: 2, transition: 1 }).unwrap();
        cursors.advance("b", Cursor { revision: 7, parts: 0, transition: 9 }).unwrap();
        assert_eq!(open(&["a"]).get("b"), Cursor { revision: 7, parts: 0, transition: 9 });
        let cursors = open(&["a", "b"]);
        assert_eq!(cursors.get("a"), Cursor { revision: 0, parts: 2, transition: 1 });
        assert_eq!(cursors.get("b"), Cursor { revision: 0, parts: 0, transition: 3 });
        assert_eq!(cursors.least_transition(&["a".into(), "b".into()]), 1);
        fs::write(path.join(FILE), "{").unwrap();
        assert_eq!(open(&["a"]).get("a"), Cursor { revision: 0, parts: 0, transition: 3 });
        assert_eq!(fs::read_to_string(path.join("notifications.damaged")).unwrap(), "{");
    }
}
