//! Manifests at a revision of a repository: each listing reads the commit that the revision names at that time.

use std::path::Path;

use git2::{Oid, Repository};

use super::{
    commit::CommitTree, lineage::Lineage, repository::open_repository, revision_spec::RevisionSpec,
    signed::CommitVerifier,
};
use crate::manifest::prelude::*;
use crate::manifest::resolve::origin::ManifestFile;
use crate::manifest::tree::cancellation::StopCheck;
use crate::manifest::tree::file_stamp::NotedFile;
use crate::manifest::tree::manifest_tree::{GitCommitDetails, Tree, TreeFiles};
use crate::manifest::tree::remote::RemoteMirror;
use crate::manifest::tree::source_values::SourceValues;
use crate::manifest::tree::surrounding::{SurroundedTree, UnsetValues};

/// The location of a repository.
#[derive(Debug, Clone)]
pub(crate) enum RepositoryPlace {
    /// On the disk.
    Local(PathBuf),
    /// Elsewhere, with a mirror on the disk.
    Remote(Arc<RemoteMirror>),
}

impl RepositoryPlace {
    /// The repository in messages. A URL has no credentials.
    fn name(&self) -> String {
        match self {
            Self::Local(path) => printable_path(&path.display().to_string()),
            Self::Remote(mirror) => printable_path(&mirror.url.text),
        }
    }
}

/// A folder or file of a repository, at a revision.
#[derive(Debug)]
pub(crate) struct RefTree {
    place: RepositoryPlace,
    revision: RevisionSpec,
    /// Checks each commit before it is read.
    verifier: Option<CommitVerifier>,
    /// Checks that each commit descends from the one that was applied last.
    pub lineage: Option<Arc<Lineage>>,
    inside: PathBuf,
    /// The paths of the surrounding manifests, inside the same commit (D107).
    pub surrounding: Vec<PathBuf>,
    /// Whether manifests and values may be read from files outside the path (D28, D50).
    pub allow_outside_files: bool,
    /// The values that the commits do not have. The surrounding manifests have none of them.
    pub values: Arc<SourceValues>,
    /// Ends a listing early.
    pub stop: StopCheck,
    last: Lock<Option<Arc<CommitListing>>>,
    /// The commit that was refused instead.
    refused: Lock<Option<Oid>>,
}

/// The commit of the last listing.
#[derive(Debug)]
struct CommitListing {
    id: Oid,
    /// The files of the commit, with the surrounding manifests.
    tree: Arc<dyn Tree>,
    /// The tag that was chosen from a range of versions.
    tag: Option<String>,
    /// The files, once they were read without an error, which may pass.
    files: Option<Vec<Arc<ManifestFile>>>,
}

impl RefTree {
    /// The path `inside` a repository, at a revision. Without a verifier, commits need no signature.
    pub(crate) fn new(
        place: RepositoryPlace,
        revision: RevisionSpec,
        inside: PathBuf,
        verifier: Option<CommitVerifier>,
    ) -> Self {
        Self {
            place,
            revision,
            verifier,
            lineage: None,
            inside,
            surrounding: Vec::new(),
            allow_outside_files: false,
            values: Arc::default(),
            stop: StopCheck::default(),
            last: Lock::default(),
            refused: Lock::default(),
        }
    }

    /// The files of a local repository that change when a ref does, and the folder with values. A mirror changes only when it
    /// is fetched.
    pub(crate) fn watched(&self) -> Vec<PathBuf> {
        let mut watched: Vec<PathBuf> = self.values.folder.iter().cloned().collect();
        let RepositoryPlace::Local(path) = &self.place else { return watched };
        // A `git gc` moves refs into one file.
        let refs = |shared: &Path, own: &Path| [shared.join("refs"), shared.join("packed-refs"), own.join("HEAD")];
        match open_repository(path) {
            Ok(repository) => watched.extend(refs(repository.commondir(), repository.path())),
            // The repository may come later, bare or with a work tree.
            Err(_) => watched.extend([path.clone(), path.join(".git")].iter().flat_map(|git| refs(git, git))),
        }
        watched
    }

