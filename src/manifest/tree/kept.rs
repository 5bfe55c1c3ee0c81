//! Manifest files that are kept from reading to reading of a folder that is followed, and when a kept text is as good as
//! the file (D74).

use std::{
    ffi::OsStr,
    fmt, mem,
    os::unix::ffi::OsStrExt as _,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use foldhash::HashMap;

use super::stamp::FileVersion;
use crate::manifest::origin::ManifestFile;

/// A file that changed so short a time before it was read may change again without a new version: the times of files are
/// as coarse as two seconds.
const COARSEST: Duration = Duration::from_secs(2);

/// The files of the last reading, by the path to show. Clones share them.
#[derive(Clone, Default)]
pub(super) struct RetainedFiles(Arc<Mutex<FilesByPath>>);

/// Files by the path to show.
pub(super) type FilesByPath = HashMap<Arc<OsStr>, Arc<RetainedFile>>;

/// Omits the texts.
impl fmt::Debug for RetainedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RetainedFiles")
    }
}

impl RetainedFiles {
    /// Takes the files of the last reading. A reading that fails keeps none, so that the next one reads every file.
    pub(super) fn take(&self) -> FilesByPath {
        mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps the files of a reading for the next one.
    pub(super) fn put(&self, files: FilesByPath) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = files;
    }
}

/// A file as a folder lists it: a regular file and no link.
pub(super) struct ListedFile {
    /// The resolved path of its folder.
    pub folder: Arc<OsStr>,
    /// The version now.
    pub version: FileVersion,
}

/// A file that was read.
#[derive(Clone)]
pub(super) struct RetainedFile {
    /// The path to show.
    pub path: Arc<OsStr>,
    /// The resolved path.
    pub real: Arc<OsStr>,
    /// The version that was read; none if that may not be the last one with its times.
    version: Option<FileVersion>,
    /// The length in bytes.
    pub length: u64,
    /// The text.
    pub file: Arc<ManifestFile>,
}

impl RetainedFile {
    /// Keeps a file that was opened at a time, and had this version then.
    pub(super) fn new(
        path: Arc<OsStr>,
        real: Arc<OsStr>,
        version: Option<FileVersion>,
        opened: SystemTime,
        length: u64,
        file: Arc<ManifestFile>,
    ) -> Self {
        Self { path, real, version: version.filter(|version| version.is_settled(opened, COARSEST)), length, file }
    }

    /// Whether a listed file has the text that was read. It has if it is the same file with the same length and times:
    /// every write sets the time of the last change, which no program can choose.
    pub(super) fn is_text_of(&self, listed: &ListedFile) -> bool {
        self.version == Some(listed.version) && self.is_in(&listed.folder)
    }

