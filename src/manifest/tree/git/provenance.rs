//! The Git commit of the files read from the disk, and whether the commit contains them unchanged (D29).
//!
//! # The problem
//!
//! A revision names the commit that it was made from. If the work tree has changes, or a value comes from a file that
//! Git ignores, nobody can find in that commit what was applied.
//!
//! # The idea
//!
//! [`ReadTracker`] notes each file as it was read, by its path, its real path and its stamp. The commit counts as clean
//! only if the paths have no uncommitted changes, and the commit contains every file that was read, as it was read.
//! Otherwise it gets the suffix `-dirty`.
//!
//! For example, an ignored `secrets/key.pem` that a manifest takes makes a revision `-dirty`, although `git status`
//! shows nothing.
//!
//! # What it never does
//!
//! It records no commit that is not that of all paths, and none for standard input. Environment variables do not count:
//! no commit has them.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use git2::{IndexEntry, IndexEntryExtendedFlag, IndexEntryFlag, Oid, Repository, Status, StatusOptions};

use super::repository::discover;
use crate::manifest::prelude::*;
use crate::manifest::tree::file_stamp::{FileStamp, NotedFile};
use crate::manifest::tree::manifest_tree::GitCommitDetails;
use crate::model::CommitAuthor;
use crate::syntax::text::beginning;

/// The most characters of an author's name and email address.
const MOST_CHARS: usize = 255;
/// The most characters of a commit's message.
const MOST_MESSAGE_CHARS: usize = 120;

/// The files that were read since the manifests were last listed.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReadTracker(Arc<Lock<TrackedReads>>);

#[derive(Debug, Default)]
struct TrackedReads {
    /// The commit that was checked out before the first file was read.
    head: Option<Oid>,
    /// Each reading of a file. This is a list, because it is made in each sync: only the last reading of a path counts.
    files: Vec<TrackedRead>,
}

/// A reading of a file.
#[derive(Debug)]
pub(crate) struct TrackedRead {
    /// The path that it was read by: what that leads to can be replaced.
    pub path: Arc<OsStr>,
    /// The resolved path.
    pub real: Arc<OsStr>,
    pub stamp: Option<FileStamp>,
}

impl ReadTracker {
    /// Clears the record of earlier reads.
    pub(crate) fn begin(&self, paths: &[PathBuf]) {
        let head = Checkout::discover(paths).map(|checkout| checkout.head);
        *self.0.lock() = TrackedReads { head, ..TrackedReads::default() };
    }

    /// Records a reading.
    pub(crate) fn note(&self, read: TrackedRead) {
        self.0.lock().files.push(read);
    }

    /// The files by the paths that they were read by, sorted.
    pub(crate) fn files(&self) -> Vec<NotedFile> {
        let log = self.0.lock();
        let noted = |read: &TrackedRead| read.stamp.map(|stamp| NotedFile { path: Arc::clone(&read.path), stamp });
        let mut files: Vec<NotedFile> = log.files.iter().rev().filter_map(noted).collect();
        // The last reading of a path comes first, and a sort keeps that.
        files.sort_by(|one, other| one.path.cmp(&other.path));
        files.dedup_by(|one, other| one.path == other.path);
        files
    }

    /// The checked-out commit of paths, if it is the same for all of them; with the suffix `-dirty` if the paths have
    /// uncommitted changes, or a file was read that the commit does not have.
    pub(crate) fn commit(&self, paths: &[PathBuf]) -> Option<String> {
        let checkout = Checkout::discover(paths)?;
        let log = self.0.lock();
        // Another commit was checked out meanwhile, so the files may come from either.
        let moved = log.head.is_some_and(|head| head != checkout.head);
        let has_all = || {
            let last: BTreeMap<&OsStr, _> = log.files.iter().map(|read| (&*read.real, read.stamp)).collect();
            last.into_iter().all(|(file, stamp)| checkout.has(Path::new(file), stamp))
        };
        let dirty = checkout.is_dirty()? || moved || !has_all();
        Some(if dirty { format!("{}-dirty", checkout.head) } else { checkout.head.to_string() })
    }
}

/// Returns the details of the checked-out commit of paths.
pub(crate) fn details_of(paths: &[PathBuf]) -> GitCommitDetails {
    let checkout = Checkout::discover(paths);
    let tree = checkout.as_ref().and_then(|checkout| Some((checkout.head, checkout.trees.first()?)));
    tree.map(|(head, tree)| details(&tree.repository, head)).unwrap_or_default()
}

/// Returns the details of a commit, as recorded in it.
pub(super) fn details(repository: &Repository, id: Oid) -> GitCommitDetails {
    let Ok(commit) = repository.find_commit(id) else { return GitCommitDetails::default() };
    GitCommitDetails { author: Some(author(&commit)), message: first_line(commit.message_bytes()), tag: None }
}

/// Returns the first line of a commit's message without control characters, or the beginning of a long one.
fn first_line(message: &[u8]) -> Option<String> {
    let message = String::from_utf8_lossy(message);
    let line = message.lines().map(str::trim).find(|line| !line.is_empty())?;
    let text: String = line.chars().filter(|c| !c.is_control()).take(MOST_MESSAGE_CHARS + 1).collect();
    Some(beginning(&text, MOST_MESSAGE_CHARS).into_owned()).filter(|text| !text.is_empty())
}

