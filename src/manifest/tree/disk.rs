//! Local files and folders, and standard input.

use std::{
    ffi::OsStr,
    io::Read,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use super::{
    MOST_FILES, MOST_MANIFEST_BYTES, MOST_TOTAL_BYTES, MOST_VALUE_BYTES, ReadingDepth, Tree, TreeFiles, inside_git,
    jail::{AccessError, FoundFile, Jail, ReadFile, read_anywhere, search},
    kept::{RetainedFile, RetainedFiles},
    kept_values::{KeptValue, KeptValues},
    manifest_file, no_manifest, outside, parent_of, plain,
    provenance::{NotedRead, Reads, author_of, message_of},
    stamp::{FileStamp, FileVersion, NotedFile},
    too_large, too_many, unreadable, value_of,
};
use crate::{
    manifest::origin::ManifestFile,
    model::{diagnostic::Diagnostic, fault::Fault, operation::CommitAuthor, secret::Secret},
};

/// Files and folders.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    /// Files, folders, or `-` for standard input.
    pub paths: Vec<PathBuf>,
    /// Whether manifests and values may be read from files outside the folders (D28, D50).
    pub allow_outside_files: bool,
    /// What was read, for the commit that a revision is recorded with.
    reads: Reads,
    /// The files of the last reading, if they are read again and again.
    pub(super) kept: RetainedFiles,
    /// The values that were read since.
    values: KeptValues,
}

/// The text of a file.
enum FoundText {
    /// It was read, by the path to show.
    Read(PathBuf, Box<ReadText>),
    /// It has not changed since an earlier reading. It has this stamp.
    Kept(Arc<RetainedFile>, FileStamp),
    /// It cannot be read.
    Refused(PathBuf, AccessError),
    /// There are too many bytes.
    Excess,
}

/// A file that was read.
struct ReadText {
    /// The resolved path.
    real: Arc<OsStr>,
    version: Option<FileVersion>,
    /// The time before it was opened.
    opened: SystemTime,
    /// The length in bytes.
    length: u64,
    /// The manifest; none if it is too large, or has the faults.
    file: Option<Arc<ManifestFile>>,
    faults: Vec<Diagnostic>,
}

impl ReadText {
    fn of(path: &Path, read: ReadFile, opened: SystemTime, root: &Path) -> Self {
        let ReadFile { bytes, real, version } = read;
        let (length, mut faults) = (bytes.len() as u64, Vec::new());
        let file = match length {
            0..=MOST_MANIFEST_BYTES => {
                manifest_file(path.display().to_string(), bytes, parent_of(path), root.to_owned(), &mut faults)
            }
            _ => None,
        };
        Self { real: real.into_os_string().into(), version, opened, length, file, faults }
    }
}