    /// Whether the file is in a folder. A listed file is no link, so its name is that by which it was found.
    fn is_in(&self, folder: &OsStr) -> bool {
        let real = self.real.as_bytes();
        let Some(name) = Path::new(&self.path).file_name() else { return false };
        let above = real.strip_suffix(name.as_bytes()).unwrap_or_default();
        // The root is the only folder whose path ends with a slash.
        above.strip_suffix(b"/").is_some_and(|above| match folder.as_bytes() {
            b"/" => above.is_empty(),
            folder => above == folder && !folder.is_empty(),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use std::{
        fs::{self, File},
        os::unix::fs::symlink,
        path::PathBuf,
        thread,
    };

    use super::*;
    use crate::manifest::tree::{Disk, ReadingDepth, Tree};

    /// A tree whose files have one letter of text each, which is read again and again.
    struct Again {
        folder: tempfile::TempDir,
        disk: Disk,
    }

    impl Again {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let disk = Disk::new([folder.path()]);
            Self { folder, disk }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.path(name), text).unwrap();
        }

        /// The files of a reading.
        fn files(&self, in_full: bool) -> Vec<Arc<ManifestFile>> {
            let depth = ReadingDepth::default();
            if in_full {
                depth.read_all();
            }
            let (files, diagnostics) = self.disk.manifests_again(&depth);
            assert!(diagnostics.is_empty(), "{diagnostics:?}");
            files
        }

        fn texts(&self) -> String {
            self.files(false).iter().map(|file| file.source.text.as_str()).collect()
        }

        /// Makes the kept texts other ones, so that it shows which of them are used.
        fn mark(&self) {
            let marked = |(path, kept): (Arc<OsStr>, Arc<RetainedFile>)| {
                let (name, text) = (kept.file.source.name.clone(), kept.file.source.text.to_uppercase());
                let (folder, root) = (kept.file.folder.clone(), kept.file.root.clone());
                let file = Arc::new(ManifestFile::new(name, text, folder, root));
                (path, Arc::new(RetainedFile { file, ..RetainedFile::clone(&kept) }))
            };
            self.disk.kept.put(self.disk.kept.take().into_iter().map(marked).collect());
        }

        /// Reads all files once their times are settled, and marks them.
        fn settle(&self) {
            thread::sleep(COARSEST + Duration::from_millis(50));
            self.files(true);
            self.mark();
        }
    }

    fn set_modified(path: &Path, time: SystemTime) {
        File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn a_file_that_has_not_changed_is_not_read_again() {
        let again = Again::new();
        again.write("a.yaml", "a");
        again.write("b.yaml", "b");
        assert_eq!(again.texts(), "ab");
        again.mark();
        assert_eq!(again.texts(), "ab", "their times are too young");
        again.settle();
        assert_eq!(again.texts(), "AB");
        again.write("b.yaml", "c");
        again.write("c.yaml", "d");
        assert_eq!(again.texts(), "Acd");
        fs::remove_file(again.path("a.yaml")).unwrap();
        assert_eq!(again.texts(), "cd");
        again.mark();
        let all: String = again.files(true).iter().map(|file| file.source.text.as_str().to_owned()).collect();
        assert_eq!(all, "cd", "every file is read");
    }

    #[test]
    fn no_program_can_hide_a_change() {
        let again = Again::new();
        for name in ["a.yaml", "b.yaml", "c.yaml", "other"] {
            again.write(name, "a");
        }
        let old = SystemTime::now() - Duration::from_secs(3600);
        for name in ["a.yaml", "b.yaml", "c.yaml", "other"] {
            set_modified(&again.path(name), old);
        }
        again.settle();
        assert_eq!(again.texts(), "AAA");
        // The same length and time, in place and by a file that replaces it.
        again.write("a.yaml", "x");
        set_modified(&again.path("a.yaml"), old);
        assert_eq!(again.texts(), "xAA");
        again.write("next", "y");
        set_modified(&again.path("next"), old);
        fs::rename(again.path("next"), again.path("b.yaml")).unwrap();
        assert_eq!(again.texts(), "xyA");
        // Another name of a file counts as a change of it.
        fs::hard_link(again.path("c.yaml"), again.path("link")).unwrap();
        assert_eq!(again.texts(), "xya");
        fs::remove_file(again.path("c.yaml")).unwrap();
        fs::hard_link(again.path("other"), again.path("c.yaml")).unwrap();
        again.write("other", "z");
        assert_eq!(again.texts(), "xyz");
    }

    #[test]
    fn what_is_behind_a_link_is_always_read() {
        let again = Again::new();
        for version in ["..1", "..2"] {
            fs::create_dir(again.path(version)).unwrap();
            again.write(&format!("{version}/cm.yaml"), if version == "..1" { "a" } else { "b" });
        }
        symlink("..1", again.path("..data")).unwrap();
        symlink("..data/cm.yaml", again.path("cm.yaml")).unwrap();
        again.settle();
        assert_eq!(again.texts(), "a");
        symlink("..2", again.path("..next")).unwrap();
        fs::rename(again.path("..next"), again.path("..data")).unwrap();
        assert_eq!(again.texts(), "b");
    }

    #[test]
    fn a_folder_that_is_swapped_for_one_with_the_same_files_is_read() {
        let again = Again::new();
        for release in ["1", "2"] {
            fs::create_dir(again.path(release)).unwrap();
        }
        again.write("1/a.yaml", "a");
        fs::hard_link(again.path("1/a.yaml"), again.path("2/a.yaml")).unwrap();
        symlink("1", again.path("current")).unwrap();
        let again = Again { disk: Disk::new([again.path("current")]), ..again };
        again.settle();
        assert_eq!(again.texts(), "A");
        symlink("2", again.path("next")).unwrap();
        fs::rename(again.path("next"), again.path("current")).unwrap();
        assert_eq!(again.texts(), "a", "the path of the file is another one");
    }

    #[test]
    fn a_file_is_in_its_folder_and_in_no_other() {
        let file = |path: &str, real: &str| {
            let text = Arc::new(ManifestFile::new(path.to_owned(), String::new(), PathBuf::new(), PathBuf::new()));
            RetainedFile::new(
                Path::new(path).as_os_str().into(),
                Path::new(real).as_os_str().into(),
                None,
                SystemTime::now(),
                0,
                text,
            )
        };
        for (path, real, folder, expected) in [
            ("m/a.yaml", "/srv/m/a.yaml", "/srv/m", true),
            ("m/a.yaml", "/srv/m/a.yaml", "/srv", false),
            ("m/a.yaml", "/srv/m/b/a.yaml", "/srv/m", false),
            ("m/a.yaml", "/srv/m/aa.yaml", "/srv/m/", false),
            ("m/a.yaml", "/srv/m/aa.yaml", "/srv/m", false),
            ("/a.yaml", "/a.yaml", "/", true),
            ("/a.yaml", "/a.yaml", "", false),
            ("/a.yaml", "/b/a.yaml", "/", false),
        ] {
            assert_eq!(file(path, real).is_in(Path::new(folder).as_os_str()), expected, "{real} in {folder}");
        }
    }

    #[test]
    fn a_full_reading_keeps_what_it_finds_unchanged() {
        let again = Again::new();
        again.write("a.yaml", "a");
        again.write("b.yaml", "b");
        let before = again.files(true);
        again.write("b.yaml", "c");
        let after = again.files(true);
        assert!(Arc::ptr_eq(&before[0], &after[0]), "one text in memory");
        assert_eq!(after[1].source.text.as_str(), "c");
    }
}
