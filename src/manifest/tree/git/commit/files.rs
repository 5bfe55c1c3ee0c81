//! The files of a commit: paths are resolved through links, and folders are searched for manifests.

use std::cell::{Cell, RefCell};
use std::path::{Component, Path};

use git2::{ObjectType, Oid, Repository};

use crate::manifest::prelude::*;
use crate::manifest::tree::cancellation::StopCheck;
use crate::manifest::tree::faults::Unsearched;
use crate::manifest::tree::git::ref_suggestions::list_existing;
use crate::manifest::tree::ignore_rules::{IGNORE_FILE, IgnoreRules};
use crate::manifest::tree::limits::{
    MOST_DEPTH, MOST_FILES, MOST_MANIFEST_BYTES, MOST_TOTAL_BYTES, too_deep, too_large, too_many,
};
use crate::manifest::tree::paths::{is_hidden, is_manifest, normalize};

/// A path with more links than this is treated as a loop.
const MOST_LINKS: usize = 16;
/// The size limit of the target of a link, which is that of a path.
const MOST_LINK_BYTES: u64 = 4096;
/// The mode of a symbolic link.
pub(super) const LINK: i32 = 0o120_000;

/// Why a path cannot be found in a commit.
pub(super) enum PathFault {
    /// Nothing has the path.
    Missing,
    Unreadable(String),
}

impl From<String> for PathFault {
    fn from(reason: String) -> Self {
        Self::Unreadable(reason)
    }
}

impl From<PathFault> for String {
    fn from(fault: PathFault) -> Self {
        match fault {
            PathFault::Missing => "no such file or folder".to_owned(),
            PathFault::Unreadable(reason) => reason,
        }
    }
}

/// The state of a walk below a path.
#[derive(Default)]
pub(super) struct Walk {
    /// The given folder, or the folder of the given file.
    pub root: PathBuf,
    /// Whether links may lead out of it.
    pub anywhere: bool,
    /// The path to show of the given folder.
    pub top: PathBuf,
    /// The parts of the folder that are left out.
    pub ignored: IgnoreRules,
    /// The folders on the current path, to detect links that loop.
    pub open: Vec<PathBuf>,
    /// Each manifest's path to show and entry.
    pub found: Vec<(PathBuf, GitTreeEntry)>,
    /// The paths to show of links that lead outside the root (D50).
    pub outside: Vec<PathBuf>,
    /// The total size of the manifests found.
    pub total: u64,
}

impl Walk {
    pub(super) fn allows(&self, entry: &GitTreeEntry) -> bool {
        self.anywhere || entry.path.starts_with(&self.root)
    }

    /// Whether a path to show is left out.
    fn leaves_out(&self, shown: &Path, kind: ObjectType) -> bool {
        let inside = shown.strip_prefix(&self.top).unwrap_or(shown);
        self.ignored.leaves_out(inside, kind == ObjectType::Tree)
    }
}

/// The files of a commit.
pub(super) struct Files<'r> {
    repository: &'r Repository,
    /// The top folder.
    root: Oid,
    stop: &'r StopCheck,
    /// The number of entries seen: a few trees that contain each other many times stand for any number of paths.
    seen: Cell<usize>,
    /// The folders that paths led through. libgit2 parses a large one again each time.
    folders: RefCell<BTreeMap<Oid, git2::Tree<'r>>>,
}

/// An entry of a commit with its resolved path.
pub(super) struct GitTreeEntry {
    pub path: PathBuf,
    id: Oid,
    pub kind: ObjectType,
}

impl<'r> Files<'r> {
    /// The files of a commit, for a reading that can be stopped.
    pub(super) fn of_commit(repository: &'r Repository, id: Oid, stop: &'r StopCheck) -> Result<Self, String> {
        let root = repository.find_commit(id).map(|commit| commit.tree_id()).map_err(message_of)?;
        Ok(Self { repository, root, stop, seen: Cell::default(), folders: RefCell::default() })
    }

    /// Counts entries, and checks whether to go on.
    pub(super) fn visit(&self, entries: usize) -> Result<(), String> {
        self.seen.set(self.seen.get().saturating_add(entries));
        self.stop.check(self.seen.get())
    }

