//! Manifests in a commit of a Git repository, read without a work tree and without running Git.
//!
//! A few kilobytes of objects can stand for any number of paths, bytes and links, so all of these are bounded, and sizes are
//! known before anything is read.

use std::cell::{Cell, RefCell};
use std::path::{Component, Path};

use git2::{ObjectType, Oid, Repository};

use super::provenance;
use super::ref_suggestions::list_existing;
use super::repository::{absolute, commit, discover, root_of};
use crate::files::folder_of;
use crate::manifest::prelude::*;
use crate::manifest::resolve::origin::ManifestFile;
use crate::manifest::tree::cancellation::StopCheck;
use crate::manifest::tree::contents::{manifest_file, value_of};
use crate::manifest::tree::faults::{Unsearched, no_manifest, outside, outside_manifest, unreadable};
use crate::manifest::tree::ignore_rules::{IGNORE_FILE, IgnoreRules};
use crate::manifest::tree::limits::{
    MOST_DEPTH, MOST_FILES, MOST_MANIFEST_BYTES, MOST_TOTAL_BYTES, too_deep, too_large, too_many,
};
use crate::manifest::tree::manifest_tree::{GitCommitDetails, Tree, TreeFiles};
use crate::manifest::tree::paths::{is_hidden, is_manifest, normalize, outside_of};
use crate::manifest::tree::source_values::SourceValues;

#[cfg(test)]
mod tests;

/// A path with more links than this is treated as a loop.
const MOST_LINKS: usize = 16;
/// The size limit of the target of a link, which is that of a path.
const MOST_LINK_BYTES: u64 = 4096;
/// The mode of a symbolic link.
const LINK: i32 = 0o120_000;
/// The reason for a path that does not exist.
const MISSING: &str = "no such file or folder";

/// Files and folders of a commit.
pub struct CommitTree {
    repository: Lock<Repository>,
    /// The folder of the work tree.
    root: PathBuf,
    id: Oid,
    /// The revision as given.
    revision: String,
    /// Each path as given, and relative to the repository.
    paths: Vec<(PathBuf, PathBuf)>,
    /// The repository, for errors: nothing if the paths tell which one it is.
    pub(super) repository_name: String,
    /// Whether this is the older of two revisions.
    is_older: bool,
    /// Whether manifests and values may be read from files outside the paths (D28, D50).
    pub allow_outside_files: bool,
    /// The values of a followed source that the commit does not have.
    pub(super) values: Option<Arc<SourceValues>>,
    /// Ends a listing early.
    pub(super) stop: StopCheck,
}

impl fmt::Debug for CommitTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommitTree({} {})", self.revision, self.id)
    }
}

impl CommitTree {
    /// Paths inside a repository at a commit. Files have their names in the repository.
    pub(super) fn at(repository: Repository, id: Oid, revision: String, inside: &[PathBuf]) -> Self {
        let (root, repository_name, stop) = (root_of(&repository), String::new(), StopCheck::default());
        let paths = inside.iter().map(|path| normalize(path)).map(|path| (path.clone(), path)).collect();
        let repository = Lock::new(repository);
        let (is_older, allow_outside_files, values) = (false, false, None);
        Self { repository, root, id, revision, paths, repository_name, is_older, allow_outside_files, values, stop }
    }

    /// Opens the paths at a revision.
    pub fn open(revision: &str, paths: &[PathBuf]) -> Result<Self, Diagnostic> {
        let here = PathBuf::from(".");
        let repository = discover(paths.first().unwrap_or(&here))?;
        let id = commit(&repository, revision)?;
        let root = root_of(&repository);
        let inside = |path: &PathBuf| {
            let whole = absolute(path);
            // Links can be followed only in the part of the path that still exists.
            let there = whole.ancestors().find(|path| path.exists()).unwrap_or(&whole);
            let rest = whole.strip_prefix(there).unwrap_or(Path::new(""));
            let real = there.canonicalize().unwrap_or_else(|_| there.to_owned());
            let real = if rest.as_os_str().is_empty() { real } else { real.join(rest) };
            match real.strip_prefix(&root) {
                Ok(inside) => Ok((path.clone(), inside.to_owned())),
                Err(_) => Err(unreadable(path.display(), "not in the same repository as the other paths")),
            }
        };
        let paths = paths.iter().map(inside).collect::<Result<_, _>>()?;
        Ok(Self { paths, ..Self::at(repository, id, revision.to_owned(), &[]) })
    }

    /// The refusal of a value file.
    fn outside(&self, name: &str) -> Fault {
        self.values.as_ref().map_or_else(|| outside(name), |values| values.outside(name))
    }

    /// Marks the older of two revisions: file names start with the revision, to tell them from those of the other
    /// one, and a path that is missing or has no manifests is empty, because it can be new in the other one.
    #[must_use]
    pub fn older(self) -> Self {
        Self { is_older: true, ..self }
    }

    fn named(&self, path: &Path) -> String {
        // The top folder of a repository.
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        if self.is_older { format!("{}:{}", self.revision, path.display()) } else { path.display().to_string() }
    }