impl Disk {
    /// The manifests in files and folders; `-` is standard input.
    pub fn new<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self { paths: paths.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Reads all files. If they are read again and again, they are kept for the next reading, and `depth` tells whether those
    /// that have not changed are read.
    fn read_all(&self, depth: Option<&ReadingDepth>) -> TreeFiles {
        let mut diagnostics = Vec::new();
        let mut files = Vec::new();
        let mut total_of_others = 0u64;
        let earlier = self.kept.take();
        let (mut kept, mut seen) = (HashMap::with_capacity(earlier.len()), HashSet::with_capacity(earlier.len()));
        self.reads.begin(&self.paths);
        self.values.clear();
        for path in &self.paths {
            if path.as_os_str() == "-" {
                match read_whole(std::io::stdin()) {
                    Ok(bytes) => {
                        files.extend(manifest_file("-".into(), bytes, ".".into(), ".".into(), &mut diagnostics));
                    }
                    Err(error) => diagnostics.push(unreadable("standard input", error)),
                }
                continue;
            }
            let before = diagnostics.len();
            let Some((jail, found)) = search(path, self.allow_outside_files, &mut diagnostics) else { continue };
            if found.is_empty() && diagnostics.len() == before {
                diagnostics.push(no_manifest(path.display()));
            }
            if found.len() > MOST_FILES {
                diagnostics.push(too_many(path.display()));
                return (files, diagnostics);
            }
            let total = AtomicU64::new(total_of_others);
            let may_keep = || depth.is_some_and(|depth| !depth.is_full());
            let read = |FoundFile { path, listed }: FoundFile| {
                if total.load(Ordering::Relaxed) > MOST_TOTAL_BYTES {
                    return FoundText::Excess;
                }
                let known = earlier.get(path.as_os_str());
                if let (Some(listed), Some(known)) = (&listed, known)
                    && known.is_text_of(listed)
                    && may_keep()
                {
                    total.fetch_add(known.length, Ordering::Relaxed);
                    return FoundText::Kept(Arc::clone(known), listed.version.stamp);
                }
                let opened = SystemTime::now();
                match jail.read(jail.inside(&path), MOST_MANIFEST_BYTES) {
                    Ok(file) => {
                        // Here all cores check the texts.
                        let text = Box::new(ReadText::of(&path, file, opened, &jail.root));
                        total.fetch_add(text.length, Ordering::Relaxed);
                        FoundText::Read(path, text)
                    }
                    Err(refusal) => FoundText::Refused(path, refusal),
                }
            };
            let read: Vec<FoundText> = found.into_par_iter().with_min_len(8).with_max_len(16).map(read).collect();
            total_of_others = total.into_inner();
            for read in read {
                if matches!(read, FoundText::Excess) || seen.len() > MOST_FILES {
                    diagnostics.push(too_many(path.display()));
                    return (files, diagnostics);
                }
                match read {
                    // Two paths may lead to one file, which must count only once.
                    FoundText::Kept(known, _) if !seen.insert(Arc::clone(&known.real)) => {}
                    FoundText::Kept(known, stamp) => {
                        let (path, real) = (Arc::clone(&known.path), Arc::clone(&known.real));
                        self.reads.note(NotedRead { path, real, stamp: Some(stamp), is_kept: true });
                        files.push(Arc::clone(&known.file));
                        kept.insert(Arc::clone(&known.path), known);
                    }
                    FoundText::Read(_, text) if !seen.insert(Arc::clone(&text.real)) => {}
                    FoundText::Read(path, text) if text.length > MOST_MANIFEST_BYTES => {
                        let help = "split the file, or move it out of the folder";
                        diagnostics.push(unreadable(path.display(), too_large()).help(help));
                    }
                    FoundText::Read(path, text) => {
                        let ReadText { real, version, opened, length, file, faults } = *text;
                        let path: Arc<OsStr> = path.into_os_string().into();
                        let (stamp, noted) = (version.map(|version| version.stamp), Arc::clone(&path));
                        self.reads.note(NotedRead { path: noted, real: Arc::clone(&real), stamp, is_kept: false });
                        diagnostics.extend(faults);
                        let Some(file) = file else { continue };
                        if depth.is_none() {
                            files.push(file);
                            continue;
                        }
                        // A text that is the same is in memory only once.
                        let known = earlier.get(&path).filter(|known| known.file.is_same(&file));
                        let file = known.map_or(file, |known| Arc::clone(&known.file));
                        files.push(Arc::clone(&file));
                        let read = RetainedFile::new(Arc::clone(&path), real, version, opened, length, file);
                        kept.insert(path, Arc::new(read));
                    }
                    FoundText::Refused(path, refusal) => diagnostics.push(refusal.diagnostic(&path, &jail.root)),
                    FoundText::Excess => {}
                }
            }
        }
        self.kept.put(kept);
        (files, diagnostics)
    }

    /// Records a value that was read.
    fn note_value(&self, path: &Path, real: PathBuf, stamp: Option<FileStamp>) {
        let (path, real) = (path.as_os_str().into(), real.into_os_string().into());
        self.reads.note(NotedRead { path, real, stamp, is_kept: false });
    }
}

impl Tree for Disk {
    fn manifests(&self) -> TreeFiles {
        self.read_all(None)
    }

    fn manifests_again(&self, depth: &ReadingDepth) -> TreeFiles {
        self.read_all(Some(depth))
    }

    fn commit(&self) -> Option<String> {
        // The commit of standard input is unknown.
        let known = !self.paths.iter().any(|path| path.as_os_str() == "-");
        known.then(|| self.reads.commit(&self.paths)).flatten()
    }

    fn commit_author(&self) -> Option<CommitAuthor> {
        author_of(&self.paths)
    }

    fn commit_message(&self) -> Option<String> {
        message_of(&self.paths)
    }

    fn files_read(&self) -> Vec<NotedFile> {
        // Standard input cannot be read again.
        let again = !self.paths.iter().any(|path| path.as_os_str() == "-");
        if again { self.reads.files() } else { Vec::new() }
    }

    fn file(&self, manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        let path = manifest.folder.join(name);
        if let Some(KeptValue { text, real, stamp }) = self.values.find(&manifest.root, &path) {
            self.note_value(&path, real, stamp);
            return Ok(text.expose().to_owned());
        }
        let by_words = !Path::new(name).is_absolute() && plain(&path).starts_with(plain(&manifest.root));
        let read = match path.strip_prefix(&manifest.root).ok().filter(|_| by_words) {
            Some(inside) => Jail::new(&manifest.root, self.allow_outside_files)
                .map_err(AccessError::from)
                .and_then(|jail| jail.read(inside, MOST_VALUE_BYTES)),
            None if self.allow_outside_files => read_anywhere(&path, MOST_VALUE_BYTES),
            None => Err(AccessError::Outside),
        };
        let reason = match read {
            Ok(file) => {
                let (real, stamp) = (file.real, file.version.map(|version| version.stamp));
                self.note_value(&path, real.clone(), stamp);
                let text = value_of(name, &path, Ok(file.bytes))?;
                let value = KeptValue { text: Secret::new(text.as_str()), real, stamp };
                self.values.keep(&manifest.root, &path, value);
                return Ok(text);
            }
            Err(AccessError::Outside) => return Err(outside(name)),
            Err(AccessError::Git) => return Err(inside_git(name)),
            Err(AccessError::NotAFile) => "not a regular file".to_owned(),
            Err(AccessError::Io(error)) => error.to_string(),
        };
        value_of(name, &path, Err(reason))
    }
}

/// Reads a whole file, or fails: with a truncated file, the missing resources would be deleted.
fn read_whole(source: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MOST_MANIFEST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_MANIFEST_BYTES {
        return Err(too_large());
    }
    Ok(bytes)
}
