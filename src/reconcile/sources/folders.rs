//! The watched folders. A watch belongs to a folder and not to its path, so a folder that is swapped, moved or
//! recreated needs a new watch.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Config, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::reconcile::prelude::*;
use crate::{files::folder_of, manifest::tree::absolute, reconcile::sync_loop::open_writes::OpenWrites};

/// The most attempts to create the watches if the folders change meanwhile.
const ATTEMPTS: usize = 3;

/// Watches for files and folders. A path may be a link. Links below it are not followed, so that a watch never leaves its
/// folder: what they lead to inside the folder is watched there, and runs read nothing else unless that was allowed.
pub(crate) struct Folders {
    /// None before the first [`refresh`](Self::refresh), and while the system has no watches left.
    _watcher: Option<RecommendedWatcher>,
    paths: Vec<PathBuf>,
    /// The state of each path when its watch was created.
    watched: Vec<WatchedPath>,
    /// Set when a path or a parent folder is created or removed. The inode alone is not enough, because a new folder may
    /// reuse it.
    moved: Arc<AtomicBool>,
    /// Why the watches could not be created the last time. It is logged once, not with every sync.
    failure: Option<String>,
    writes: Arc<OpenWrites>,
    changed: Arc<dyn Fn() + Send + Sync>,
}

/// The state of a path when its watch was created.
#[derive(Clone, PartialEq)]
struct WatchedPath {
    /// The nearest existing parent folder, where its creation and removal are seen.
    above: PathBuf,
    above_is: Option<FileId>,
    is: Option<FileId>,
}

/// A resolved path with its device and inode.
type FileId = (PathBuf, u64, u64);

impl Folders {
    /// Prepares watches for paths, which note each event in `writes` and call `changed`. The first
    /// [`refresh`](Self::refresh) creates them.
    pub(crate) fn new(paths: &[PathBuf], writes: Arc<OpenWrites>, changed: impl Fn() + Send + Sync + 'static) -> Self {
        let paths: Vec<PathBuf> = paths.iter().filter(|path| path.as_os_str() != "-").cloned().collect();
        let moved = Arc::new(AtomicBool::new(!paths.is_empty()));
        let (watched, changed) = (Vec::new(), Arc::new(changed));
        Self { _watcher: None, paths, watched, moved, failure: None, writes, changed }
    }

    /// Whether a path resolves differently than when it was watched. A link above the path can be swapped without an
    /// event in a watched folder.
    pub(crate) fn have_moved(&self) -> bool {
        self.resolve() != self.watched
    }

    /// Creates the watches, again if a path resolves differently than before. Paths that do not exist yet are watched from the
    /// nearest folder above them that does. A large folder takes long. `source` is named in the log.
    pub(crate) fn refresh(&mut self, source: &str) {
        for _ in 0..ATTEMPTS {
            let moved = self.moved.swap(false, Ordering::AcqRel);
            let now = self.resolve();
            if !moved && now == self.watched {
                return;
            }
            // Recorded before the watches: if a path changes in between, the next check sees the difference.
            self.watched = now;
            match self.establish() {
                Ok(watcher) => {
                    // The new watches start before the old ones end.
                    self._watcher = Some(watcher);
                    self.failure = None;
                }
                Err(error) => {
                    // A folder that cannot be watched can often be read. The next sync tries again.
                    let error = error.to_string();
                    if self.failure.as_ref() != Some(&error) {
                        tracing::warn!(
                            source,
                            %error,
                            "cannot watch the manifests; reading them at each interval instead"
                        );
                        self.failure = Some(error);
                    }
                    self.moved.store(true, Ordering::Release);
                    return;
                }
            }
        }
    }

    fn resolve(&self) -> Vec<WatchedPath> {
        self.paths.iter().map(|path| WatchedPath::resolve(path)).collect()
    }

    /// Creates the watches for the paths as they were resolved last.
    fn establish(&self) -> notify::Result<RecommendedWatcher> {
        let whole: Vec<PathBuf> = self.paths.iter().map(|path| absolute(path)).collect();
        let (writes, changed, moved) = (Arc::clone(&self.writes), Arc::clone(&self.changed), Arc::clone(&self.moved));
        let handle = move |event: notify::Result<notify::Event>| {
            let Ok(event) = event else {
                // A new folder may not be watched, because a limit is reached: the next sync tries again, and says so.
                moved.store(true, Ordering::Release);
                return changed();
            };
            // Reading the manifests also causes access events, so only the end of a write counts.
            if matches!(event.kind, EventKind::Access(kind) if kind != AccessKind::Close(AccessMode::Write)) {
                return;
            }
            let comes_or_goes = matches!(
                event.kind,
                EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_))
            );
            // Events were lost: a folder may have come that is not watched.
            if event.need_rescan() {
                moved.store(true, Ordering::Release);
            }
            let is_above = |at: &PathBuf| whole.iter().any(|path| path.starts_with(at));
            if comes_or_goes && event.paths.iter().any(is_above) {
                moved.store(true, Ordering::Release);
            }
            // The folder above may hold logs, or anything else that changes all the time.
            let is_near = |at: &PathBuf| whole.iter().any(|path| path.starts_with(at) || at.starts_with(path));
            if !event.paths.is_empty() && !event.paths.iter().any(is_near) {
                return;
            }
            writes.note(&event, Instant::now());
            changed();
        };
        let mut watcher = RecommendedWatcher::new(handle, Config::default().with_follow_symlinks(false))?;
        // Editors replace files, and releases swap links: both events are in the parent folder.
        for path in &self.watched {
            watcher.watch(&path.above, RecursiveMode::NonRecursive)?;
        }
        // Last: a folder that is also above another path stays watched with all below it.
        for path in self.paths.iter().filter(|path| path.is_dir()) {
            // With the dot, a path that is a link names the folder behind it, and events still have the path.
            watcher.watch(&path.join("."), RecursiveMode::Recursive)?;
        }
        Ok(watcher)
    }
}

