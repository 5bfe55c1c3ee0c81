//! Tracks files that are open for writing, from file system events (D92).
//!
//! A write opens a file, and the event of closing it ends the write, in whichever process. A rename carries the state
//! to the new name. When the system says that it lost events, all files count as closed: the end of a write may be
//! among them, and [`write_quiescence`](super::write_quiescence) still has the modification times. Only Linux reports
//! the closing; elsewhere nothing counts as open.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use notify::event::{CreateKind, ModifyKind, RenameMode};
use notify::{Event, EventKind};

use crate::manifest::tree::FileStamp;
use crate::reconcile::prelude::*;

/// Whether the system reports that a written file is closed. Elsewhere every change would look unfinished.
const REPORTS_CLOSE: bool = cfg!(any(target_os = "linux", target_os = "android"));
/// How long the last event of a file that nobody writes is kept.
const KEPT: Duration = Duration::from_secs(60);

/// The last event of each file, shared by the watch and the loop.
#[derive(Debug, Default)]
pub(crate) struct OpenWrites {
    files: Lock<HashMap<PathBuf, LastEvent>>,
}

/// The last event of a file or folder.
#[derive(Debug)]
struct LastEvent {
    at: Instant,
    /// Whether the file was written since it was last closed.
    is_open: bool,
}

impl OpenWrites {
    /// Records an event.
    pub(crate) fn note(&self, event: &Event, at: Instant) {
        let mut files = self.files.lock();
        if event.need_rescan() {
            // The end of a write may be among the lost events.
            files.values_mut().for_each(|it| it.is_open = false);
        }
        if let (EventKind::Modify(ModifyKind::Name(RenameMode::Both)), [from, to]) =
            (event.kind, event.paths.as_slice())
        {
            // The writer continues under the new name.
            let is_open = files.remove(from).is_some_and(|it| it.is_open);
            files.insert(from.clone(), LastEvent { at, is_open: false });
            files.insert(to.clone(), LastEvent { at, is_open });
            return;
        }
        for path in &event.paths {
            let was_open = files.get(path).is_some_and(|it| it.is_open);
            let is_open = match event.kind {
                EventKind::Modify(ModifyKind::Data(_)) => true,
                EventKind::Create(CreateKind::File) => is_new(path),
                EventKind::Modify(ModifyKind::Metadata(_) | ModifyKind::Name(RenameMode::From)) => was_open,
                _ => false,
            };
            files.insert(path.clone(), LastEvent { at, is_open: is_open && REPORTS_CLOSE });
        }
    }

    /// The files that are still being written, by device and inode: several paths can lead to one. Each has the time of
    /// its last event.
    pub(super) fn open(&self, now: Instant) -> HashMap<(u64, u64), Instant> {
        let mut open = HashMap::new();
        self.files.lock().retain(|path, it| {
            if !it.is_open {
                return now.saturating_duration_since(it.at) < KEPT;
            }
            let stamp = FileStamp::at(path);
            open.extend(stamp.map(|stamp| (stamp.identity, it.at)));
            stamp.is_some()
        });
        open
    }

    /// How long ago the last event was of a path or a folder above it, if that is known.
    pub(in crate::reconcile) fn quiet_for(&self, path: &Path, now: Instant) -> Option<Duration> {
        let path = std::path::absolute(path).ok()?;
        let files = self.files.lock();
        let last = path.ancestors().filter_map(|above| files.get(above)).map(|it| it.at).max()?;
        Some(now.saturating_duration_since(last))
    }
}

/// Whether a file was just created to be written. A link to a file or a pipe is created, too, and never closed.
fn is_new(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|facts| facts.is_file() && facts.len() == 0 && facts.nlink() == 1)
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used)]
mod tests {
    use notify::event::{AccessKind, AccessMode, DataChange, MetadataKind, RemoveKind};

    use super::*;

    const MODIFY: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));
    const CLOSE: EventKind = EventKind::Access(AccessKind::Close(AccessMode::Write));

    #[test]
    fn a_file_is_open_from_its_first_write_until_it_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("a.yaml"), folder.path().join("b.yaml"));
        let (writes, now) = (OpenWrites::default(), Instant::now());
        let note = |kind: EventKind, path: &Path| writes.note(&Event::new(kind).add_path(path.to_owned()), now);
        let is_open = || writes.open(now).len() == 1;
        fs::write(&file, "").unwrap();
        for (kind, expected) in [
            (EventKind::Create(CreateKind::File), true),
            (CLOSE, false),
            (MODIFY, true),
            (EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any)), true),
            (CLOSE, false),
            (EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any)), false),
            (MODIFY, true),
            (EventKind::Modify(ModifyKind::Name(RenameMode::To)), false),
            (MODIFY, true),
            (EventKind::Remove(RemoveKind::File), false),
        ] {
            note(kind, &file);
            assert_eq!(is_open(), expected, "{kind:?}");
        }
        fs::write(&file, "linked").unwrap();
        note(EventKind::Create(CreateKind::File), &file);
        assert!(!is_open(), "a file that comes with its content");
        note(MODIFY, &file);
        fs::rename(&file, &other).unwrap();
        note(EventKind::Modify(ModifyKind::Name(RenameMode::From)), &file);
        note(EventKind::Modify(ModifyKind::Name(RenameMode::To)), &other);
        let both = Event::new(EventKind::Modify(ModifyKind::Name(RenameMode::Both)));
        writes.note(&both.add_path(file.clone()).add_path(other.clone()), now);
        assert!(is_open(), "it is written under its new name");
        note(CLOSE, &other);
        assert!(!is_open());
        note(MODIFY, &other);
        fs::remove_file(&other).unwrap();
        assert!(!is_open(), "it is gone");
    }

    #[test]
    fn what_happens_to_a_folder_happens_to_what_is_in_it() {
        let (writes, now) = (OpenWrites::default(), Instant::now());
        let later = now + Duration::from_secs(1);
        let gone = Event::new(EventKind::Remove(RemoveKind::Folder)).add_path("/m/shop".into());
        writes.note(&gone, now);
        assert_eq!(writes.quiet_for(Path::new("/m/shop/one.yaml"), later), Some(Duration::from_secs(1)));
        assert_eq!(writes.quiet_for(Path::new("/m/one.yaml"), later), None);
        writes.open(now + KEPT);
        assert_eq!(writes.quiet_for(Path::new("/m/shop/one.yaml"), later), None, "it is forgotten");
    }
}
