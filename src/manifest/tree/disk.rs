//! Local files and folders, and standard input.
//!
//! # The problem
//!
//! A followed folder is read again whenever something in it may have changed, and nearly all of its files have not. But
//! nothing about a file proves that its text is still the same: times are coarse, the clock of a network file system
//! can be behind, and writes through a memory map show late.
//!
//! # The idea
//!
//! Every reading reads all files (D74), on all cores. That is cheap: 100,000 routes are 32 MB in about 1,100 files,
//! which take some 10 ms if they are in the page cache. Each text is compared with that of the last reading as soon as
//! it is read, and an equal one is dropped in favor of the earlier allocation. So only a few texts are in memory twice
//! at any time, and whoever keeps results by text ([`load_again`](crate::manifest::load_again)) sees at once which
//! files are new.
//!
//! For example, after one file was saved, one `Arc<SourceFile>` of the reading is new, and all others are those of the
//! last one.
//!
//! A file with a value is read once in each reading, for all manifests that take it. [`FileStamp`]s only tell whether a
//! file has been written since it was read a moment ago (D92).
//!
//! # What it never does
//!
//! It keeps no texts itself, but for those that somebody still uses. It decides nothing by the times of files. The
//! alternative, to trust unchanged times and to read everything at intervals, saved those 10 ms. It needed rules for
//! links, renamed folders, clocks and events, and missed until the next interval whatever no time showed.

use std::ffi::OsStr;
use std::io::Read;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use super::cancellation::StopCheck;
use super::contents::{ReadManifest, manifest_file, value_of};
use super::faults::{no_manifest, outside, unreadable};
use super::file_stamp::{FileStamp, NotedFile};
use super::git::provenance::{ReadTracker, TrackedRead, details_of};
use super::jail::{AccessError, Jail, ReadFile, read_anywhere, search};
use super::limits::{MOST_FILES, MOST_MANIFEST_BYTES, MOST_TOTAL_BYTES, MOST_VALUE_BYTES, too_large, too_many};
use super::manifest_tree::{GitCommitDetails, Tree, TreeFiles};
use super::paths::normalize;
use super::value_cache::{CachedValue, ValueCache};
use crate::files::folder_of;
use crate::lock::Lock;
use crate::manifest::resolve::origin::ManifestFile;
use crate::model::{Fault, Secret, SourceFile};

/// Files and folders.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    /// Files, folders, or `-` for standard input.
    pub paths: Vec<PathBuf>,
    /// Whether manifests and values may be read from files outside the folders (D28, D50).
    pub allow_outside_files: bool,
    /// Ends a search for manifests early.
    pub(crate) stop: StopCheck,
    /// The files that were read, for the commit that a revision is recorded with.
    reads: ReadTracker,
    /// The texts of the last reading that are still in use: an equal text is not in memory twice. Clones share them.
    texts: Arc<Lock<TextsInUse>>,
    /// The values that were read since.
    values: ValueCache,
}

/// Texts by the path to show.
type TextsInUse = HashMap<Arc<OsStr>, Weak<SourceFile>>;

/// A file that was read.
struct ReadText {
    /// The resolved path.
    real: Arc<OsStr>,
    stamp: Option<FileStamp>,
    /// The length in bytes.
    length: u64,
    file: ReadManifest,
}

impl ReadText {
    /// Checks the text of a file, and drops it if the earlier one is equal.
    fn new(path: &Path, read: ReadFile, root: &Path, earlier: Option<Arc<SourceFile>>) -> Self {
        let ReadFile { bytes, real, stamp } = read;
        let length = bytes.len() as u64;
        let file = match length {
            0..=MOST_MANIFEST_BYTES => manifest_file(path.display().to_string(), bytes, folder_of(path), root),
            _ => {
                let help = "split the file, or move it out of the folder";
                Err(unreadable(path.display(), too_large()).help(help))
            }
        };
        let file = file.map(|file| match earlier {
            Some(earlier) if earlier.text == file.source.text => Arc::new(file.with_source(earlier)),
            _ => file,
        });
        Self { real: real.into_os_string().into(), stamp, length, file }
    }
}

