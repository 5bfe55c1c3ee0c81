//! Files below one folder, opened relative to its handle (D50).
//!
//! # The problem
//!
//! The author of a manifest chooses its links and the paths of its values. A link to `/proc/self/environ` would print
//! the secrets of the pipeline that checks the manifest. Checking where a path leads before opening it is not enough: a
//! link can be swapped in between.
//!
//! # The idea
//!
//! A [`Jail`] holds a handle of the root, and opens everything relative to it, so that the kernel resolves each part of
//! a path below the root. What was opened is then asked for its real path, which is that of the open file and not of a
//! name. A link that leaves the root and comes back, such as an absolute link into the same tree, is resolved once more
//! and opened by its path below the root.
//!
//! For example, `certs/ca.pem -> ../../etc/passwd` is [`AccessError::Outside`], and `current -> releases/42` above the
//! root is fine: the given path is trusted, and only what is below it is not.
//!
//! # What it never does
//!
//! - It never reads in `.git`, not even if the root is there or files outside are allowed: that is not part of what is
//!   reviewed, and can contain credentials.
//! - It opens nothing that could wait for a writer, such as a FIFO, and reads only regular files.
//! - It does not search hidden files and folders for manifests, or what [`IgnoreRules`] leave out. Links and
//!   `from_file` can lead there, as mounted volumes with `..data` do.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _};

use super::cancellation::StopCheck;
use super::faults::{
    Unsearched, inside_git, looping, no_file, not_utf8, outside_manifest, refused_manifest, unopened, with_similar,
};
use super::file_stamp::FileStamp;
use super::ignore_rules::{IGNORE_FILE, IgnoreRules, MOST_IGNORE_BYTES};
use super::limits::{MOST_DEPTH, MOST_ENTRIES, too_deep};
use super::paths::{is_hidden, is_manifest};
use crate::files::folder_of;
use crate::model::{Diagnostic, Fault};

/// Opens a FIFO without waiting for a writer.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

/// Why a file or folder cannot be read.
#[derive(Debug)]
pub(super) enum AccessError {
    /// The path is outside the root.
    Outside,
    /// The path is inside `.git`, which can contain credentials.
    Git,
    /// The path is a folder, a device, a FIFO or a socket.
    NotAFile,
    /// The operating system's error.
    Io(io::Error),
}

impl From<io::Error> for AccessError {
    fn from(error: io::Error) -> Self {
        // cap-std marks an escape by its kind only; a system error also has a number.
        let escape = error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none();
        if escape { AccessError::Outside } else { AccessError::Io(error) }
    }
}

impl AccessError {
    /// The reason why the file of a value cannot be read, or the error if it must not be: `outside` is that of a file outside
    /// the folder.
    pub(super) fn reason(self, name: &str, outside: impl FnOnce() -> Fault) -> Result<String, Fault> {
        match self {
            AccessError::Outside => Err(outside()),
            AccessError::Git => Err(inside_git(name)),
            AccessError::NotAFile => Ok("not a regular file".to_owned()),
            AccessError::Io(error) => Ok(error.to_string()),
        }
    }

    /// Converts the refusal into an error about a manifest or folder below `root`.
    pub(super) fn diagnostic(self, path: &Path, root: &Path) -> Diagnostic {
        match self {
            AccessError::Outside => outside_manifest(path, root),
            AccessError::Git => refused_manifest(path, "leads into `.git`, which can contain credentials")
                .help("move the manifests out of `.git`, or remove the link"),
            AccessError::NotAFile => no_file(path),
            AccessError::Io(error) => unopened(path, &error),
        }
    }
}

/// A file that was read.
pub(super) struct ReadFile {
    /// The content.
    pub bytes: Vec<u8>,
    /// The resolved path.
    pub real: PathBuf,
    /// The stamp of the file when it was opened.
    pub stamp: Option<FileStamp>,
}

/// The name of an entry of a folder, and whether it is a regular file and no link, as far as the folder tells.
type FolderEntry = (OsString, bool);

/// A folder and the permission to read outside it.
pub(super) struct Jail {
    /// The folder's path.
    pub root: PathBuf,
    dir: Dir,
    allow_outside: bool,
    /// The patterns that the search leaves out.
    ignored: IgnoreRules,
}

