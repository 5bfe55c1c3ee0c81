//! Runs the program `git` within bounds (D88): a hostile server can send refs without end, or nothing at all.
//!
//! A shell script sets the limits of memory and file size, and then becomes git, so that they hold for git and what it
//! starts. All processes of a fetch are one group, which ends with the fetch and with this process ([`Subprocess`]).
//! The environment is empty but for what a connection can need, because that of a server can have the master key.
//! Progress on stderr is the sign of life: silence for a minute ends the fetch.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use std::{env, thread};

use super::access::LoadedAccess;
use super::failure::{FetchFault, explain, redirected};
use super::fetch_limits::FetchLimits;
use super::url::RemoteUrl;
use crate::subprocess::Subprocess;

/// The most bytes that a process of git may allocate: the list of a million refs, or a large object.
const MOST_MEMORY: u64 = 1 << 30;
/// The most bytes of the list of refs, which this process reads.
const MOST_LISTED: usize = 64 << 20;
/// The most bytes that are kept of what git and ssh say: the last ones.
const MOST_STDERR_BYTES: usize = 64 << 10;
/// How often to check whether git has ended.
const PAUSE: Duration = Duration::from_millis(10);
/// How long to wait for the rest of the output of a process that has ended.
const REST: Duration = Duration::from_secs(5);
/// Limits the memory (on Linux) and the files of git, and runs it. If the memory of the machine runs out all the same, git
/// should be ended, and not the server. A version without `--config-env` would also ignore the settings in the environment.
const SCRIPT: &str = "{ echo 1000 >/proc/self/oom_score_adj; ulimit -d \"$1\"; ulimit -f \"$2\"; } 2>/dev/null; shift 2; \
                      exec git --config-env=core.hooksPath=EDGEWRIGHT_NO_HOOKS \"$@\"";
/// The status of a shell that does not find a program.
const NOT_FOUND: i32 = 127;
/// The variables that a connection can need. The environment of a server can have the master key and other secrets.
const PASSED_ON: &[&str] = &[
    "DBUS_SESSION_BUS_ADDRESS",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "HOME",
    "LD_LIBRARY_PATH",
    "LOCALDOMAIN",
    "LOGNAME",
    "NIX_SSL_CERT_FILE",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "PATH",
    "RES_OPTIONS",
    "SSH_AUTH_SOCK",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
];
/// The variables with proxies, each in lower or upper case.
const PROXIES: [&str; 4] = ["all_proxy", "http_proxy", "https_proxy", "no_proxy"];

/// A fetch that has begun.
pub(super) struct RunningFetch<'f> {
    limits: FetchLimits,
    began: Instant,
    /// Whether its result is still needed.
    goes_on: &'f mut dyn FnMut() -> bool,
}

impl<'f> RunningFetch<'f> {
    pub(super) fn new(limits: FetchLimits, goes_on: &'f mut dyn FnMut() -> bool) -> Self {
        Self { limits, began: Instant::now(), goes_on }
    }

    /// Runs git in a mirror, and returns what it prints.
    pub(super) fn git(
        &mut self,
        mirror: &Path,
        url: &RemoteUrl,
        access: &LoadedAccess,
        arguments: &[&str],
    ) -> Result<String, FetchFault> {
        let mut shell = Subprocess::shell(SCRIPT);
        // In KiB, and in blocks of 512 bytes.
        shell.args([MOST_MEMORY >> 10, self.limits.bytes >> 9].map(|limit| limit.to_string()));
        // Without the folder, the configuration of a repository around the working folder would count.
        shell.arg("--git-dir").arg(mirror).args(arguments);
        shell
            .env_clear()
            .envs(passed_on())
            .envs(access.environment.iter().map(|(name, value)| (name, value)))
            .stderr(Stdio::piped());
        let mut git = Subprocess::start(shell).map_err(unstarted)?;
        let steps = Arc::<AtomicU64>::default();
        let printed = collect(git.child.stdout.take(), MOST_LISTED, &steps).map_err(unstarted)?;
        let said = collect(git.child.stderr.take(), MOST_STDERR_BYTES, &steps).map_err(unstarted)?;
        self.wait(&git, &steps)?;
        let status = git.end().map_err(unstarted)?;
        let printed = printed.recv_timeout(REST).map_err(|_| unstarted(io::ErrorKind::TimedOut.into()))?;
        let said = access.without_secrets(&said.recv_timeout(REST).unwrap_or_default());
        if status.code() == Some(NOT_FOUND) {
            let help = "install Git 2.31 or newer, and check PATH in edgewright's environment";
            return Err(FetchFault::remote("the program `git` is not installed", help));
        }
        if !status.success() {
            return Err(explain(url, access, &said));
        }
        if printed.len() > MOST_LISTED {
            let reason = format!("more than {} MiB of refs", MOST_LISTED >> 20);
            return Err(FetchFault::remote(reason, "use a repository with fewer refs"));
        }
        redirected(url, &said).map_or(Ok(printed), |refusal| Err(FetchFault::Remote(refusal)))
    }

