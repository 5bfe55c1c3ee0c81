//! Remote repositories, which are fetched into bare mirrors by the program `git` (D88).
//!
//! # The problem
//!
//! The manifests are at a forge, and the network, the forge and everybody who can push there are not trusted: a fetch
//! can hang, send without end, or be killed in the middle. The gateway must keep the last commit, and its memory.
//!
//! # The idea
//!
//! Each source has a mirror: a bare repository with nothing that a fetch would not bring back ([`Mirrors`]). One fetch
//! lists the refs, fetches only the one that is wanted, and then moves a ref of the mirror to the new commit. That ref
//! is what is read, so a killed process leaves the old commit or the new one. It depends on the wanted revision, too:
//! after a change of the configuration, the commit of the former revision is not read.
//!
//! `git` does the network ([`git_process`]), because its configuration on the machine, such as credential helpers and jump
//! hosts, is what makes `git fetch` work there. libgit2 reads the objects.
//!
//! For example, `main` at the forge has moved. `ls-remote` names the new commit, `fetch` brings it to a ref of its own,
//! and the next step publishes it. If the pack is over the limit, the old commit stays and the failure of the mirror
//! says why.
//!
//! A mirror that is damaged, has too many packs or cannot be fetched into is replaced by a new one, which is complete
//! before it takes the place.
//!
//! # What it never does
//!
//! It reads no hook and no configuration of a repository, shows no secret in a message or in arguments, and asks nobody
//! for input.

mod access;
mod failure;
mod fetch;
mod fetch_limits;
mod git_process;
mod mirrors;
mod url;

use std::io;

use git2::{Oid, Repository};

pub(crate) use super::git::revision_spec::RevisionSpec;
use crate::manifest::prelude::*;
use crate::model::Cause;
pub(crate) use access::{PasswordPlace, RemoteAccess};
use failure::FetchFault;
use fetch_limits::{FetchLimits, LIMITS};
use git_process::RunningFetch;
pub(crate) use mirrors::Mirrors;
pub(crate) use url::{GitTransport, RemoteUrl};

/// The mirror of a remote repository.
#[derive(Debug)]
pub(crate) struct RemoteMirror {
    folder: PathBuf,
    /// The address of the repository.
    pub url: RemoteUrl,
    wanted: RevisionSpec,
    access: RemoteAccess,
    limits: FetchLimits,
    /// Keeps a temporary folder while the mirror is used.
    _mirrors: Arc<Mirrors>,
    /// The commit of the last fetch and its tag, if that was chosen from a range of versions.
    chosen: Lock<Option<(Oid, String)>>,
    /// Why the last fetch failed, if it did.
    failure: Lock<Option<Diagnostic>>,
}

impl RemoteMirror {
    /// The mirror for a source. Nothing is fetched yet.
    pub(crate) fn new(
        mirrors: Arc<Mirrors>,
        source: &str,
        url: RemoteUrl,
        wanted: RevisionSpec,
        access: RemoteAccess,
    ) -> Self {
        let folder = mirrors.folder_for(source, &url.text);
        let (chosen, failure) = (Lock::default(), Lock::default());
        Self { folder, url, wanted, access, limits: LIMITS, _mirrors: mirrors, chosen, failure }
    }

    /// The tag of a commit that the last fetch chose from a range of versions.
    pub(super) fn tag_of(&self, commit: Oid) -> Option<String> {
        let chosen = self.chosen.lock();
        chosen.as_ref().filter(|(id, _)| *id == commit).map(|(_, tag)| tag.clone())
    }

    /// Why the last fetch failed, if it did.
    pub(crate) fn failure(&self) -> Option<Diagnostic> {
        self.failure.lock().clone()
    }

    /// Fetches the commit of the revision. `goes_on` is called while it runs; once it returns false, the fetch is given up.
    /// Returns whether the repository is fetched; `failure` has the reason if it is not.
    pub(crate) fn fetch(&self, goes_on: &mut dyn FnMut() -> bool) -> bool {
        let failure = match self.run(&mut RunningFetch::new(self.limits, goes_on)) {
            Ok(()) => None,
            Err(FetchFault::Stopped) => return self.failure.lock().is_none(),
            Err(FetchFault::Remote((reason, help)) | FetchFault::Mirror((reason, help))) => {
                let message = format!("cannot fetch {}: {reason}", printable_path(&self.url.text));
                Some(not_fetched(message).help(help))
            }
        };
        let is_fetched = failure.is_none();
        *self.failure.lock() = failure;
        is_fetched
    }