impl Jail {
    /// Opens a folder. Its path is trusted, including links in it.
    pub(super) fn new(root: &Path, allow_outside: bool) -> io::Result<Self> {
        let dir = Dir::open_ambient_dir(root, ambient_authority())?;
        Ok(Self { root: root.to_owned(), dir, allow_outside, ignored: IgnoreRules::default() })
    }

    /// Reads which files of the folder the search leaves out, if the folder has such a file.
    fn read_ignored(&mut self) -> Result<(), Diagnostic> {
        let (inside, path) = (Path::new(IGNORE_FILE), self.root.join(IGNORE_FILE));
        match self.read(inside, MOST_IGNORE_BYTES) {
            Ok(file) => self.ignored = IgnoreRules::read(&path.display().to_string(), file.bytes)?,
            Err(AccessError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
            Err(refusal) => return Err(refusal.diagnostic(&path, &self.root)),
        }
        Ok(())
    }

    /// Reads a regular file, up to `most` bytes plus one.
    pub(super) fn read(&self, inside: &Path, most: u64) -> Result<ReadFile, AccessError> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(NONBLOCK);
        let jailed = |path: &Path| self.dir.open_with(path, &options).map(|file| file.into_std());
        let file = self.reach(inside, jailed, open_anywhere)?;
        let real = real_path(&file, &self.path_of(inside))?;
        refuse_git(&real)?;
        read_file(file, real, most)
    }

    /// Opens a path below the root, or anywhere if allowed.
    fn reach<T>(
        &self,
        inside: &Path,
        jailed: impl Fn(&Path) -> io::Result<T>,
        anywhere: impl FnOnce(&Path) -> io::Result<T>,
    ) -> Result<T, AccessError> {
        match jailed(or_here(inside)).map_err(AccessError::from) {
            Err(AccessError::Outside) => {}
            reached => return reached,
        }
        let path = self.path_of(inside);
        if self.allow_outside {
            return anywhere(&path).map_err(AccessError::from);
        }
        // cap-std treats every absolute link as an escape. This only guesses the path inside the root:
        // the following open is restricted to the root again.
        let (real, root) = (path.canonicalize()?, self.root.canonicalize()?);
        let rest = real.strip_prefix(&root).map_err(|_| AccessError::Outside)?;
        jailed(or_here(rest)).map_err(AccessError::from)
    }

    /// The path of a found file relative to the root.
    pub(super) fn inside<'p>(&self, path: &'p Path) -> &'p Path {
        // The root of a name without a folder is the current one.
        path.strip_prefix(&self.root).unwrap_or(path)
    }

    fn path_of(&self, inside: &Path) -> PathBuf {
        if inside.as_os_str().is_empty() { self.root.clone() } else { self.root.join(inside) }
    }

    fn metadata(&self, inside: &Path) -> Result<Metadata, AccessError> {
        let anywhere = |path: &Path| fs::metadata(path).map(Metadata::from_just_metadata);
        self.reach(inside, |path| self.dir.metadata(path), anywhere)
    }

    /// The device and inode of a folder, and its sorted entries.
    fn list(&self, inside: &Path) -> Result<((u64, u64), Vec<FolderEntry>), AccessError> {
        let folder = self.reach(
            inside,
            |path| self.dir.open_dir(path),
            |path| Dir::open_ambient_dir(path, ambient_authority()),
        )?;
        let real = real_path(&folder, &self.path_of(inside))?;
        refuse_git(&real)?;
        let facts = folder.dir_metadata()?;
        let mut entries = Vec::new();
        // One more than a search visits ends it.
        for entry in folder.entries()?.take(MOST_ENTRIES + 1) {
            let entry = entry?;
            entries.push((entry.file_name(), entry.file_type().is_ok_and(|it| it.is_file())));
        }
        entries.sort_unstable();
        Ok(((facts.dev(), facts.ino()), entries))
    }
}

