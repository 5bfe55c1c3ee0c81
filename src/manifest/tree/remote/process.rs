//! Fetches in processes of their own (D88). libgit2 limits neither the list of refs that a server sends nor the time of a
//! connection, and its trusted authorities are those of the whole process. A process of its own can be limited, killed and
//! given other authorities.
//!
//! The server writes a request as one line of JSON, and keeps the pipe open while it wants the result. The process answers
//! with an empty line whenever it has received something, and with the outcome as a line of JSON.

use std::{
    env, fs,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use git2::Oid;
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};

use super::{
    POLL,
    access::{PasswordPlace, RemoteAccess},
    fetch::{FetchJob, FetchState},
    mirrors::remove_leftovers,
    url::RemoteUrl,
};
use crate::{
    manifest::tree::git::revision_spec::WantedRevision,
    model::diagnostics::{code::Code, diagnostic::Diagnostic},
};

/// The argument that makes the program fetch for a server.
pub(crate) const FETCH_ARGUMENT: &str = "__fetch";
/// The most bytes that a fetch may allocate: the list of a million refs, or a large object.
const MOST_MEMORY: u64 = 1 << 30;
/// The variables that a connection can need.
const PASSED_ON: [&str; 18] = [
    "HOME",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "LOCALDOMAIN",
    "LOGNAME",
    "NIX_SSL_CERT_FILE",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "PATH",
    "RES_OPTIONS",
    "SSH_AUTH_SOCK",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CONFIG_HOME",
];
/// The same, in lower or upper case.
const PROXIES: [&str; 4] = ["all_proxy", "http_proxy", "https_proxy", "no_proxy"];

/// What to fetch. It has no secret: the process reads files and variables itself.
#[derive(Serialize, Deserialize)]
struct FetchRequest {
    folder: PathBuf,
    url: String,
    /// The branch, tag or commit, unless it is a range of versions.
    revision: Option<String>,
    semver: Option<String>,
    access: RemoteAccess,
}

/// How a fetch ended.
#[derive(Serialize, Deserialize)]
struct FetchOutcome {
    /// The message and help of a failure.
    failure: Option<(String, Option<String>)>,
    /// The commit and its tag, if that was chosen from a range of versions.
    chosen: Option<(String, String)>,
}

impl FetchRequest {
    fn of(job: &FetchJob) -> Self {
        let (revision, semver) = match &job.wanted {
            WantedRevision::Ref(name) => (Some(name.clone()), None),
            WantedRevision::Semver(range) => (None, Some(range.to_string())),
        };
        // The environment of the process has the authorities.
        let access = RemoteAccess { ca_file: None, ..job.access.clone() };
        Self { folder: job.folder.clone(), url: job.url.as_str().to_owned(), revision, semver, access }
    }

    fn into_job(self) -> Option<FetchJob> {
        let Self { folder, url, revision, semver, access } = self;
        let url = RemoteUrl::parse(&url).ok()??;
        let wanted = match (revision, semver) {
            (Some(name), None) => WantedRevision::Ref(name),
            (None, Some(range)) => WantedRevision::semver(&range).ok()?,
            _ => return None,
        };
        Some(FetchJob { folder, url, wanted, access, chosen: Mutex::default() })
    }
}