impl Disk {
    /// The manifests in files and folders; `-` is standard input.
    pub fn new<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self { paths: paths.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Records a value that was read.
    fn note_value(&self, path: &Path, real: PathBuf, stamp: Option<FileStamp>) {
        let (path, real) = (path.as_os_str().into(), real.into_os_string().into());
        self.reads.note(TrackedRead { path, real, stamp });
    }
}

impl Tree for Disk {
    fn manifests(&self) -> TreeFiles {
        let mut diagnostics = Vec::new();
        let mut files = Vec::new();
        let total = AtomicU64::new(0);
        let earlier = mem::take(&mut *self.texts.lock());
        let (mut texts, mut seen) = (HashMap::with_capacity(earlier.len()), HashSet::with_capacity(earlier.len()));
        self.reads.begin(&self.paths);
        self.values.clear();
        for path in &self.paths {
            if path.as_os_str() == "-" {
                let read = read_whole(std::io::stdin()).map_err(|error| unreadable("standard input", error));
                match read.and_then(|bytes| manifest_file("-".into(), bytes, Path::new("."), Path::new("."))) {
                    Ok(file) => files.push(file),
                    Err(fault) => diagnostics.push(fault),
                }
                continue;
            }
            let before = diagnostics.len();
            let Some((jail, found)) = search(path, self.allow_outside_files, &self.stop, &mut diagnostics) else {
                continue;
            };
            if found.is_empty() && diagnostics.len() == before {
                diagnostics.push(no_manifest(path.display()));
            }
            if found.len() > MOST_FILES {
                diagnostics.push(too_many(path.display()));
                return (files, diagnostics);
            }
            for read in read_texts(&jail, found, &earlier, &total) {
                let Some((path, read)) = read.filter(|_| seen.len() <= MOST_FILES) else {
                    diagnostics.push(too_many(path.display()));
                    return (files, diagnostics);
                };
                match read {
                    // Two paths may lead to one file, which must count only once.
                    Ok(text) if !seen.insert(Arc::clone(&text.real)) => {}
                    Ok(ReadText { real, stamp, file, .. }) => {
                        let path: Arc<OsStr> = path.into_os_string().into();
                        self.reads.note(TrackedRead { path: Arc::clone(&path), real, stamp });
                        match file {
                            Ok(file) => {
                                texts.insert(path, Arc::downgrade(&file.source));
                                files.push(file);
                            }
                            Err(fault) => diagnostics.push(fault),
                        }
                    }
                    Err(refusal) => diagnostics.push(refusal.diagnostic(&path, &jail.root)),
                }
            }
        }
        *self.texts.lock() = texts;
        (files, diagnostics)
    }

    fn commit(&self) -> Option<String> {
        // The commit of standard input is unknown.
        let known = !self.paths.iter().any(|path| path.as_os_str() == "-");
        known.then(|| self.reads.commit(&self.paths)).flatten()
    }

    fn commit_details(&self) -> GitCommitDetails {
        details_of(&self.paths)
    }

    fn files_read(&self) -> Vec<NotedFile> {
        // Standard input cannot be read again.
        let can_be_reread = !self.paths.iter().any(|path| path.as_os_str() == "-");
        if can_be_reread { self.reads.files() } else { Vec::new() }
    }

    fn file(&self, manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        let path = manifest.folder.join(name);
        if let Some(CachedValue { text, real, stamp }) = self.values.get(&manifest.root, &path) {
            self.note_value(&path, real, stamp);
            return Ok(text.expose().to_owned());
        }
        let by_words = !Path::new(name).is_absolute() && normalize(&path).starts_with(normalize(&manifest.root));
        let read = match path.strip_prefix(&manifest.root).ok().filter(|_| by_words) {
            Some(inside) => Jail::new(&manifest.root, self.allow_outside_files)
                .map_err(AccessError::from)
                .and_then(|jail| jail.read(inside, MOST_VALUE_BYTES)),
            None if self.allow_outside_files => read_anywhere(&path, MOST_VALUE_BYTES),
            None => Err(AccessError::Outside),
        };
        let reason = match read {
            Ok(file) => {
                let (real, stamp) = (file.real, file.stamp);
                self.note_value(&path, real.clone(), stamp);
                let text = value_of(name, &path, Ok(file.bytes))?;
                let value = CachedValue { text: Secret::new(text.as_str()), real, stamp };
                self.values.insert(&manifest.root, &path, value);
                return Ok(text);
            }
            Err(refused) => refused.reason(name, || outside(name))?,
        };
        value_of(name, &path, Err(reason))
    }
}

/// Reads files on all cores, and adds their lengths to `total`. None for a file once there are too many bytes.
fn read_texts(
    jail: &Jail,
    found: Vec<PathBuf>,
    earlier: &TextsInUse,
    total: &AtomicU64,
) -> Vec<Option<(PathBuf, Result<ReadText, AccessError>)>> {
    let read = |path: PathBuf| {
        if total.load(Ordering::Relaxed) > MOST_TOTAL_BYTES {
            return None;
        }
        let read = jail.read(jail.inside(&path), MOST_MANIFEST_BYTES).map(|file| {
            let earlier = earlier.get(path.as_os_str()).and_then(Weak::upgrade);
            let text = ReadText::new(&path, file, &jail.root, earlier);
            total.fetch_add(text.length, Ordering::Relaxed);
            text
        });
        Some((path, read))
    };
    found.into_par_iter().with_min_len(8).with_max_len(16).map(read).collect()
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

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;
    use std::time::{Duration, SystemTime};

    use super::*;

    /// A folder that is read again and again, whose files have one letter of text each.
    struct Again {
        folder: tempfile::TempDir,
        disk: Disk,
        /// The last reading.
        files: Vec<Arc<ManifestFile>>,
    }

    impl Again {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let disk = Disk::new([folder.path()]);
            Self { folder, disk, files: Vec::new() }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.path(name), text).unwrap();
        }