/// A search for manifests in the folder of a jail.
struct Search<'j> {
    jail: &'j Jail,
    /// The folders on the path, to detect links that loop.
    above: Vec<(u64, u64)>,
    /// The number of entries seen: a few folders with links to each other stand for any number of paths.
    seen: usize,
    stop: &'j StopCheck,
    /// Why the search ended early.
    ended: Option<String>,
    found: Vec<PathBuf>,
    diagnostics: &'j mut Vec<Diagnostic>,
}

impl Search<'_> {
    /// Counts an entry. Returns whether to visit it.
    fn goes_on(&mut self) -> bool {
        self.seen += 1;
        if self.ended.is_none() {
            self.ended = self.stop.check(self.seen).err();
        }
        self.ended.is_none()
    }

    /// Finds manifests in a folder and its subfolders.
    fn walk(&mut self, inside: &Path) {
        let path = self.jail.path_of(inside);
        let (identity, entries) = match self.jail.list(inside) {
            Ok(listed) => listed,
            Err(refusal) => return self.diagnostics.push(refusal.diagnostic(&path, &self.jail.root)),
        };
        if self.above.contains(&identity) {
            return self.diagnostics.push(looping(&path, "it is a link to a parent folder"));
        }
        if self.above.len() >= MOST_DEPTH {
            return self.diagnostics.push(Unsearched::AtLimit(too_deep()).diagnostic(path.display()));
        }
        self.above.push(identity);
        for (name, is_file) in entries {
            if !self.goes_on() {
                break;
            }
            if is_hidden(&name.to_string_lossy()) {
                continue;
            }
            match is_file && name.to_str().is_some_and(is_manifest) {
                true if self.jail.ignored.leaves_out(&inside.join(&name), false) => {}
                true => self.found.push(path.join(&name)),
                false => self.visit(&inside.join(&name), &name),
            }
        }
        self.above.pop();
    }

    fn visit(&mut self, inside: &Path, name: &OsStr) {
        let (jail, path) = (self.jail, self.jail.path_of(inside));
        let metadata = jail.metadata(inside);
        if jail.ignored.leaves_out(inside, metadata.as_ref().is_ok_and(Metadata::is_dir)) {
            return;
        }
        let named = is_manifest(&name.to_string_lossy());
        if named && name.to_str().is_none() {
            return self.diagnostics.push(not_utf8("file", path.display()));
        }
        match metadata {
            Ok(it) if it.is_file() => self.found.extend(named.then_some(path)),
            Ok(it) => {
                if named {
                    self.diagnostics.push(no_file(&path));
                }
                match name.to_str() {
                    _ if !it.is_dir() => {}
                    // The names of its files would be shown wrongly, and two of them could look the same.
                    None => self.diagnostics.push(not_utf8("folder", path.display())),
                    Some(_) => self.walk(inside),
                }
            }
            // A folder outside may contain manifests, and skipping them would delete their resources. Any other file
            // matters only if a manifest references it.
            Err(AccessError::Outside) if !named && fs::metadata(&path).is_ok_and(|it| !it.is_dir()) => {}
            Err(refusal) => self.diagnostics.push(refusal.diagnostic(&path, &jail.root)),
        }
    }
}

