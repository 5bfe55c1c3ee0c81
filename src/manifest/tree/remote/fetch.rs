//! One fetch into a mirror. It runs in a process or thread of its own, because a connection that hangs cannot be interrupted.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Child, ExitStatus},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use git2::{
    AutotagOption, CertificateCheckStatus, ErrorClass, ErrorCode, FetchOptions, FetchPrune, Oid, ProxyOptions,
    RemoteCallbacks, RemoteRedirect, Repository,
};

use super::{
    access::{FetchRefusal, LoadedAccess, RemoteAccess},
    mirrors::create_folder,
    url::RemoteUrl,
};
use crate::{
    manifest::tree::git::revision_spec::WantedRevision,
    model::diagnostics::{code::Code, diagnostic::Diagnostic},
    syntax::text::printable_path,
};

/// The most bytes that a fetch receives.
const MOST_BYTES: usize = 1 << 30;
/// A mirror with more packs is fetched anew: nothing else ever joins them.
const MOST_PACKS: usize = 200;
/// A ref that no repository has. Fetching it only connects and lists the refs.
const NOTHING: &str = "+refs/edgewright/nothing:refs/edgewright/nothing";

/// What to fetch, and where to.
#[derive(Debug)]
pub(super) struct FetchJob {
    /// The folder of the mirror.
    pub folder: PathBuf,
    pub url: RemoteUrl,
    pub wanted: WantedRevision,
    pub access: RemoteAccess,
    /// The commit of the last fetch and its tag, if that was chosen from a range of versions.
    pub chosen: Mutex<Option<(Oid, String)>>,
}

/// What a fetch shares with those who wait for it.
#[derive(Debug, Default)]
pub(super) struct FetchState {
    /// Set when nobody waits any more: the mirror then stays as it is.
    is_abandoned: AtomicBool,
    /// Grows whenever something is received.
    steps: AtomicU64,
    /// Why a callback ended the fetch; libgit2 has its own words for that.
    refusal: Mutex<Option<FetchRefusal>>,
    /// The process of the fetch, if it has one.
    process: Mutex<Option<Child>>,
}

impl FetchState {
    pub(super) fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Release);
        self.kill();
    }

    fn process(&self) -> MutexGuard<'_, Option<Child>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kill(&self) {
        if let Some(process) = self.process().as_mut() {
            let _ = process.kill();
        }
    }

    /// Keeps the process of the fetch, to end it if the fetch is abandoned.
    pub(super) fn set_process(&self, process: Child) {
        *self.process() = Some(process);
        // It may have been abandoned before.
        if self.is_abandoned.load(Ordering::Acquire) {
            self.kill();
        }
    }

    /// Waits for the end of the process.
    pub(super) fn end_process(&self) -> Option<ExitStatus> {
        let process = self.process().take();
        process?.wait().ok()
    }

    pub(super) fn steps(&self) -> u64 {
        self.steps.load(Ordering::Acquire)
    }

    /// Records progress. Returns whether to go on.
    pub(super) fn step(&self) -> bool {
        self.steps.fetch_add(1, Ordering::AcqRel);
        !self.is_abandoned.load(Ordering::Acquire)
    }

    fn refusal(&self) -> MutexGuard<'_, Option<FetchRefusal>> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records why a callback ends the fetch, and returns the error for libgit2.
    fn refuse(&self, refusal: FetchRefusal, code: ErrorCode) -> git2::Error {
        let error = git2::Error::new(code, ErrorClass::Callback, &refusal.0);
        *self.refusal() = Some(refusal);
        error
    }
}

/// Why a fetch failed.
enum FetchFault {
    /// The remote repository, the network or the configuration.
    Remote(FetchRefusal),
    /// The mirror cannot be used; a new one can.
    Mirror(FetchRefusal),
}

impl FetchJob {
    /// Fetches, and moves the mirror's ref to the new commit. A mirror that cannot be used is replaced by a new one, once
    /// that is complete.
    pub(super) fn run(&self, state: &FetchState) -> Result<(), Diagnostic> {
        let is_usable = |mirror: &Repository| {
            let (packs, bytes) = packs(&self.folder);
            packs <= MOST_PACKS && bytes <= 2 * MOST_BYTES as u64 && is_sound(mirror)
        };
        let usable = Repository::open_bare(&self.folder).ok().filter(is_usable);
        let updated = match usable {
            Some(mirror) => match self.update(&mirror, state) {
                Err(FetchFault::Mirror(_)) => self.rebuild(state),
                other => other,
            },
            None => self.rebuild(state),
        };
        updated.map_err(|fault| match fault {
            FetchFault::Remote(refusal) | FetchFault::Mirror(refusal) => self.failed(refusal),
        })
    }

