//! Files with values that were read since the last reading of the manifests: many manifests take the same ones.

use std::path::Path;

use super::file_stamp::FileStamp;
use crate::cache::{WeightedCache, weighted};
use crate::manifest::prelude::*;

/// The most bytes of all values that are kept.
const MOST_BYTES: u64 = 64 << 20;

/// The values, by the root that they may be read in and their path. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct ValueCache(Arc<WeightedCache<(PathBuf, PathBuf), CachedValue>>);

impl Default for ValueCache {
    fn default() -> Self {
        Self(Arc::new(weighted(MOST_BYTES, |_, value| value.text.expose().len())))
    }
}

/// A file with a value.
#[derive(Debug, Clone)]
pub(super) struct CachedValue {
    /// The content.
    pub text: Secret,
    /// The resolved path.
    pub real: PathBuf,
    /// The stamp of the file when it was opened.
    pub stamp: Option<FileStamp>,
}

impl ValueCache {
    /// Forgets all of them, for the next reading.
    pub(super) fn clear(&self) {
        self.0.clear();
    }

    /// Finds a value that was read in a root.
    pub(super) fn get(&self, root: &Path, path: &Path) -> Option<CachedValue> {
        self.0.get(&(root.to_owned(), path.to_owned()))
    }

    /// Keeps a value that was read in a root.
    pub(super) fn insert(&self, root: &Path, path: &Path, value: CachedValue) {
        self.0.insert((root.to_owned(), path.to_owned()), value);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;
    use crate::manifest::tree::{Disk, Tree};

    #[test]
    fn all_manifests_of_a_reading_take_one_value_and_the_next_reading_takes_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("a.yaml", "a");
        write("b.yaml", "b");
        write("key.pem", "first");
        let disk = Disk::new([folder.path()]);
        for (now, next) in [("first", "second"), ("second", "third")] {
            let (files, _) = disk.manifests();
            for manifest in &files {
                assert_eq!(disk.file(manifest, "key.pem").unwrap(), now);
                write("key.pem", next);
            }
            assert_eq!(files.len(), 2);
        }
        let (files, _) = disk.manifests();
        fs::remove_file(folder.path().join("key.pem")).unwrap();
        assert!(files.iter().all(|manifest| disk.file(manifest, "key.pem").is_err()), "an earlier reading had it");
    }

    #[test]
    fn a_value_is_only_kept_for_the_root_that_may_read_it() {
        let values = ValueCache::default();
        let value = CachedValue { text: Secret::new("key"), real: PathBuf::new(), stamp: None };
        values.insert(Path::new("wide"), Path::new("wide/key"), value);
        assert!(values.get(Path::new("wide"), Path::new("wide/key")).is_some());
        assert!(values.get(Path::new("narrow"), Path::new("wide/key")).is_none());
    }
}
