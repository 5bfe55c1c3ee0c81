//! The folders that are watched. A watch belongs to a folder and not to its path, so a folder that is swapped, moved or
//! made again is watched anew.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use notify::{
    EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode, ModifyKind},
};

/// How often the watches are made anew in a row, when the folders change meanwhile.
const ATTEMPTS: usize = 3;

/// Watches for files and folders, wherever their paths lead.
pub struct Folders {
    watcher: RecommendedWatcher,
    paths: Vec<PathBuf>,
    /// What was watched, path by path.
    watched: Vec<Watched>,
    /// Set when one of the paths, or a folder above it, has come or gone. An inode alone does not tell: it may be given
    /// to the next folder.
    moved: Arc<AtomicBool>,
    changed: Arc<dyn Fn() + Send + Sync>,
}

/// What a path was when its watch was made.
#[derive(PartialEq)]
struct Watched {
    /// The nearest folder above it that exists: there it is seen coming and going.
    above: PathBuf,
    above_is: Option<Identity>,
    is: Option<Identity>,
}

/// Where a path leads, and device and inode of what is there.
type Identity = (PathBuf, u64, u64);

impl Folders {
    /// Watches paths, and calls `changed` with each event. The folder that a path is in must exist.
    pub fn watch(paths: &[PathBuf], changed: impl Fn() + Send + Sync + 'static) -> notify::Result<Self> {
        let paths: Vec<PathBuf> = paths.iter().filter(|path| path.as_os_str() != "-").cloned().collect();
        if let Some(path) = paths.iter().find(|path| !parent_of(path).is_dir()) {
            return Err(notify::Error::path_not_found().add_path(parent_of(path)));
        }
        let (changed, moved) = (Arc::new(changed) as Arc<dyn Fn() + Send + Sync>, Arc::new(AtomicBool::new(false)));
        let (watcher, watched) = establish(&paths, &changed, &moved)?;
        Ok(Self { watcher, paths, watched, moved, changed })
    }

    /// Makes the watches anew if a path leads somewhere else than before.
    pub fn refresh(&mut self) {
        for _ in 0..ATTEMPTS {
            let moved = self.moved.swap(false, Ordering::AcqRel);
            let now: Vec<Watched> = self.paths.iter().map(|path| Watched::of(path)).collect();
            if !moved && now == self.watched {
                return;
            }
            match establish(&self.paths, &self.changed, &self.moved) {
                Ok((watcher, watched)) => {
                    // The old watches end after the new ones have begun.
                    self.watcher = watcher;
                    self.watched = watched;
                }
                Err(error) => {
                    tracing::warn!(%error, "the manifests cannot be watched; they are read every 30 seconds");
                    self.moved.store(true, Ordering::Release);
                    return;
                }
            }
        }
    }
}

fn establish(
    paths: &[PathBuf],
    changed: &Arc<dyn Fn() + Send + Sync>,
    moved: &Arc<AtomicBool>,
) -> notify::Result<(RecommendedWatcher, Vec<Watched>)> {
    let whole: Vec<PathBuf> = paths.iter().map(|path| absolute(path)).collect();
    let (changed, moved) = (Arc::clone(changed), Arc::clone(moved));
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if let Ok(event) = event {
            // Reading the manifests opens them: of all accesses only the end of a write means anything.
            if matches!(event.kind, EventKind::Access(kind) if kind != AccessKind::Close(AccessMode::Write)) {
                return;
            }
            let comes_or_goes = matches!(
                event.kind,
                EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_))
            );
            if comes_or_goes && event.paths.iter().any(|at| whole.iter().any(|path| path.starts_with(at))) {
                moved.store(true, Ordering::Release);
            }
        }
        changed();
    })?;
    let mut watched = Vec::new();
    for path in paths {
        // What the path is comes before the watch: if it changes in between, the next look sees the difference.
        let now = Watched::of(path);
        // Editors replace files, and releases swap links: both are seen in the folder above.
        watcher.watch(&now.above, RecursiveMode::NonRecursive)?;
        if path.is_dir() {
            watcher.watch(path, RecursiveMode::Recursive)?;
        }
        watched.push(now);
    }
    Ok((watcher, watched))
}

impl Watched {
    fn of(path: &Path) -> Self {
        let above = nearest_above(path);
        Self { above_is: identity(&above), above, is: identity(path).filter(|_| path.is_dir()) }
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let facts = fs::metadata(path).ok()?;
    Some((path.canonicalize().ok()?, facts.dev(), facts.ino()))
}

fn nearest_above(path: &Path) -> PathBuf {
    let parent = parent_of(path);
    if parent.is_dir() {
        return parent;
    }
    let parent = absolute(&parent);
    parent.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

fn parent_of(path: &Path) -> PathBuf {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.map_or_else(|| PathBuf::from("."), PathBuf::from)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
