//! The watched folders. A watch belongs to a folder and not to its path, so a folder that is swapped, moved or
//! recreated needs a new watch.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::reconcile::prelude::*;
use crate::{files::folder_of, manifest::tree::absolute, reconcile::sync_loop::open_writes::OpenWrites};

/// The most attempts to create the watches if the folders change meanwhile.
const ATTEMPTS: usize = 3;

/// Watches for files and folders, through links.
pub(crate) struct Folders {
    watcher: RecommendedWatcher,
    paths: Vec<PathBuf>,
    /// The state of each path when its watch was created.
    watched: Vec<WatchedPath>,
    /// Set when a path, a parent folder or a link in a folder is created or removed. The inode alone is not enough, because a
    /// new folder may reuse it.
    moved: Arc<AtomicBool>,
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
    /// Watches paths, notes each event in `writes`, and calls `changed`. Paths that do not exist yet are watched from the
    /// nearest folder above them that does.
    pub(crate) fn watch(
        paths: &[PathBuf],
        writes: Arc<OpenWrites>,
        changed: impl Fn() + Send + Sync + 'static,
    ) -> notify::Result<Self> {
        let paths: Vec<PathBuf> = paths.iter().filter(|path| path.as_os_str() != "-").cloned().collect();
        let (changed, moved) = (Arc::new(changed) as Arc<dyn Fn() + Send + Sync>, Arc::new(AtomicBool::new(false)));
        let now: Vec<WatchedPath> = paths.iter().map(|path| WatchedPath::resolve(path)).collect();
        let (watcher, watched) = match establish(&paths, &writes, &changed, &moved) {
            Ok(established) => established,
            Err(_) => {
                // The first sync tries again and reports the reason. A folder that cannot be watched can often be read.
                moved.store(true, Ordering::Release);
                (establish(&[], &writes, &changed, &moved)?.0, now)
            }
        };
        Ok(Self { watcher, paths, watched, moved, writes, changed })
    }

    /// Whether a path resolves differently than when it was watched. A link above the path can be swapped without an
    /// event in a watched folder.
    pub(crate) fn have_moved(&self) -> bool {
        self.paths.iter().map(|path| WatchedPath::resolve(path)).ne(self.watched.iter().cloned())
    }

    /// Recreates the watches if a path resolves differently than before. `source` is named in the log.
    pub(crate) fn refresh(&mut self, source: &str) {
        for _ in 0..ATTEMPTS {
            let moved = self.moved.swap(false, Ordering::AcqRel);
            let now: Vec<WatchedPath> = self.paths.iter().map(|path| WatchedPath::resolve(path)).collect();
            if !moved && now == self.watched {
                return;
            }
            match establish(&self.paths, &self.writes, &self.changed, &self.moved) {
                Ok((watcher, watched)) => {
                    // The new watches start before the old ones end.
                    self.watcher = watcher;
                    self.watched = watched;
                }
                Err(error) => {
                    tracing::warn!(source, %error, "cannot watch the manifests; reading them at each interval instead");
                    self.moved.store(true, Ordering::Release);
                    return;
                }
            }
        }
    }
}

fn establish(
    paths: &[PathBuf],
    writes: &Arc<OpenWrites>,
    changed: &Arc<dyn Fn() + Send + Sync>,
    moved: &Arc<AtomicBool>,
) -> notify::Result<(RecommendedWatcher, Vec<WatchedPath>)> {
    let whole: Vec<PathBuf> = paths.iter().map(|path| absolute(path)).collect();
    let links: HashSet<PathBuf> = whole.iter().flat_map(|path| links_below(path)).collect();
    let (writes, changed, moved) = (Arc::clone(writes), Arc::clone(changed), Arc::clone(moved));
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return changed() };
        // Reading the manifests also causes access events, so only the end of a write counts.
        if matches!(event.kind, EventKind::Access(kind) if kind != AccessKind::Close(AccessMode::Write)) {
            return;
        }
        let comes_or_goes =
            matches!(event.kind, EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
        // A folder and a link to it share a watch, which ends with the link.
        let is_link = |at: &PathBuf| links.contains(at) || at.is_symlink();
        let is_above = |at: &PathBuf| whole.iter().any(|path| path.starts_with(at));
        if comes_or_goes && event.paths.iter().any(|at| is_above(at) || is_link(at)) {
            moved.store(true, Ordering::Release);
        }
        // The folder above may hold logs, or anything else that changes all the time.
        let is_near = |at: &PathBuf| whole.iter().any(|path| path.starts_with(at) || at.starts_with(path));
        if !event.paths.is_empty() && !event.paths.iter().any(is_near) {
            return;
        }
        writes.note(&event, Instant::now());
        changed();
    })?;
    let mut watched = Vec::new();
    for path in paths {
        // Record the path's state before the watch: if it changes in between, the next check sees the difference.
        let now = WatchedPath::resolve(path);
        // Editors replace files, and releases swap links: both events are in the parent folder.
        watcher.watch(&now.above, RecursiveMode::NonRecursive)?;
        if path.is_dir() {
            watcher.watch(path, RecursiveMode::Recursive)?;
        }
        watched.push(now);
    }
    Ok((watcher, watched))
}

/// The links below a path.
fn links_below(path: &Path) -> Vec<PathBuf> {
    let (mut links, mut folders) = (Vec::new(), vec![path.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => links.push(entry.path()),
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ => {}
            }
        }
    }
    links
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

    use super::*;

    fn watch(path: PathBuf) -> Folders {
        Folders::watch(&[path], Arc::new(OpenWrites::default()), || {}).unwrap()
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
        let (sender, events) = std::sync::mpsc::channel();
        let changed = move || {
            let _ = sender.send(());
        };
        let paths = [folder.path().to_owned()];
        let mut folders = Folders::watch(&paths, Arc::new(OpenWrites::default()), changed).unwrap();
        fs::remove_file(&link).unwrap();
        while !folders.moved.load(Ordering::Acquire) {
            events.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
        }
        folders.refresh("shop");
        while events.try_recv().is_ok() {}
        fs::write(real.join("a.yaml"), "a").unwrap();
        events.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
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