    fn listing(&self) -> Option<Arc<CommitListing>> {
        self.last.lock().clone()
    }

    /// The current commit, whose files are not read yet.
    fn open(&self) -> Result<CommitListing, Diagnostic> {
        let (repository, id, tag) = match &self.place {
            RepositoryPlace::Local(path) => {
                let repository = open_repository(path)?;
                let (id, tag) = self.revision.resolve(&repository).map_err(|missing| {
                    let message = format!("cannot read {}: {}", self.place.name(), missing.message);
                    Diagnostic { message, ..missing }
                })?;
                (repository, id, tag)
            }
            RepositoryPlace::Remote(mirror) => {
                let (repository, id) = mirror.head()?;
                (repository, id, mirror.tag_of(id))
            }
        };
        self.check(&repository, id).inspect_err(|_| *self.refused.lock() = Some(id))?;
        // Both are of one commit, whatever becomes of the ref meanwhile.
        let surrounding = match self.surrounding.as_slice() {
            [] => None,
            paths => Some(Arc::new(self.files(open_repository(repository.path())?, id, paths)) as Arc<dyn Tree>),
        };
        let mut own = self.files(repository, id, std::slice::from_ref(&self.inside));
        own.values = Some(Arc::clone(&self.values));
        let tree = SurroundedTree::wrap(Arc::new(own), surrounding, UnsetValues::Require);
        Ok(CommitListing { id, tree, tag, files: None })
    }

    /// Checks a commit before it is read.
    fn check(&self, repository: &Repository, id: Oid) -> Result<(), Diagnostic> {
        if let Some(verifier) = &self.verifier {
            verifier.check(repository, id)?;
        }
        self.lineage.as_ref().map_or(Ok(()), |lineage| lineage.check(repository, id))
    }

    fn files(&self, repository: Repository, id: Oid, paths: &[PathBuf]) -> CommitTree {
        let mut files = CommitTree::at(repository, id, self.revision.to_string(), paths);
        files.repository_name = self.place.name();
        files.stop = self.stop.clone();
        files.allow_outside_files = self.allow_outside_files;
        files
    }
}

fn unlisted() -> Fault {
    Fault::new(Code::FileUnreadable, "the commit of the manifests is unknown")
}

impl Tree for RefTree {
    fn manifests(&self) -> TreeFiles {
        self.values.begin();
        *self.refused.lock() = None;
        let opened = match self.open() {
            Ok(opened) => opened,
            Err(unreadable) => {
                *self.last.lock() = None;
                return (Vec::new(), vec![unreadable]);
            }
        };
        let known = self.listing().filter(|last| last.id == opened.id).and_then(|last| last.files.clone());
        let (files, diagnostics) = known.map_or_else(|| opened.tree.manifests(), |files| (files, Vec::new()));
        let kept = diagnostics.is_empty().then(|| files.clone());
        *self.last.lock() = Some(Arc::new(CommitListing { files: kept, ..opened }));
        (files, diagnostics)
    }

    /// The commit, also of one that was refused: the history and the status name it. Nothing else that it says counts.
    fn commit(&self) -> Option<String> {
        match self.listing() {
            Some(listing) => listing.tree.commit(),
            None => self.refused.lock().map(|id| id.to_string()),
        }
    }

    fn commit_details(&self) -> GitCommitDetails {
        let Some(listing) = self.listing() else { return GitCommitDetails::default() };
        GitCommitDetails { tag: listing.tag.clone(), ..listing.tree.commit_details() }
    }

    fn file(&self, manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        self.listing().ok_or_else(unlisted)?.tree.file(manifest, name)
    }

    fn files_read(&self) -> Vec<NotedFile> {
        self.values.files_read()
    }

    fn token_file(&self, manifest: &ManifestFile, file: PathBuf) -> Result<PathBuf, Fault> {
        self.listing().ok_or_else(unlisted)?.tree.token_file(manifest, file)
    }

    fn has_surrounding(&self) -> bool {
        !self.surrounding.is_empty()
    }
}