    /// The error of a fetch.
    pub(super) fn failed(&self, (reason, help): FetchRefusal) -> Diagnostic {
        let message = format!("cannot fetch {}: {reason}", printable_path(self.url.as_str()));
        Diagnostic::error(Code::FetchFailed, message).help(help)
    }

    /// The ref of the mirror that names the commit to read. It depends on the revision: after a change of the
    /// configuration, the commit of the former one must not be read.
    pub(super) fn head(&self) -> String {
        let digest = blake3::hash(format!("{:?}", self.wanted).as_bytes()).to_hex();
        format!("refs/edgewright/{digest:.16}")
    }

    /// Fetches into a new mirror, and puts it into the place of the old one.
    fn rebuild(&self, state: &FetchState) -> Result<(), FetchFault> {
        let local = |error: io::Error| {
            let message = format!("cannot write the mirror {}: {error}", self.folder.display());
            FetchFault::Remote((message, "check free disk space and the permissions of the store's folder".to_owned()))
        };
        let (new, old) = (beside(&self.folder, "new"), beside(&self.folder, "old"));
        create_folder(&new).map_err(local)?;
        let updated = Repository::init_bare(&new).map_err(|error| fault(&error, None, state));
        let updated = updated.and_then(|mirror| self.update(&mirror, state));
        if let Err(fault) = updated {
            // What was fetched in part is of no use.
            let _ = remove(&new);
            return Err(fault);
        }
        if self.folder.exists() {
            fs::rename(&self.folder, &old).map_err(local)?;
        }
        fs::rename(&new, &self.folder).map_err(local)?;
        remove(&old).map_err(local)
    }

    /// Fetches into a mirror what the wanted revision needs.
    fn update(&self, mirror: &Repository, state: &FetchState) -> Result<(), FetchFault> {
        let broken = |error: git2::Error| fault(&error, None, state);
        if let Some(commit) = self.wanted.commit_id()
            && mirror.find_commit(commit).is_ok_and(|commit| commit.tree().is_ok())
        {
            return self.publish(mirror, commit, state);
        }
        let access = self.access.load(&self.url).map_err(FetchFault::Remote)?;
        let failed = |error: git2::Error| fault(&error, Some(&access), state);
        let mut options = FetchOptions::new();
        options
            .remote_callbacks(callbacks(&self.url, &access, state))
            .proxy_options(self.proxy())
            .prune(FetchPrune::Off)
            .download_tags(AutotagOption::None)
            .update_fetchhead(false)
            // A redirect to another host would receive the credentials. Those to other ports of this one receive none.
            .follow_redirects(RemoteRedirect::None);
        let mut remote = mirror.remote_anonymous(self.url.as_str()).map_err(failed)?;
        remote.download(&[NOTHING], Some(&mut options)).map_err(failed)?;
        state.step();
        let listed: Vec<(String, Oid)> =
            remote.list().map_err(failed)?.iter().map(|head| (head.name().to_owned(), head.oid())).collect();
        let picked = self.wanted.pick(&listed);
        let specs = match picked {
            Some((name, _)) => vec![format!("+{name}:refs/edgewright/fetched")],
            // Only the history of all branches and tags can have it.
            None if self.wanted.may_be_commit() => {
                ["heads", "tags"].map(|folder| format!("+refs/{folder}/*:refs/edgewright/{folder}/*")).to_vec()
            }
            None => {
                let missing = self.wanted.missing(listed.iter().map(|(name, _)| name.as_str()));
                return Err(FetchFault::Remote((missing.message, missing.help.unwrap_or_default())));
            }
        };
        remote.download(specs.as_slice(), Some(&mut options)).map_err(failed)?;
        let _ = remote.disconnect();
        let found = match picked {
            Some((_, id)) => mirror.find_object(id, None),
            None => mirror.revparse_single(&self.wanted.to_string()),
        };
        let found = found.map_err(|error| match error.code() {
            ErrorCode::NotFound if picked.is_none() => {
                let missing = self.wanted.missing(listed.iter().map(|(name, _)| name.as_str()));
                FetchFault::Remote((missing.message, missing.help.unwrap_or_default()))
            }
            _ => broken(error),
        })?;
        let commit = found.peel_to_commit().map_err(|error| {
            let help = "use a branch, tag or commit".to_owned();
            FetchFault::Remote((format!("`{}` is not a commit: {}", self.wanted, error.message()), help))
        })?;
        // A mirror that lost a part of its files is noticed.
        commit.tree().map_err(broken)?;
        self.publish(mirror, commit.id(), state)?;
        let tag = picked.and_then(|(name, _)| self.wanted.chosen_tag(name));
        *self.chosen.lock().unwrap_or_else(PoisonError::into_inner) = tag.map(|tag| (commit.id(), tag.to_owned()));
        Ok(())
    }

