//! The folder of the mirrors. A mirror has only what a fetch brings back, so it can be removed at any time.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The folder next to the store.
const FOLDER: &str = "mirrors";

/// A folder with a mirror for each source.
#[derive(Debug)]
pub(crate) struct Mirrors {
    folder: PathBuf,
    is_temporary: bool,
}

impl Mirrors {
    /// The mirrors in the folder of a store. Without one, they are temporary.
    pub(crate) fn within(store: Option<&Path>) -> io::Result<Self> {
        let Some(store) = store else {
            static COUNT: AtomicU64 = AtomicU64::new(0);
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let folder = std::env::temp_dir().join(format!("edgewright-mirrors-{}-{number}", std::process::id()));
            // The folder must be new: in a shared folder, somebody else could have created it.
            DirBuilder::new().mode(0o700).create(&folder)?;
            return Ok(Self { folder, is_temporary: true });
        };
        let folder = store.join(FOLDER);
        create_folder(&folder)?;
        Ok(Self { folder, is_temporary: false })
    }

    /// The folder of the mirror of a source.
    pub(crate) fn folder_for(&self, source: &str, url: &str) -> PathBuf {
        let digest = blake3::hash(format!("{url}\0{source}").as_bytes()).to_hex();
        self.folder.join(format!("{digest:.32}"))
    }

    /// Removes all mirrors but these. Nothing may be fetched meanwhile.
    pub(crate) fn recover(&self, kept: &[PathBuf]) {
        self.remove_unless(|path| kept.iter().any(|mirror| mirror == path));
    }

    /// Removes all mirrors but these, and but new ones that are fetched to replace them.
    pub(crate) fn keep_only(&self, kept: &[PathBuf]) {
        self.remove_unless(|path| kept.iter().any(|mirror| mirror.file_name() == path.file_stem()));
    }

    fn remove_unless(&self, is_kept: impl Fn(&Path) -> bool) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if !is_kept(&path) {
                let _ = fs::remove_dir_all(&path);
            }
        }
    }
}

impl Drop for Mirrors {
    fn drop(&mut self) {
        if self.is_temporary {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Removes what a killed fetch left in a mirror: packs without their final names, and locks. Nothing else may fetch into it
/// meanwhile.
pub(super) fn remove_leftovers(mirror: &Path) {
    let is_partial = |extension: Option<&str>| !matches!(extension, Some("pack" | "idx" | "rev"));
    remove_in(&mirror.join("objects/pack"), is_partial);
    for folder in [mirror.join("refs/edgewright"), mirror.to_owned()] {
        remove_in(&folder, |extension| extension == Some("lock"));
    }
}

/// Removes the files of a folder with some extensions.
fn remove_in(folder: &Path, is_removed: impl Fn(Option<&str>) -> bool) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if is_removed(path.extension().and_then(|extension| extension.to_str())) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Creates a folder that only its owner can read: the manifests of a private repository are in it.
pub(super) fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_the_mirrors_of_current_sources_stay() {
        let store = tempfile::tempdir().unwrap();
        let mirrors = Mirrors::within(Some(store.path())).unwrap();
        let (kept, gone) = (mirrors.folder_for("shop", "https://a/b"), mirrors.folder_for("docs", "https://a/b"));
        assert!(kept != gone && kept != mirrors.folder_for("shop", "https://a/c"));
        for mirror in [&kept, &gone] {
            create_folder(&mirror.join("objects/pack")).unwrap();
        }
        // A new fetch is next to the mirror.
        let fetched = kept.with_extension("new");
        create_folder(&fetched).unwrap();
        mirrors.keep_only(std::slice::from_ref(&kept));
        assert!(kept.exists() && fetched.exists() && !gone.exists());
        mirrors.recover(std::slice::from_ref(&kept));
        assert!(kept.exists() && !fetched.exists());

        // The next fetch removes what one left that was killed.
        let paths = ["objects/pack/pack-1.pack", "objects/pack/pack-1.rev", "objects/pack/tmp_pack_x", "shallow.lock"];
        let [pack, index, partial, lock] = paths.map(|path| kept.join(path));
        for file in [&pack, &index, &partial, &lock] {
            fs::write(file, "").unwrap();
        }
        remove_leftovers(&kept);
        assert!(pack.exists() && index.exists() && !partial.exists() && !lock.exists());
    }

    #[test]
    fn mirrors_without_a_store_end_with_the_process() {
        let mirrors = Mirrors::within(None).unwrap();
        let folder = mirrors.folder.clone();
        assert!(folder.is_dir());
        drop(mirrors);
        assert!(!folder.exists());
    }
}
