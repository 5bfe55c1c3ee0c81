//! Remote repositories, which are fetched into bare mirrors (D88).

mod access;
mod fetch;
mod known_hosts;
mod mirrors;
mod process;
mod url;

use std::{
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc::{RecvTimeoutError, channel},
    },
    time::{Duration, Instant},
};

use git2::{Oid, Repository};

pub(crate) use super::git::revision_spec::WantedRevision;
use crate::model::diagnostics::{code::Code, diagnostic::Diagnostic};
pub(crate) use access::{PasswordPlace, RemoteAccess};
use fetch::{FetchJob, FetchState};
pub(super) use known_hosts::{fingerprint, matches_list};
pub(crate) use mirrors::Mirrors;
pub(crate) use process::{FETCH_ARGUMENT, fetch_for_server};
pub(crate) use url::{GitTransport, RemoteUrl};

/// How often those who wait for a fetch are asked whether to go on.
const POLL: Duration = Duration::from_millis(100);
/// The most fetches of a source that were given up and have not ended: each holds a thread and a connection.
const MOST_HANGING: usize = 16;

/// How long a fetch may take.
#[derive(Debug, Clone, Copy)]
struct FetchLimits {
    /// Without anything received.
    silence: Duration,
    /// In all.
    time: Duration,
}

/// The limits unless a test sets others.
const LIMITS: FetchLimits = FetchLimits { silence: Duration::from_secs(60), time: Duration::from_secs(600) };

/// The mirror of a remote repository.
#[derive(Debug)]
pub(crate) struct RemoteMirror {
    job: Arc<FetchJob>,
    limits: FetchLimits,
    /// What fetches. It also keeps a temporary folder while the mirror is used.
    mirrors: Arc<Mirrors>,
    /// The fetches that have not ended.
    unfinished: Arc<AtomicUsize>,
    /// Why the last fetch failed, if it did.
    failure: Mutex<Option<Diagnostic>>,
}

impl RemoteMirror {
    /// The mirror for a source. Nothing is fetched yet.
    pub(crate) fn new(
        mirrors: Arc<Mirrors>,
        source: &str,
        url: RemoteUrl,
        wanted: WantedRevision,
        access: RemoteAccess,
    ) -> Self {
        let folder = mirrors.of(source, url.as_str());
        Self {
            job: Arc::new(FetchJob { folder, url, wanted, access, chosen: Mutex::default() }),
            limits: LIMITS,
            mirrors,
            unfinished: Arc::default(),
            failure: Mutex::default(),
        }
    }

    /// The address of the repository.
    pub(crate) fn url(&self) -> &RemoteUrl {
        &self.job.url
    }

    /// The tag of a commit that the last fetch chose from a range of versions.
    pub(super) fn tag_of(&self, commit: Oid) -> Option<String> {
        let chosen = self.job.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        chosen.as_ref().filter(|(id, _)| *id == commit).map(|(_, tag)| tag.clone())
    }

    /// Why the last fetch failed, if it did.
    pub(crate) fn failure(&self) -> Option<Diagnostic> {
        self.last_failure().clone()
    }

    fn last_failure(&self) -> MutexGuard<'_, Option<Diagnostic>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fetches the commit of the revision. `goes_on` is called while it runs; once it returns false, the fetch is given up.
    /// Returns whether the repository is fetched; `failure` has the reason if it is not.
    pub(crate) fn fetch(&self, goes_on: &mut dyn FnMut() -> bool) -> bool {
        if let Some(result) = self.fetched(goes_on) {
            *self.last_failure() = result.err();
        }
        self.last_failure().is_none()
    }

    fn fetched(&self, goes_on: &mut dyn FnMut() -> bool) -> Option<Result<(), Diagnostic>> {
        let failed = |reason: String, help: &str| Some(Err(self.job.failed((reason, help.to_owned()))));
        if self.unfinished.load(Ordering::Acquire) > MOST_HANGING {
            let reason = format!("{MOST_HANGING} earlier fetches hang");
            return failed(reason, "check the network, and restart the server");
        }
        let state = Arc::new(FetchState::default());
        let (done, result) = channel();
        let (job, shared) = (Arc::clone(&self.job), Arc::clone(&state));
        let program = self.mirrors.program().map(ToOwned::to_owned);
        let unfinished = Unfinished::one_more(&self.unfinished);
        let thread = std::thread::Builder::new().name("fetch".into()).spawn(move || {
            let _unfinished = unfinished;
            let _ = done.send(match &program {
                Some(program) => process::fetch_with(program, &job, &shared),
                None if job.access.ca_file.is_some() => {
                    let reason = "`ca_file` requires a fetch in a process of its own".to_owned();
                    Err(job.failed((reason, "remove it, and set SSL_CERT_FILE for the whole process".to_owned())))
                }
                None => job.run(&shared),
            });
        });
        if let Err(error) = thread {
            return failed(format!("cannot start a thread: {error}"), "check the limits of the process");
        }
        let began = Instant::now();
        let (mut steps, mut heard) = (state.steps(), began);
        loop {
            match result.recv_timeout(POLL) {
                Ok(result) => return Some(result),
                Err(RecvTimeoutError::Disconnected) => {
                    return failed(
                        "internal error in edgewright".into(),
                        "report it with the panic message in the log",
                    );
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if !goes_on() {
                state.abandon();
                return None;
            }
            let now = state.steps();
            if now != steps {
                (steps, heard) = (now, Instant::now());
            }
            let FetchLimits { silence, time } = self.limits;
            let reason = if heard.elapsed() > silence {
                format!("the server has sent nothing for {} seconds", silence.as_secs())
            } else if began.elapsed() > time {
                format!("not finished after {} seconds", time.as_secs())
            } else {
                continue;
            };
            state.abandon();
            return failed(
                reason,
                "check the network and the server; the last commit that was fetched stays in effect",
            );
        }
    }

    /// The mirror, and the commit to read.
    pub(super) fn head(&self) -> Result<(Repository, Oid), Diagnostic> {
        let opened = || -> Result<(Repository, Oid), git2::Error> {
            let mirror = Repository::open_bare(&self.job.folder)?;
            let id = mirror.refname_to_id(&self.job.head())?;
            // A mirror that lost its files has no commit to read.
            mirror.find_commit(id)?;
            Ok((mirror, id))
        };
        opened().map_err(|_| {
            self.failure().unwrap_or_else(|| {
                let message = format!("{} has not been fetched yet", self.job.url);
                Diagnostic::error(Code::FetchFailed, message).help("wait for the first fetch to end")
            })
        })
    }
}

/// Counts a fetch until its thread ends, even by a panic.
struct Unfinished(Arc<AtomicUsize>);

impl Unfinished {
    fn one_more(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(count))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The error of mirrors that cannot be created.
pub(crate) fn no_mirrors(error: &io::Error) -> Diagnostic {
    Diagnostic::error(Code::Unreadable, format!("cannot create the folder of the mirrors: {error}"))
        .help("check free disk space and the permissions of the store's folder")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::model::diagnostics::diagnostic::Name;

    fn mirror(url: &str, limits: FetchLimits) -> RemoteMirror {
        let mirrors = Arc::new(Mirrors::within(None).unwrap());
        let url = RemoteUrl::parse(url).unwrap().unwrap();
        let wanted = WantedRevision::Ref("main".into());
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
}