impl WatchedPath {
    fn resolve(path: &Path) -> Self {
        let above = nearest_above(path);
        // A file counts, too: it may be a link through a link that is swapped, as in a mounted ConfigMap.
        Self { above_is: identity(&above), above, is: identity(path) }
    }
}

fn identity(path: &Path) -> Option<FileId> {
    let facts = fs::metadata(path).ok()?;
    Some((path.canonicalize().ok()?, facts.dev(), facts.ino()))
}

fn nearest_above(path: &Path) -> PathBuf {
    let parent = folder_of(path);
    if parent.is_dir() {
        return parent.to_owned();
    }
    absolute(parent).ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    /// Much longer than an event takes.
    const LONG: Duration = Duration::from_secs(20);

    fn watch(path: PathBuf) -> Folders {
        let mut folders = Folders::new(&[path], Arc::new(OpenWrites::default()), || {});
        folders.refresh("shop");
        folders
    }

    /// Watches paths. Returns the watches, what they note, and a message for each event.
    fn watch_events(paths: &[PathBuf]) -> (Folders, Arc<OpenWrites>, Receiver<()>) {
        let (sender, events) = channel();
        let (writes, changed) = (Arc::new(OpenWrites::default()), move || {
            let _ = sender.send(());
        });
        let mut folders = Folders::new(paths, Arc::clone(&writes), changed);
        folders.refresh("shop");
        (folders, writes, events)
    }

    /// Whether there was an event of a path.
    fn has_seen(writes: &OpenWrites, path: &Path) -> bool {
        writes.quiet_for(path, Instant::now()).is_some()
    }

    #[test]
    fn a_file_behind_a_link_that_is_swapped_has_moved() {
        let folder = tempfile::tempdir().unwrap();
        let mount = |name: &str| folder.path().join(name);
        for version in ["..1", "..2"] {
            fs::create_dir(mount(version)).unwrap();
            fs::write(mount(version).join("cm.yaml"), version).unwrap();
        }
        symlink("..1", mount("..data")).unwrap();
        symlink("..data/cm.yaml", mount("cm.yaml")).unwrap();
        let mut folders = watch(mount("cm.yaml"));
        assert!(!folders.have_moved());
        symlink("..2", mount("..next")).unwrap();
        fs::rename(mount("..next"), mount("..data")).unwrap();
        assert!(folders.have_moved());
        folders.refresh("shop");
        assert!(!folders.have_moved());
    }

    #[test]
    fn a_folder_is_watched_after_a_link_to_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::create_dir(&real).unwrap();
        symlink("real", &link).unwrap();
        let (_folders, writes, events) = watch_events(&[folder.path().to_owned()]);
        fs::remove_file(&link).unwrap();
        fs::write(real.join("a.yaml"), "a").unwrap();
        while !has_seen(&writes, &real.join("a.yaml")) {
            events.recv_timeout(LONG).unwrap();
        }
    }

    #[test]
    fn a_path_that_is_a_link_is_watched_with_all_that_is_behind_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("real/below")).unwrap();
        let link = folder.path().join("link");
        symlink("real", &link).unwrap();
        let (_folders, writes, events) = watch_events(std::slice::from_ref(&link));
        fs::write(folder.path().join("real/below/a.yaml"), "a").unwrap();
        // The files of a source have the path by which it was given.
        while !has_seen(&writes, &link.join("below/a.yaml")) {
            events.recv_timeout(LONG).unwrap();
        }
    }

    #[test]
    fn what_is_outside_is_not_watched_through_a_link() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = folder.path().join("link");
        symlink(outside.path(), &link).unwrap();
        let (_folders, writes, events) = watch_events(&[folder.path().to_owned()]);
        fs::write(outside.path().join("a.yaml"), "a").unwrap();
        let own = folder.path().join("a.yaml");
        fs::write(&own, "a").unwrap();
        // Events come in order.
        while !has_seen(&writes, &own) {
            events.recv_timeout(LONG).unwrap();
        }
        assert!(!has_seen(&writes, &link.join("a.yaml")));
    }

    #[test]
    fn a_folder_that_is_above_another_path_is_watched_with_its_new_folders() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("below");
        fs::create_dir(&below).unwrap();
        let (_folders, _, events) = watch_events(&[folder.path().to_owned(), below]);
        let new = folder.path().join("new");
        fs::create_dir(&new).unwrap();
        events.recv_timeout(LONG).unwrap();
        let began = Instant::now();
        // The new folder is watched a moment after its event.
        while events.try_recv().is_err() {
            fs::write(new.join("a.yaml"), "a").unwrap();
            std::thread::sleep(Duration::from_millis(10));
            assert!(began.elapsed() < LONG);
        }
    }

    #[test]
    fn a_path_whose_parent_folders_come_later_is_watched() {
        let folder = tempfile::tempdir().unwrap();
        let parent = folder.path().join("a/b");
        let mut folders = watch(parent.join("c"));
        assert!(!folders.have_moved());
        fs::create_dir_all(&parent).unwrap();
        assert!(folders.have_moved());
        folders.refresh("shop");
        fs::create_dir(parent.join("c")).unwrap();
        assert!(folders.have_moved());
    }
}
