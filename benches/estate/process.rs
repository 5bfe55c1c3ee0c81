//! The program as a user runs it: a command to its end, and a server until it is stopped.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::http::Client;

/// The program of this build.
const PROGRAM: &str = env!("CARGO_BIN_EXE_edgewright");
/// The interval of memory readings. The kernel keeps the peak, so only the growth of the last interval is missed.
const INTERVAL: Duration = Duration::from_millis(2);
/// The unit of processor times in `/proc`.
const TICKS: f64 = 100.0;
/// The longest wait for a server to start.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Builds the command, independent of the environment and of files outside the scratch folder.
fn command(scratch: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).current_dir(scratch).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("EDGEWRIGHT_") {
            command.env_remove(name);
        }
    }
    command.envs(environment.iter().copied());
    command
}

/// A process that has ended with code 0.
pub(crate) struct Finished {
    /// The time from the start to the end, in seconds.
    pub wall: f64,
    /// The processor time in user mode, in seconds, where the system tells it.
    pub user: Option<f64>,
    /// The peak of the resident memory in bytes, where the system tells it.
    pub peak: Option<u64>,
    out: PathBuf,
}

impl Finished {
    /// Reads the standard output.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(&self.out).unwrap()
    }

    /// Checks that the last line of the output contains a text.
    pub(crate) fn assert_says(&self, expected: &str) {
        let output = self.output();
        let last = output.lines().last().unwrap_or_default();
        assert!(last.contains(expected), "expected {expected:?} in {last:?}");
    }
}

/// Runs the program to its end. Its outputs go to files, as in a script.
pub(crate) fn run(scratch: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Finished {
    let (out, err) = (scratch.join("out.txt"), scratch.join("err.txt"));
    let mut command = command(scratch, arguments, environment);
    command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
    let before = children_user();
    let began = Instant::now();
    let mut child = command.spawn().unwrap();
    let id = child.id();
    let ended = Arc::new(AtomicBool::new(false));
    let observer = thread::spawn({
        let ended = Arc::clone(&ended);
        move || {
            let mut peak = None;
            while !ended.load(Ordering::Relaxed) {
                // The last readings find no process, or one without memory.
                peak = peak.max(peak_memory(id));
                thread::sleep(INTERVAL);
            }
            peak
        }
    });
    let status = child.wait().unwrap();
    let wall = began.elapsed().as_secs_f64();
    ended.store(true, Ordering::Relaxed);
    let user = before.and_then(|before| Some(children_user()? - before));
    let peak = observer.join().unwrap();
    if !status.success() {
        let err = fs::read_to_string(&err).unwrap_or_default();
        let beginning: String = err.chars().take(2000).collect();
        panic!("{} ended with {status}:\n{beginning}", arguments.join(" "));
    }
    Finished { wall, user, peak, out }
}

/// Returns the peak of a process's resident memory in bytes.
fn peak_memory(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Returns the user time of all children that have ended, in seconds.
fn children_user() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program is in parentheses, and may have spaces.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: f64 = fields.split_whitespace().nth(13)?.parse().ok()?;
    Some(ticks / TICKS)
}

/// A running server.
pub(crate) struct Server {
    /// The address it listens on.
    pub address: SocketAddr,
    /// The time from the start until it was ready, in seconds.
    pub ready: f64,
    /// The peak of the resident memory until then in bytes, where the system tells it.
    pub peak: Option<u64>,
    guard: Guard,
}

/// A child that is killed when it is dropped.
pub(crate) struct Guard(pub Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    /// Starts `edgewright serve` on a free port and waits until it is ready.
    pub(crate) fn start(scratch: &Path, arguments: &[&str]) -> Self {
        Self::start_at(scratch, "127.0.0.1:0", arguments)
    }

    /// Starts `edgewright serve` on an address and waits until it is ready.
    pub(crate) fn start_at(scratch: &Path, listen: &str, arguments: &[&str]) -> Self {
        let mut all = vec!["serve", "--listen", listen];
        all.extend(arguments);
        let mut command = command(scratch, &all, &[]);
        let began = Instant::now();
        let mut guard = Guard(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
        let address = listening(guard.0.stderr.take().unwrap());
        while Client::connect(address, "").call("GET", "/readyz", b"").0 != 200 {
            assert!(began.elapsed() < PATIENCE, "the server is not ready");
            thread::sleep(Duration::from_millis(1));
        }
        let ready = began.elapsed().as_secs_f64();
        let peak = peak_memory(guard.0.id());
        Self { address, ready, peak, guard }
    }

    /// Stops the server and waits for its end.
    pub(crate) fn stop(mut self) {
        let id = self.guard.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert!(self.guard.0.wait().unwrap().success());
    }
}

/// Waits for the address in the log, and reads the rest of the log in the background.
fn listening(log: ChildStderr) -> SocketAddr {
    let mut lines = BufReader::new(log).lines().map_while(Result::ok);
    let mut said = String::new();
    loop {
        let line = lines.next().unwrap_or_else(|| panic!("the server ended:\n{said}"));
        if let Some((address, _)) = line.split_once("(listening on ").and_then(|(_, rest)| rest.split_once(')')) {
            let address = address.parse().unwrap();
            thread::spawn(move || lines.for_each(drop));
            return address;
        }
        said += &line;
        said.push('\n');
    }
}