    /// Makes a commit the one to read.
    fn publish(&self, mirror: &Repository, commit: Oid, state: &FetchState) -> Result<(), FetchFault> {
        // A fetch that was given up must not move the ref back after a later one.
        if !state.step() {
            return Err(FetchFault::Remote(("interrupted".to_owned(), "the next sync fetches again".to_owned())));
        }
        let moved = mirror.reference(&self.head(), commit, true, "fetch");
        moved.map(drop).map_err(|error| fault(&error, None, state))
    }

    /// The proxy of the environment, but none to this machine.
    fn proxy(&self) -> ProxyOptions<'static> {
        let mut proxy = ProxyOptions::new();
        if !self.url.is_local() {
            proxy.auto();
        }
        proxy
    }
}

fn callbacks<'a>(url: &'a RemoteUrl, access: &'a LoadedAccess, state: &'a FetchState) -> RemoteCallbacks<'a> {
    let mut callbacks = RemoteCallbacks::new();
    let mut asked = 0;
    callbacks.credentials(move |at, user, allowed| {
        if !state.step() {
            return Err(git2::Error::from_str("interrupted"));
        }
        asked += u32::from(!allowed.contains(git2::CredentialType::USERNAME));
        let credentials = access.credentials(url, at, asked, user, allowed);
        credentials.map_err(|refusal| state.refuse(refusal, ErrorCode::Auth))
    });
    callbacks.certificate_check(move |certificate, _| {
        if !state.step() {
            return Err(git2::Error::from_str("interrupted"));
        }
        // libgit2 has checked a certificate of TLS.
        let Some(host) = certificate.as_hostkey() else { return Ok(CertificateCheckStatus::CertificatePassthrough) };
        let checked = access.check_host_key(url, host.hostkey().unwrap_or_default());
        checked.map_err(|refusal| state.refuse(refusal, ErrorCode::Certificate))?;
        Ok(CertificateCheckStatus::CertificateOk)
    });
    callbacks.transfer_progress(move |progress| {
        if progress.received_bytes() > MOST_BYTES {
            let message = format!("more than {} MiB to receive", MOST_BYTES >> 20);
            let help = "use a repository of manifests, without large files in its history".to_owned();
            *state.refusal() = Some((message, help));
            return false;
        }
        state.step()
    });
    callbacks.sideband_progress(move |_| state.step());
    callbacks
}

/// Judges an error of libgit2.
fn fault(error: &git2::Error, access: Option<&LoadedAccess>, state: &FetchState) -> FetchFault {
    if let Some(refusal) = state.refusal().take() {
        return FetchFault::Remote(refusal);
    }
    let text = error.message().trim();
    let text = access.map_or_else(|| text.to_owned(), |access| access.without_secrets(text));
    let help = match error.class() {
        ErrorClass::Ssl => "check the server's certificate; SSL_CERT_FILE names the file of trusted authorities",
        ErrorClass::Ssh => "check the user, `ssh_key_file` and `known_hosts_file`",
        ErrorClass::NoMemory => "use a repository with fewer refs and without very large files",
        ErrorClass::Http => "check the URL, and that the credentials may read the repository",
        _ => "check the URL and the network; the last commit that was fetched stays in effect",
    };
    let refusal = (text, help.to_owned());
    let is_of_mirror = error.code() == ErrorCode::Locked
        || matches!(
            error.class(),
            ErrorClass::Odb | ErrorClass::Object | ErrorClass::Reference | ErrorClass::Repository | ErrorClass::Zlib
        );
    if is_of_mirror { FetchFault::Mirror(refusal) } else { FetchFault::Remote(refusal) }
}

/// Whether a mirror has the commits that its refs name: a power loss can take the end of a pack.
fn is_sound(mirror: &Repository) -> bool {
    let Ok(mut references) = mirror.references_glob("refs/edgewright/*") else { return false };
    references.all(|found| {
        let commit = found.and_then(|reference| reference.peel_to_commit());
        commit.and_then(|commit| commit.tree().map(drop)).is_ok()
    })
}

/// The number of packs in a mirror, and their size in bytes.
fn packs(folder: &Path) -> (usize, u64) {
    let entries = fs::read_dir(folder.join("objects/pack")).into_iter().flatten().flatten();
    let packs = entries.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "pack"));
    packs.fold((0, 0), |(count, bytes), pack| (count + 1, bytes + pack.metadata().map_or(0, |it| it.len())))
}

/// A new name next to a mirror: a fetch that was given up may still write to its own folder.
fn beside(folder: &Path, what: &str) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let (process, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    folder.with_extension(format!("{what}{process}-{number}"))
}

/// Removes a folder if it exists.
fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