/// The manifest files at or below a path, and the jail to read them in. The root is the folder itself, or the folder of
/// the file: a shell expands `*.yaml` to unchecked names.
pub(super) fn search(
    path: &Path,
    allow_outside: bool,
    stop: &StopCheck,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<(Jail, Vec<PathBuf>)> {
    let folder = path.is_dir();
    let root = if folder { path } else { folder_of(path) };
    let mut jail = match Jail::new(root, allow_outside) {
        Ok(jail) => jail,
        Err(error) => {
            diagnostics.push(with_similar(unopened(path, &error), path));
            return None;
        }
    };
    let mut found = Vec::new();
    if folder {
        // A folder that cannot be read has one error: that of the search.
        diagnostics.extend(jail.read_ignored().err().filter(|_| jail.list(Path::new("")).is_ok()));
        let mut search = Search { jail: &jail, above: Vec::new(), seen: 0, stop, ended: None, found, diagnostics };
        search.walk(Path::new(""));
        let ended = search.ended;
        found = search.found;
        diagnostics.extend(ended.map(|reason| Unsearched::AtLimit(reason).diagnostic(path.display())));
        return Some((jail, found));
    }
    match jail.metadata(jail.inside(path)) {
        Ok(it) if it.is_file() => found.push(path.to_owned()),
        Ok(_) => diagnostics.push(no_file(path)),
        Err(refusal) => diagnostics.push(with_similar(refusal.diagnostic(path, root), path)),
    }
    Some((jail, found))
}

/// The manifest files at or below a path, through any links.
pub(crate) fn find(path: &Path, diagnostics: &mut Vec<Diagnostic>) -> Vec<PathBuf> {
    search(path, true, &StopCheck::default(), diagnostics).map(|(_, found)| found).unwrap_or_default()
}

/// Reads a regular file anywhere but inside `.git`, up to `most` bytes plus one.
pub(super) fn read_anywhere(path: &Path, most: u64) -> Result<ReadFile, AccessError> {
    let file = open_anywhere(path)?;
    let real = real_path(&file, path)?;
    refuse_git(&real)?;
    read_file(file, real, most)
}

fn open_anywhere(path: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new().read(true).custom_flags(NONBLOCK).open(path)
}

/// The resolved path of an open file or folder. The name that it was opened by may lead elsewhere by now, so it counts
/// only where the system does not tell the path of a handle.
fn real_path(open: &impl AsRawFd, name: &Path) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", open.as_raw_fd())).or_else(|_| name.canonicalize())
}

/// Refuses what is inside `.git`, even if the root is.
fn refuse_git(real: &Path) -> Result<(), AccessError> {
    let is_git = |part: Component<'_>| part.as_os_str().eq_ignore_ascii_case(".git");
    if real.components().any(is_git) { Err(AccessError::Git) } else { Ok(()) }
}

/// Reads a regular file; reading a FIFO might never end.
fn read_file(file: fs::File, real: PathBuf, most: u64) -> Result<ReadFile, AccessError> {
    let facts = file.metadata()?;
    if !facts.is_file() {
        return Err(AccessError::NotAFile);
    }
    let stamp = FileStamp::from_metadata(&facts);
    let mut bytes = Vec::with_capacity(usize::try_from(facts.len().min(most)).unwrap_or_default() + 1);
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(ReadFile { bytes, real, stamp })
}

fn or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_link_without_end_is_to_be_removed() {
        let folder = tempfile::tempdir().unwrap();
        for (target, name) in [(".", "above"), ("itself", "itself")] {
            std::os::unix::fs::symlink(target, folder.path().join(name)).unwrap();
        }
        let mut diagnostics = Vec::new();
        assert!(find(folder.path(), &mut diagnostics).is_empty());
        let told = diagnostics.iter().map(|it| (it.message.rsplit('/').next(), it.help.as_deref()));
        let help = Some("remove the link");
        let expected = [
            (Some("above cannot be read: it is a link to a parent folder"), help),
            (Some("itself cannot be read: it is a link that leads to itself"), help),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_search_without_end_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: String| folder.path().join(name);
        // Each of the folders has two links to the next one, which makes 2^29 paths.
        for at in 0..30 {
            fs::create_dir(path(format!("d{at}"))).unwrap();
        }
        for at in 1..30 {
            for link in ["a", "b"] {
                std::os::unix::fs::symlink(format!("../d{at}"), path(format!("d{}/{link}", at - 1))).unwrap();
            }
        }
        let jail = Jail::new(folder.path(), false).unwrap();
        let ended = |seen: usize, stop: &StopCheck| {
            let (above, ended, found, mut diagnostics) = (Vec::new(), None, Vec::new(), Vec::new());
            let mut search = Search { jail: &jail, above, seen, stop, ended, found, diagnostics: &mut diagnostics };
            search.walk(Path::new(""));
            let ended = search.ended.unwrap();
            assert!(diagnostics.is_empty(), "{diagnostics:?}");
            ended
        };
        assert_eq!(ended(MOST_ENTRIES - 500, &StopCheck::default()), "more than 500000 files and folders");
        assert_eq!(ended(0, &StopCheck::new(|| true)), "interrupted");
    }
}
