//! Stops a reading whose result is no longer needed, or that has seen too much.

use std::{fmt, sync::Arc};

use super::limits::MOST_ENTRIES;

/// Tells a reading whether to stop. A hostile repository or folder can make one take minutes, in which a server could not end.
#[derive(Clone, Default)]
pub(crate) struct StopCheck(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl StopCheck {
    /// Stops a reading as soon as `stops` returns true. It is called for each entry of a folder.
    pub(crate) fn new(stops: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(stops)))
    }

    /// Fails if a reading that has seen so many entries is to stop now.
    pub(super) fn check(&self, seen: usize) -> Result<(), String> {
        if self.0.as_ref().is_some_and(|stops| stops()) {
            return Err("interrupted".to_owned());
        }
        if seen > MOST_ENTRIES { Err(format!("more than {MOST_ENTRIES} files and folders")) } else { Ok(()) }
    }
}

impl fmt::Debug for StopCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StopCheck")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use git2::{Repository, Signature};

    use super::*;
    use crate::manifest::tree::{RefTree, RepositoryPlace, RevisionSpec, Tree};

    #[test]
    fn a_listing_that_nobody_waits_for_ends_at_the_next_entry() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(folder.path()).unwrap();
        // Folders that contain the same folder many times stand for 125,000 paths.
        let mut id = repository.blob(b"# nothing\n").unwrap();
        for (extension, mode) in [(".yaml", 0o100_644), ("", 0o040_000), ("", 0o040_000)] {
            let mut builder = repository.treebuilder(None).unwrap();
            for at in 0..50 {
                builder.insert(format!("{at}{extension}"), id, mode).unwrap();
            }
            id = builder.write().unwrap();
        }
        let author = Signature::now("t", "t@example.com").unwrap();
        let tree = repository.find_tree(id).unwrap();
        repository.commit(Some("HEAD"), &author, &author, "edge", &tree, &[]).unwrap();

        let entries = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&entries);
        let stop = StopCheck::new(move || seen.fetch_add(1, Ordering::Relaxed) >= 1_000);
        let (place, wanted) = (RepositoryPlace::Local(folder.path().to_owned()), RevisionSpec::Ref("HEAD".into()));
        let mut listed = RefTree::new(place, wanted, PathBuf::new(), None);
        listed.stop = stop;
        let (files, diagnostics) = listed.manifests();
        let messages: Vec<&str> = diagnostics.iter().map(|it| it.message.as_str()).collect();
        assert!(files.is_empty() && messages.len() == 1, "{} files, {messages:?}", files.len());
        assert!(messages.iter().all(|message| message.ends_with("cannot be read: interrupted")), "{messages:?}");
        assert_eq!(entries.load(Ordering::Relaxed), 1_001);
    }
}