fn author(commit: &git2::Commit<'_>) -> CommitAuthor {
    let author = commit.author();
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        text.chars().filter(|c| !c.is_control()).take(MOST_CHARS).collect::<String>()
    };
    CommitAuthor { name: text(author.name_bytes()), email: text(author.email_bytes()) }
}

/// The repositories of paths, all at one commit.
struct Checkout {
    head: Oid,
    trees: Vec<WorkTree>,
}

/// A work tree, and the given paths in it.
struct WorkTree {
    repository: Repository,
    /// The resolved path of the work tree.
    root: PathBuf,
    paths: Vec<PathBuf>,
}

impl Checkout {
    /// Returns `None` if a path is outside Git, or the paths are at different commits.
    fn discover(paths: &[PathBuf]) -> Option<Self> {
        let mut trees: Vec<WorkTree> = Vec::new();
        for path in paths {
            // A link can lead into another repository, whose commit counts.
            let path = path.canonicalize().ok()?;
            if !may_be_in_git(&path) {
                return None;
            }
            let repository = discover(&path).ok()?;
            match trees.iter_mut().find(|tree| tree.repository.path() == repository.path()) {
                Some(tree) => tree.paths.push(path),
                None => {
                    let root = repository.workdir()?.canonicalize().ok()?;
                    trees.push(WorkTree { repository, root, paths: vec![path] });
                }
            }
        }
        let head = |tree: &WorkTree| Some(tree.repository.head().ok()?.peel_to_commit().ok()?.id());
        let heads: BTreeSet<Oid> = trees.iter().map(head).collect::<Option<_>>()?;
        (heads.len() == 1).then_some(Self { head: heads.into_iter().next()?, trees })
    }

    /// Whether the paths have uncommitted changes; none if a path is outside its repository.
    fn is_dirty(&self) -> Option<bool> {
        self.trees.iter().try_fold(false, |is_dirty, tree| Some(is_dirty || tree.is_dirty()?))
    }

    /// Whether the commit contains a file as it was read.
    fn has(&self, file: &Path, read: Option<FileStamp>) -> bool {
        read.is_some() && read == FileStamp::at(file) && self.trees.iter().any(|tree| tree.has(file))
    }
}

impl WorkTree {
    /// Whether the paths have uncommitted changes. Only the paths are compared.
    fn is_dirty(&self) -> Option<bool> {
        let inside = self.paths.iter().map(|path| path.strip_prefix(&self.root).ok()).collect::<Option<Vec<_>>>()?;
        let mut options = StatusOptions::new();
        options.include_untracked(true).include_ignored(false).exclude_submodules(true).disable_pathspec_match(true);
        // Without a path filter the whole repository is compared, which is right only for its top folder.
        if !inside.iter().any(|path| path.as_os_str().is_empty()) {
            for path in inside {
                options.pathspec(path);
            }
        }
        // If the status cannot be read, assume changes.
        Some(!self.repository.statuses(Some(&mut options)).is_ok_and(|statuses| statuses.is_empty()))
    }

    /// Whether the checked-out commit contains a file. The status omits ignored files, and files marked as assumed
    /// unchanged or skipped.
    fn has(&self, file: &Path) -> bool {
        let Ok(inside) = file.strip_prefix(&self.root) else { return false };
        if inside.as_os_str().is_empty() {
            return false;
        }
        // The repository reads its index once.
        match self.repository.index().ok().and_then(|index| index.get_path(inside, 0)) {
            None => false,
            Some(entry) if is_unchecked(&entry) => false,
            // The status of the paths covers it.
            Some(_) if self.paths.iter().any(|path| file.starts_with(path)) => true,
            Some(_) => self.repository.status_file(inside).is_ok_and(|status| status == Status::CURRENT),
        }
    }
}

/// Whether one of the folders of a resolved path may be a work tree or a bare repository. If none is, the library is not
/// started, which reads the certificate authorities of the system first.
fn may_be_in_git(path: &Path) -> bool {
    let is_missing = |path: PathBuf| {
        let found = fs::symlink_metadata(path);
        found.is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
    };
    path.ancestors().any(|folder| !is_missing(folder.join(".git")) || !is_missing(folder.join("HEAD")))
}

fn is_unchecked(entry: &IndexEntry) -> bool {
    let skipped = IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
    entry.flags & IndexEntryFlag::VALID.bits() != 0 || entry.flags_extended & skipped != 0
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::{first_line, may_be_in_git};

    #[test]
    fn a_folder_inside_of_a_work_tree_or_a_bare_repository_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("a/b");
        fs::create_dir_all(&inside).unwrap();
        for name in [".git", "HEAD"] {
            // A work tree can have a file, too.
            let path = folder.path().join(name);
            fs::write(&path, "gitdir: elsewhere").unwrap();
            assert!(may_be_in_git(&inside) && may_be_in_git(&path), "{name}");
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_message_is_its_first_line_without_control_characters_and_bounded() {
        let of = |message: &str| first_line(message.as_bytes());
        assert_eq!(of("\n  Fix the \u{1b}[31mlogin\u{7} \r\n\nbody\n").as_deref(), Some("Fix the [31mlogin"));
        assert_eq!((of(""), of("\n \n"), of("\u{1}\n")), (None, None, None));
        assert_eq!(of(&"ä".repeat(120)), Some("ä".repeat(120)));
        assert_eq!(of(&"ä".repeat(1 << 16)), Some(format!("{}…", "ä".repeat(120))));
        assert_eq!(first_line(b"a\xffb").as_deref(), Some("a\u{fffd}b"));
    }
}