/// Runs a fetch in a process of `program`, which calls [`fetch_for_server`].
pub(super) fn fetch_with(program: &Path, job: &FetchJob, state: &FetchState) -> Result<(), Diagnostic> {
    let unstarted = |error: String| {
        let help = "check the limits on processes and memory".to_owned();
        job.failed((format!("cannot start the process of the fetch: {error}"), help))
    };
    job.access.check_authorities().map_err(|refusal| job.failed(refusal))?;
    let request = serde_json::to_string(&FetchRequest::of(job)).map_err(|error| unstarted(error.to_string()))?;
    let mut command = Command::new(program);
    command.arg0("edgewright").arg(FETCH_ARGUMENT);
    limit_environment(&mut command, &job.access);
    // The signals of a terminal are for the server, which then ends the process.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    if let Some(file) = &job.access.ca_file {
        // A folder without certificates, so that only those of the file are trusted.
        command.env("SSL_CERT_FILE", file).env("SSL_CERT_DIR", "/dev/null");
    }
    let mut process = command.spawn().map_err(|error| unstarted(error.to_string()))?;
    let (input, output) = (process.stdin.take(), process.stdout.take());
    state.set_process(process);
    let mut outcome = None;
    if let (Some(mut input), Some(output)) = (input, output) {
        // If the process has ended already, its output is empty.
        let _ = writeln!(input, "{request}");
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if line.is_empty() {
                state.step();
            } else {
                outcome = serde_json::from_str::<FetchOutcome>(&line).ok();
            }
        }
    }
    let status = state.end_process().map_or_else(|| "unknown status".to_owned(), |status| status.to_string());
    match outcome {
        Some(FetchOutcome { failure: None, chosen }) => {
            let chosen = chosen.and_then(|(commit, tag)| Some((Oid::from_str(&commit).ok()?, tag)));
            *job.chosen.lock().unwrap_or_else(PoisonError::into_inner) = chosen;
            Ok(())
        }
        Some(FetchOutcome { failure: Some((message, help)), .. }) => {
            Err(Diagnostic { help, ..Diagnostic::error(Code::FetchFailed, message) })
        }
        None => {
            let help = format!("check that the server does not send more than {} MiB of refs", MOST_MEMORY >> 20);
            Err(job.failed((format!("the process of the fetch ended early ({status})"), help)))
        }
    }
}

/// Passes on the variables that a fetch needs. The environment of a server can have the master key and other secrets, which
/// a process that parses what others send must not have.
fn limit_environment(command: &mut Command, access: &RemoteAccess) {
    let password = match &access.password {
        Some(PasswordPlace::Variable(name)) => Some(name.as_str()),
        _ => None,
    };
    let is_needed = |name: &str| {
        password == Some(name)
            || PASSED_ON.contains(&name)
            || PROXIES.iter().any(|proxy| proxy.eq_ignore_ascii_case(name))
    };
    let kept = env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_needed));
    command.env_clear().envs(kept);
}

/// Fetches what a server asks for on `input`, and tells the outcome on `output`. Returns whether there is one.
pub(crate) fn fetch_for_server(input: impl Read + Send + 'static, output: impl Write + Send + 'static) -> bool {
    let mut input = BufReader::new(input);
    let mut request = String::new();
    if input.read_line(&mut request).is_err() {
        return false;
    }
    let job = serde_json::from_str::<FetchRequest>(&request).ok().and_then(FetchRequest::into_job);
    let Some(job) = job else { return false };
    let (state, output) = (Arc::new(FetchState::default()), Arc::new(Mutex::new(output)));
    let waiting = thread::Builder::new().spawn(move || {
        // When the server has ended, the next one may use the mirror.
        let _ = io::copy(&mut input, &mut io::sink());
        std::process::exit(1);
    });
    let (watched, reported) = (Arc::clone(&state), Arc::clone(&output));
    let reporting = thread::Builder::new().spawn(move || {
        let mut steps = 0;
        loop {
            thread::sleep(POLL);
            let now = watched.steps();
            if now != steps {
                steps = now;
                if !write_line(&reported, "") {
                    return;
                }
            }
        }
    });
    if waiting.is_err() || reporting.is_err() {
        return false;
    }
    // An earlier fetch may have been killed.
    remove_leftovers(&job.folder);
    confine();
    let failure = job.run(&state).err().map(|failure| (failure.message, failure.help));
    let chosen = job.chosen.lock().unwrap_or_else(PoisonError::into_inner).take();
    let outcome = FetchOutcome { failure, chosen: chosen.map(|(commit, tag)| (commit.to_string(), tag)) };
    serde_json::to_string(&outcome).is_ok_and(|outcome| write_line(&output, &outcome))
}