    /// The mirror, and the commit to read.
    pub(super) fn head(&self) -> Result<(Repository, Oid), Diagnostic> {
        let opened = || {
            let mirror = Repository::open_bare(&self.folder).ok()?;
            let id = self.published(&mirror)?;
            // A mirror that lost its files has no commit to read.
            mirror.find_commit(id).ok()?;
            Some((mirror, id))
        };
        opened().ok_or_else(|| {
            self.failure().unwrap_or_else(|| {
                let message = format!("{} has not been fetched yet", self.url.text);
                not_fetched(message).help("wait for the first fetch to finish")
            })
        })
    }
}

fn not_fetched(message: String) -> Diagnostic {
    Diagnostic::error(Code::FetchFailed, message).caused_by(Cause::NotFetched)
}

/// The error of mirrors that cannot be created.
pub(crate) fn no_mirrors(error: &io::Error) -> Diagnostic {
    Diagnostic::error(Code::Unreadable, format!("cannot create the folder of the mirrors: {error}"))
        .help("check free disk space and the permissions of the store's folder")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::{net::TcpListener, time::Duration};

    use super::*;
    use crate::model::diagnostics::diagnostic::Name;

    fn mirror(url: &str, limits: FetchLimits) -> RemoteMirror {
        let mirrors = Arc::new(Mirrors::within(None).unwrap());
        let url = RemoteUrl::parse(url).unwrap().unwrap();
        let wanted = RevisionSpec::Ref("main".into());
        RemoteMirror { limits, ..RemoteMirror::new(mirrors, "shop", url, wanted, RemoteAccess::default()) }
    }

    #[test]
    fn a_server_that_never_answers_is_given_up() {
        // The listener accepts connections without a thread.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/edge", listener.local_addr().unwrap());
        let limits = FetchLimits { silence: Duration::from_millis(200), ..LIMITS };
        let silent = mirror(&url, limits);
        assert!(!silent.fetch(&mut || true));
        let failure = silent.failure().unwrap();
        assert_eq!(failure.code, Name::Code(Code::FetchFailed));
        assert!(failure.message.contains("has sent nothing"), "{}", failure.message);
        assert_eq!(silent.head().err().unwrap().message, failure.message, "what was never fetched cannot be read");
        let late = FetchLimits { time: Duration::from_millis(200), ..LIMITS };
        let slow = mirror(&url, late);
        assert!(!slow.fetch(&mut || true) && slow.failure().unwrap().message.contains("not finished after"));
        // A shutdown does not wait for it, and is no failure.
        let stopped = mirror(&url, LIMITS);
        assert!(stopped.fetch(&mut || false) && stopped.failure().is_none());
    }

    #[test]
    fn an_address_without_a_server_is_a_failure() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/edge", listener.local_addr().unwrap());
        drop(listener);
        let unreachable = mirror(&url, LIMITS);
        assert!(!unreachable.fetch(&mut || true));
        let message = unreachable.failure().unwrap().message;
        assert!(message.starts_with(&format!("cannot fetch {url}: ")), "{message}");
    }

    #[test]
    fn a_repository_that_is_too_large_is_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let origin = Repository::init_bare(folder.path()).unwrap();
        let commit = |bytes: &[u8]| {
            let mut tree = origin.treebuilder(None).unwrap();
            tree.insert("file", origin.blob(bytes).unwrap(), 0o100_644).unwrap();
            let tree = origin.find_tree(tree.write().unwrap()).unwrap();
            let author = git2::Signature::new("t", "t@example.com", &git2::Time::new(1_780_000_000, 0)).unwrap();
            let id = origin.commit(None, &author, &author, "edge", &tree, &[]).unwrap();
            origin.reference("refs/heads/main", id, true, "").unwrap();
            id
        };
        let small = commit(b"small");
        let url = format!("file://{}", folder.path().display());
        let mirror = mirror(&url, FetchLimits { bytes: 1 << 20, ..LIMITS });
        assert!(mirror.fetch(&mut || true), "{:?}", mirror.failure());
        // Data that cannot be compressed.
        let mut state = 1_u32;
        let noise = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        });
        commit(&noise.take(3 << 20).collect::<Vec<_>>());
        assert!(!mirror.fetch(&mut || true));
        let message = mirror.failure().unwrap().message;
        assert!(message.ends_with("more than 1 MiB to receive"), "{message}");
        assert_eq!(mirror.head().unwrap().1, small, "the last commit stays");
    }
}