        /// Writes a text, and sets the time of the file.
        fn write_at(&self, name: &str, text: &str, time: SystemTime) {
            self.write(name, text);
            File::options().write(true).open(self.path(name)).unwrap().set_modified(time).unwrap();
        }

        /// Reads the files.
        fn texts(&mut self) -> String {
            let (files, diagnostics) = self.disk.manifests();
            assert!(diagnostics.is_empty(), "{diagnostics:?}");
            self.files = files;
            self.files.iter().map(|file| file.source.text.as_str()).collect()
        }
    }

    #[test]
    fn no_program_can_hide_a_change() {
        let mut again = Again::new();
        let old = SystemTime::now() - Duration::from_secs(3600);
        for name in ["a.yaml", "b.yaml", "c.yaml", "other"] {
            again.write_at(name, "a", old);
        }
        assert_eq!(again.texts(), "aaa");
        // A change that keeps length and time, in place and by a file that replaces the old one.
        again.write_at("a.yaml", "x", old);
        assert_eq!(again.texts(), "xaa");
        again.write_at("next", "y", old);
        fs::rename(again.path("next"), again.path("b.yaml")).unwrap();
        assert_eq!(again.texts(), "xya");
        // Another file under the same name, which is then written by its other name.
        fs::remove_file(again.path("c.yaml")).unwrap();
        fs::hard_link(again.path("other"), again.path("c.yaml")).unwrap();
        assert_eq!(again.texts(), "xya");
        again.write_at("other", "z", old);
        assert_eq!(again.texts(), "xyz");
        fs::remove_file(again.path("a.yaml")).unwrap();
        assert_eq!(again.texts(), "yz");
    }

    #[test]
    fn a_link_is_followed_in_each_reading() {
        let mut again = Again::new();
        for (version, text) in [("..1", "a"), ("..2", "b")] {
            fs::create_dir(again.path(version)).unwrap();
            again.write(&format!("{version}/cm.yaml"), text);
        }
        symlink("..1", again.path("..data")).unwrap();
        symlink("..data/cm.yaml", again.path("cm.yaml")).unwrap();
        assert_eq!(again.texts(), "a");
        symlink("..2", again.path("..next")).unwrap();
        fs::rename(again.path("..next"), again.path("..data")).unwrap();
        assert_eq!(again.texts(), "b");
    }

    #[test]
    fn a_folder_that_is_swapped_for_another_one_is_read() {
        let mut again = Again::new();
        for release in ["1", "2"] {
            fs::create_dir(again.path(release)).unwrap();
            again.write(&format!("{release}/a.yaml"), release);
        }
        symlink("1", again.path("current")).unwrap();
        again.disk = Disk::new([again.path("current")]);
        assert_eq!(again.texts(), "1");
        symlink("2", again.path("next")).unwrap();
        fs::rename(again.path("next"), again.path("current")).unwrap();
        assert_eq!(again.texts(), "2");
    }

    #[test]
    fn a_text_that_stays_the_same_is_in_memory_once_and_only_while_it_is_in_use() {
        let mut again = Again::new();
        again.write("a.yaml", "a");
        again.write("b.yaml", "b");
        again.texts();
        let before = again.files.clone();
        again.write("a.yaml", "a");
        again.write("b.yaml", "c");
        assert_eq!(again.texts(), "ac");
        assert!(Arc::ptr_eq(&before[0].source, &again.files[0].source));
        assert_eq!(before[1].source.text.as_str(), "b");
        drop(before);
        again.files.clear();
        assert_eq!(again.disk.texts.lock().values().filter_map(Weak::upgrade).count(), 0);
    }
}