    /// Like [`Self::named`], with the repository, for errors that concern a whole path of the source.
    fn placed(&self, path: &Path) -> String {
        let named = self.named(path);
        match self.repository_name.as_str() {
            "" => named,
            repository => format!("{named} of {repository} at `{}`", self.revision),
        }
    }

    /// Calls `run` with the files of the commit.
    fn with<R, E: From<String>>(&self, run: impl FnOnce(&Files<'_>) -> Result<R, E>) -> Result<R, E> {
        let repository = self.repository.lock();
        let root = repository.find_commit(self.id).map(|commit| commit.tree_id()).map_err(message_of)?;
        let (stop, seen, folders) = (&self.stop, Cell::default(), RefCell::default());
        let files = Files { repository: &repository, root, stop, seen, folders };
        run(&files)
    }
}

impl Tree for CommitTree {
    fn manifests(&self) -> TreeFiles {
        let (mut files, mut diagnostics) = (Vec::new(), Vec::new());
        for (shown, inside) in &self.paths {
            let walked = self.with(|tree| {
                let entry = match tree.find(inside) {
                    Ok(entry) => entry,
                    Err(reason) if reason == MISSING && self.is_older => return Ok((Walk::default(), Vec::new())),
                    Err(reason) if reason == MISSING => {
                        return Err(Unsearched::AtEntry(reason + &tree.instead_of(inside)));
                    }
                    Err(reason) => return Err(reason.into()),
                };
                let folder = entry.kind == ObjectType::Tree;
                let root = if folder { entry.path.clone() } else { tree.find(folder_of(inside))?.path };
                let mut walk = Walk { root, anywhere: self.allow_outside_files, ..Walk::default() };
                if folder {
                    walk.open.push(entry.path.clone());
                    (walk.top, walk.ignored) = (shown.clone(), tree.ignored(&entry, &walk)?);
                    tree.walk(&entry, shown, &mut walk)?;
                } else if walk.allows(&entry) {
                    walk.found.push((shown.clone(), entry));
                } else {
                    walk.outside.push(shown.clone());
                }
                let read = walk.found.iter().map(|(shown, entry)| {
                    tree.visit(0).map_err(Unsearched::AtLimit)?;
                    let about = |reason: String| if folder { format!("{}: {reason}", shown.display()) } else { reason };
                    Ok(tree.read(entry).map_err(about)?)
                });
                let read = read.collect::<Result<Vec<_>, Unsearched>>()?;
                Ok((walk, read))
            });
            let (Walk { root, found, outside, .. }, read) = match walked {
                Ok(walked) => walked,
                Err(end) => {
                    diagnostics.push(end.diagnostic(self.placed(shown)));
                    continue;
                }
            };
            if found.is_empty() && outside.is_empty() && !self.is_older {
                diagnostics.push(no_manifest(self.placed(shown)));
            }
            diagnostics.extend(outside.iter().map(|path| outside_manifest(Path::new(&self.named(path)), &root)));
            for ((shown, entry), bytes) in found.into_iter().zip(read) {
                let name = self.named(&shown);
                match manifest_file(name, bytes, folder_of(&entry.path), &root) {
                    Ok(file) => files.push(file),
                    Err(fault) => diagnostics.push(fault),
                }
            }
        }
        (files, diagnostics)
    }

    fn commit(&self) -> Option<String> {
        Some(self.id.to_string())
    }

    fn commit_details(&self) -> GitCommitDetails {
        let repository = self.repository.lock();
        provenance::details(&repository, self.id)
    }

    fn file(&self, manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        let path = normalize(&manifest.folder.join(name));
        let root = normalize(&manifest.root);
        if Path::new(name).is_absolute() || (!self.allow_outside_files && !path.starts_with(&root)) {
            return Err(self.outside(name));
        }
        let found = self.with(|tree| -> Result<_, String> {
            let entry = tree.find(&path)?;
            let bytes = tree.read(&entry)?;
            Ok((entry.path, bytes))
        });
        match (found, &self.values) {
            (Ok((real, _)), _) if !self.allow_outside_files && !real.starts_with(&root) => Err(self.outside(name)),
            (Ok((_, bytes)), _) => value_of(name, &path, Ok(bytes)),
            (Err(reason), Some(values)) if reason == MISSING => values.read(name),
            (Err(reason), _) => value_of(name, &path, Err(format!("{reason} in {}", self.revision))),
        }
    }

    fn identity(&self, name: &str) -> PathBuf {
        let label = format!("{}:", self.revision);
        let name = if self.is_older { name.strip_prefix(label.as_str()).unwrap_or(name) } else { name };
        let path = Path::new(name);
        // The work tree can have other links than the commit, so the path is not looked up there.
        let below = self.paths.iter().find_map(|(shown, inside)| Some(inside.join(path.strip_prefix(shown).ok()?)));
        let inside = normalize(below.as_deref().unwrap_or(path));
        self.with(|tree| tree.find(&inside).map(|entry| entry.path)).unwrap_or(inside)
    }