/// Writes a line. Returns whether it is written.
fn write_line(output: &Mutex<impl Write>, line: &str) -> bool {
    let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
    writeln!(output, "{line}").and_then(|()| output.flush()).is_ok()
}

/// Limits what the process allocates from now on, and who can read its memory and environment. Files in memory, such as
/// packs, do not count.
fn confine() {
    // If the memory of the machine runs out all the same, this process should be ended, and not the server.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    // Afterwards, this process cannot write to its files in /proc either.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    // What the allocator has reserved counts, too.
    let reserved = status.lines().find_map(|line| {
        let kibibytes = line.strip_prefix("VmData:")?.trim().strip_suffix("kB")?;
        kibibytes.trim().parse::<u64>().ok()
    });
    if let Some(reserved) = reserved {
        let most = Some(reserved.saturating_mul(1024).saturating_add(MOST_MEMORY));
        let _ = setrlimit(Resource::Data, Rlimit { current: most, maximum: most });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::manifest::tree::remote::url::tests::url;

    #[test]
    fn a_request_describes_the_whole_fetch_and_has_no_authorities() {
        let access = RemoteAccess {
            username: Some("deploy".into()),
            password: Some(PasswordPlace::Variable("TOKEN".into())),
            ca_file: Some("ca.pem".into()),
            ..RemoteAccess::default()
        };
        let ranges =
            ["^1.2", "1", "*", "1.*", ">=1.0, <2", "~2.0.0-rc.1"].map(|it| WantedRevision::semver(it).unwrap());
        for wanted in [WantedRevision::Ref("main".into())].into_iter().chain(ranges) {
            let (folder, url) = (PathBuf::from("/srv/mirror"), url("https://git.example.com/team/edge.git"));
            let job = FetchJob { folder, url, wanted, access: access.clone(), chosen: Mutex::default() };
            let text = serde_json::to_string(&FetchRequest::of(&job)).unwrap();
            let same = serde_json::from_str::<FetchRequest>(&text).unwrap().into_job().unwrap();
            assert_eq!((&same.folder, &same.url, &same.wanted), (&job.folder, &job.url, &job.wanted));
            assert_eq!(same.head(), job.head(), "both name the commit to read alike");
            assert_eq!(same.access, RemoteAccess { ca_file: None, ..access.clone() });
        }
    }

    #[test]
    fn a_fetch_has_no_variables_but_those_that_it_needs() {
        // cargo sets these for tests.
        let password = Some(PasswordPlace::Variable("CARGO_PKG_NAME".into()));
        let environment = |password: Option<PasswordPlace>| {
            let mut command = Command::new("env");
            limit_environment(&mut command, &RemoteAccess { password, ..RemoteAccess::default() });
            String::from_utf8(command.output().unwrap().stdout).unwrap()
        };
        let (with, without) = (environment(password), environment(None));
        assert!(with.contains("CARGO_PKG_NAME=edgewright") && with.contains("PATH="), "{with}");
        assert!(!with.contains("CARGO_MANIFEST_DIR") && !without.contains("CARGO_"), "{with}{without}");
    }

    #[test]
    fn a_process_that_does_not_answer_is_a_failure() {
        let (folder, url) = (PathBuf::from("/nonexistent"), url("https://git.example.com/edge"));
        let wanted = WantedRevision::Ref("main".into());
        let job = FetchJob { folder, url, wanted, access: RemoteAccess::default(), chosen: Mutex::default() };
        let failure = fetch_with(Path::new("false"), &job, &FetchState::default()).unwrap_err();
        assert!(failure.message.contains("ended early (exit status: "), "{}", failure.message);
        let failure = fetch_with(Path::new("/nonexistent"), &job, &FetchState::default()).unwrap_err();
        assert!(failure.message.contains("cannot start the process"), "{}", failure.message);
    }

    #[test]
    fn anything_but_a_request_is_refused() {
        for input in ["", "\n", "{}\n", "not a request\n"] {
            assert!(!fetch_for_server(input.as_bytes(), Vec::<u8>::new()), "{input:?}");
        }
    }
}