    /// The size of an object, which is not read. Refuses one that is too large.
    fn size(&self, id: Oid) -> Result<u64, String> {
        let (size, _) = self.repository.odb().and_then(|odb| odb.read_header(id)).map_err(message_of)?;
        if size as u64 > MOST_MANIFEST_BYTES {
            return Err(too_large().to_string());
        }
        Ok(size as u64)
    }

    /// An object that is a folder.
    fn tree(&self, id: Oid) -> Result<git2::Tree<'r>, String> {
        self.size(id)?;
        self.repository.find_tree(id).map_err(message_of)
    }

    /// A folder that a path leads through.
    fn folder(&self, id: Oid) -> Result<git2::Tree<'r>, String> {
        if let Some(known) = self.folders.borrow().get(&id) {
            return Ok(known.clone());
        }
        let folder = self.tree(id)?;
        self.visit(folder.len())?;
        self.folders.borrow_mut().insert(id, folder.clone());
        Ok(folder)
    }

    /// The target of a link.
    fn target(&self, link: Oid) -> Result<String, PathFault> {
        if self.size(link)? > MOST_LINK_BYTES {
            return Err(format!("a link is longer than {MOST_LINK_BYTES} bytes").into());
        }
        String::from_utf8(self.blob(link)?).map_err(|_| PathFault::Missing)
    }

    /// Resolves a path through links. Each part counts as an entry, because a link can lead anywhere.
    pub(super) fn find(&self, path: &Path) -> Result<GitTreeEntry, PathFault> {
        let mut path = normalize(path);
        'links: for _ in 0..=MOST_LINKS {
            let mut here = GitTreeEntry { path: PathBuf::new(), id: self.root, kind: ObjectType::Tree };
            let mut parts = path.components().filter(|part| !matches!(part, Component::CurDir));
            while let Some(part) = parts.next() {
                self.visit(1)?;
                if here.kind != ObjectType::Tree {
                    return Err(PathFault::Missing);
                }
                let folder = self.folder(here.id)?;
                // git2 panics at a NUL byte.
                let name = part.as_os_str().to_str().filter(|name| !name.contains('\0')).ok_or(PathFault::Missing)?;
                let entry = folder.get_name(name).ok_or(PathFault::Missing)?;
                if entry.filemode() == LINK {
                    let mut leads = normalize(&here.path.join(self.target(entry.id())?));
                    leads.extend(parts);
                    if leads.is_absolute() || leads.starts_with("..") {
                        return Err("a link leads outside the repository".to_owned().into());
                    }
                    path = normalize(&leads);
                    continue 'links;
                }
                let kind = entry.kind().unwrap_or(ObjectType::Any);
                here = GitTreeEntry { path: here.path.join(name), id: entry.id(), kind };
            }
            return Ok(here);
        }
        Err("symbolic links form a loop".to_owned().into())
    }

    /// Lists what the last existing folder of a path has.
    pub(super) fn instead_of(&self, path: &Path) -> String {
        let path = normalize(path);
        let found = path.ancestors().skip(1).find_map(|folder| {
            let tree = self.folder(self.find(folder).ok()?.id).ok()?;
            let wanted = path.strip_prefix(folder).ok()?.iter().next()?.to_str()?;
            let names = tree.iter().filter_map(|item| item.name().ok().map(str::to_owned));
            let names: Vec<String> = names.filter(|name| !is_hidden(name)).collect();
            let holder = match folder.as_os_str().is_empty() {
                true => "the top folder".to_owned(),
                false => format!("`{}`", folder.display()),
            };
            Some(list_existing(&holder, wanted, names.iter().map(String::as_str)))
        });
        found.unwrap_or_default()
    }

    fn blob(&self, id: Oid) -> Result<Vec<u8>, String> {
        self.size(id)?;
        self.repository.find_blob(id).map(|blob| blob.content().to_vec()).map_err(message_of)
    }

    pub(super) fn read(&self, entry: &GitTreeEntry) -> Result<Vec<u8>, String> {
        match entry.kind {
            ObjectType::Blob => self.blob(entry.id),
            _ => Err("not a file".into()),
        }
    }

    /// The patterns of the ignore file in a folder, if there is one.
    pub(super) fn ignored(&self, folder: &GitTreeEntry, walk: &Walk) -> Result<IgnoreRules, String> {
        let path = folder.path.join(IGNORE_FILE);
        let name = path.display().to_string();
        let entry = match self.find(&path) {
            Ok(entry) => entry,
            Err(PathFault::Missing) => return Ok(IgnoreRules::default()),
            Err(PathFault::Unreadable(reason)) => return Err(format!("{name}: {reason}")),
        };
        if !walk.allows(&entry) {
            return Err(format!("{name}: a link leads outside the folder"));
        }
        let bytes = self.read(&entry).map_err(|reason| format!("{name}: {reason}"))?;
        IgnoreRules::read(&name, bytes).map_err(|unusable| format!("{name}: {}", unusable.message))
    }

    /// Collects the manifests below a folder. The function is long because all kinds of entries are cases of one table: their
    /// order decides.
    pub(super) fn walk(&self, folder: &GitTreeEntry, shown: &Path, walk: &mut Walk) -> Result<(), Unsearched> {
        let tree = self.tree(folder.id)?;
        for item in &tree {
            self.visit(1).map_err(Unsearched::AtLimit)?;
            let Ok(name) = item.name() else {
                refuse_name(&item, shown)?;
                continue;
            };
            if is_hidden(name) {
                continue;
            }
            let shown = shown.join(name);
            let about = |reason: String| format!("{}: {reason}", shown.display());
            let entry = match item.filemode() == LINK {
                true => self.find(&folder.path.join(name)).map_err(|fault| about(fault.into()))?,
                false => GitTreeEntry {
                    path: folder.path.join(name),
                    id: item.id(),
                    kind: item.kind().unwrap_or(ObjectType::Any),
                },
            };
            match entry.kind {
                kind if walk.leaves_out(&shown, kind) => {}
                ObjectType::Tree if !walk.allows(&entry) => walk.outside.push(shown),
                ObjectType::Blob if !walk.allows(&entry) && is_manifest(name) => walk.outside.push(shown),
                // Any other file outside matters only if a manifest references it.
                ObjectType::Blob if !walk.allows(&entry) => {}
                ObjectType::Tree if is_manifest(name) => {
                    return Err(about("has a manifest extension but is not a regular file".into()).into());
                }
                ObjectType::Tree if walk.open.contains(&entry.path) => {
                    return Err(about("links to a parent folder".into()).into());
                }
                ObjectType::Tree if walk.open.len() >= MOST_DEPTH => {
                    return Err(Unsearched::AtLimit(about(too_deep())));
                }
                // Skipping it would delete the resources of its manifests.
                ObjectType::Commit => {
                    return Err(
                        about("is a submodule, which is not read; add its files to the repository".into()).into()
                    );
                }
                ObjectType::Tree => {
                    walk.open.push(entry.path.clone());
                    self.walk(&entry, &shown, walk)?;
                    walk.open.pop();
                }
                ObjectType::Blob if is_manifest(name) => {
                    walk.total += self.size(entry.id).map_err(about)?;
                    walk.found.push((shown, entry));
                    if walk.found.len() > MOST_FILES || walk.total > MOST_TOTAL_BYTES {
                        return Err(Unsearched::AtLimit(too_many(folder.path.display()).message));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn message_of(error: git2::Error) -> String {
    error.message().to_owned()
}

/// Refuses an entry whose name is not UTF-8, if it matters.
fn refuse_name(item: &git2::TreeEntry<'_>, folder: &Path) -> Result<(), String> {
    let name = String::from_utf8_lossy(item.name_bytes()).into_owned();
    let is_folder = item.kind() == Some(ObjectType::Tree);
    // A link may lead to a folder.
    let matters = is_folder || item.filemode() == LINK || is_manifest(&name);
    if is_hidden(&name) || !matters {
        return Ok(());
    }
    let what = if is_folder { "folder" } else { "file" };
    Err(format!("{}: {what} name is not UTF-8", folder.join(name).display()))
}