    /// Paths are relative to the top of the repository, wherever edgewright runs.
    fn token_file(&self, manifest: &ManifestFile, file: PathBuf) -> Result<PathBuf, Fault> {
        outside_of(&self.root.join(&manifest.root), &self.root.join(&manifest.folder).join(file))
    }
}

/// The state of a walk below a path.
#[derive(Default)]
struct Walk {
    /// The given folder, or the folder of the given file.
    root: PathBuf,
    anywhere: bool,
    /// The path to show of the given folder.
    top: PathBuf,
    /// The parts of the folder that are left out.
    ignored: IgnoreRules,
    /// The folders on the current path, to detect links that loop.
    open: Vec<PathBuf>,
    /// Each manifest's path to show and entry.
    found: Vec<(PathBuf, GitTreeEntry)>,
    /// The paths to show of links that lead outside the root (D50).
    outside: Vec<PathBuf>,
    /// The total size of the manifests found.
    total: u64,
}

impl Walk {
    fn allows(&self, entry: &GitTreeEntry) -> bool {
        self.anywhere || entry.path.starts_with(&self.root)
    }

    /// Whether a path to show is left out.
    fn leaves_out(&self, shown: &Path, kind: ObjectType) -> bool {
        let inside = shown.strip_prefix(&self.top).unwrap_or(shown);
        self.ignored.leaves_out(inside, kind == ObjectType::Tree)
    }
}

/// The files of a commit.
struct Files<'r> {
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
struct GitTreeEntry {
    path: PathBuf,
    id: Oid,
    kind: ObjectType,
}

impl<'r> Files<'r> {
    /// Counts entries, and checks whether to go on.
    fn visit(&self, entries: usize) -> Result<(), String> {
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
    fn target(&self, link: Oid) -> Result<String, String> {
        if self.size(link)? > MOST_LINK_BYTES {
            return Err(format!("a link is longer than {MOST_LINK_BYTES} bytes"));
        }
        String::from_utf8(self.blob(link)?).map_err(|_| MISSING.to_owned())
    }

    /// Resolves a path through links. Each part counts as an entry, because a link can lead anywhere.
    fn find(&self, path: &Path) -> Result<GitTreeEntry, String> {
        let mut path = normalize(path);
        'links: for _ in 0..=MOST_LINKS {
            let mut here = GitTreeEntry { path: PathBuf::new(), id: self.root, kind: ObjectType::Tree };
            let mut parts = path.components().filter(|part| !matches!(part, Component::CurDir));
            while let Some(part) = parts.next() {
                self.visit(1)?;
                let missing = || MISSING.to_owned();
                if here.kind != ObjectType::Tree {
                    return Err(missing());
                }
                let folder = self.folder(here.id)?;
                // git2 panics at a NUL byte.
                let name = part.as_os_str().to_str().filter(|name| !name.contains('\0')).ok_or_else(missing)?;
                let entry = folder.get_name(name).ok_or_else(missing)?;
                if entry.filemode() == LINK {
                    let mut leads = normalize(&here.path.join(self.target(entry.id())?));
                    leads.extend(parts);
                    if leads.is_absolute() || leads.starts_with("..") {
                        return Err("a link leads outside the repository".into());
                    }
                    path = normalize(&leads);
                    continue 'links;
                }
                let kind = entry.kind().unwrap_or(ObjectType::Any);
                here = GitTreeEntry { path: here.path.join(name), id: entry.id(), kind };
            }
            return Ok(here);
        }
        Err("symbolic links form a loop".into())
    }

    /// Lists what the last existing folder of a path has.
    fn instead_of(&self, path: &Path) -> String {
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

    fn read(&self, entry: &GitTreeEntry) -> Result<Vec<u8>, String> {
        match entry.kind {
            ObjectType::Blob => self.blob(entry.id),
            _ => Err("not a file".into()),
        }
    }

    /// The patterns of the ignore file in a folder, if there is one.
    fn ignored(&self, folder: &GitTreeEntry, walk: &Walk) -> Result<IgnoreRules, String> {
        let path = folder.path.join(IGNORE_FILE);
        let name = path.display().to_string();
        let entry = match self.find(&path) {
            Ok(entry) => entry,
            Err(reason) if reason == MISSING => return Ok(IgnoreRules::default()),
            Err(reason) => return Err(format!("{name}: {reason}")),
        };
        if !walk.allows(&entry) {
            return Err(format!("{name}: a link leads outside the folder"));
        }
        let bytes = self.read(&entry).map_err(|reason| format!("{name}: {reason}"))?;
        IgnoreRules::read(&name, bytes).map_err(|unusable| format!("{name}: {}", unusable.message))
    }

    /// Collects the manifests below a folder. The function is long because all kinds of entries are cases of one table: their
    /// order decides.
    fn walk(&self, folder: &GitTreeEntry, shown: &Path, walk: &mut Walk) -> Result<(), Unsearched> {
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
                true => self.find(&folder.path.join(name)).map_err(about)?,
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