    /// Waits until git has ended, unless it is silent or takes too long.
    fn wait(&mut self, git: &Subprocess, steps: &AtomicU64) -> Result<(), FetchFault> {
        let mut heard = (0, Instant::now());
        while !git.has_ended().map_err(unstarted)? {
            if !(self.goes_on)() {
                return Err(FetchFault::Stopped);
            }
            let now = steps.load(Ordering::Relaxed);
            if now != heard.0 {
                heard = (now, Instant::now());
            }
            let FetchLimits { silence, time, .. } = self.limits;
            let reason = if heard.1.elapsed() > silence {
                format!("the server has sent nothing for {} seconds", silence.as_secs())
            } else if self.began.elapsed() > time {
                format!("not finished after {} seconds", time.as_secs())
            } else {
                thread::sleep(PAUSE);
                continue;
            };
            let help = "check the network and the server; the last commit that was fetched stays in effect";
            return Err(FetchFault::remote(reason, help));
        }
        Ok(())
    }
}

/// The fault of a process that cannot be run.
fn unstarted(error: io::Error) -> FetchFault {
    FetchFault::remote(format!("cannot run git: {error}"), "check the limits on processes and memory")
}

/// Keeps the last bytes of a pipe, one more than `most` if it has more, and counts what comes.
fn collect(
    pipe: Option<impl Read + Send + 'static>,
    most: usize,
    steps: &Arc<AtomicU64>,
) -> io::Result<Receiver<String>> {
    let mut pipe = pipe.ok_or_else(|| io::Error::other("it has no output"))?;
    let ((sender, receiver), steps) = (channel(), Arc::clone(steps));
    thread::Builder::new().name("git".into()).spawn(move || {
        let (mut kept, mut buffer) = (Vec::new(), [0; 8192]);
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            steps.fetch_add(1, Ordering::Relaxed);
            kept.extend_from_slice(buffer.get(..count).unwrap_or_default());
            if kept.len() > 2 * most {
                kept.drain(..kept.len() - most - 1);
            }
        }
        let _ = sender.send(String::from_utf8_lossy(&kept).into_owned());
    })?;
    Ok(receiver)
}

fn passed_on() -> impl Iterator<Item = (OsString, OsString)> {
    let is_needed =
        |name: &str| PASSED_ON.contains(&name) || PROXIES.iter().any(|proxy| proxy.eq_ignore_ascii_case(name));
    env::vars_os().filter(move |(name, _)| name.to_str().is_some_and(is_needed))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_long_output_is_kept() {
        let steps = Arc::default();
        let of = |text: &str| {
            let read = collect(Some(io::Cursor::new(text.to_owned())), 4, &steps).unwrap();
            read.recv().unwrap()
        };
        assert_eq!((of("").as_str(), of("abcd").as_str(), of("abcdefgh12").as_str()), ("", "abcd", "fgh12"));
        assert_eq!(steps.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_fetch_has_no_variables_but_those_that_it_needs() {
        // cargo sets the others for tests.
        let names: Vec<String> = passed_on().filter_map(|(name, _)| name.into_string().ok()).collect();
        assert!(names.contains(&"PATH".to_owned()), "{names:?}");
        assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
    }
}
