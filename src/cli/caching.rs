//! The cache of parsed files (D75): its option, and its folder.

use std::path::PathBuf;

use crate::{manifest::ParsedFiles, reconcile::remembered::program, store::Store};

/// Whether results of earlier runs are used.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct Caching {
    /// Parse and plan anew, without the results of earlier runs.
    #[arg(long, env = "EDGEWRIGHT_NO_CACHE")]
    no_cache: bool,
}

impl Caching {
    /// Whether results of earlier runs must not be used.
    pub(super) fn is_off(self) -> bool {
        self.no_cache
    }

    /// The cache of a run: beside its store, or in the user's folder for caches. Returns none if there is no such folder.
    pub(super) fn parsed_files(self, store: Option<&Store>) -> Option<ParsedFiles> {
        if self.is_off() {
            return None;
        }
        let folder = match store {
            Some(store) => store.on_disk(store.snapshot().revision)?.folder,
            None => user_folder()?,
        };
        ParsedFiles::within(&folder, &program()?)
    }
}

/// The folder for the caches of this program.
fn user_folder() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = match absolute("XDG_CACHE_HOME") {
        Some(folder) => folder,
        None => absolute("HOME")?.join(if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" }),
    };
    Some(caches.join("edgewright"))
}
