//! Shell commands that print a secret: a key, or a token. What they print is never shown.

use std::io::{self, Read};
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use crate::subprocess::Subprocess;

/// How long a command may take: that of a key service makes a request or two.
const DEADLINE: Duration = Duration::from_secs(30);
/// How often to check whether a command has ended.
const PAUSE: Duration = Duration::from_millis(5);
/// Variables that a command must not see: others of the same user can read the environment of its processes.
const SECRET_VARIABLES: [&str; 6] = [
    "EDGEWRIGHT_DATABASE_PASSWORD_COMMAND",
    "EDGEWRIGHT_MASTER_KEY",
    "EDGEWRIGHT_MASTER_KEY_COMMAND",
    "EDGEWRIGHT_NEW_MASTER_KEY_COMMAND",
    "EDGEWRIGHT_TOKEN",
    "EDGEWRIGHT_TOKEN_COMMAND",
];

/// The socket that systemd has passed is for this process (D110).
const SOCKET_VARIABLES: [&str; 3] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"];

/// Runs a command and returns what it prints: at most `most` bytes, or one more if it prints more. An error states what is
/// wrong with the command, without its name and its output.
pub(crate) fn output_of(command: &str, most: u64) -> Result<Zeroizing<Vec<u8>>, String> {
    output_within(DEADLINE, command, most)
}

/// Runs a command as [`output_of`] does, for at most a time.
pub(crate) fn output_within(deadline: Duration, command: &str, most: u64) -> Result<Zeroizing<Vec<u8>>, String> {
    let late = || format!("did not finish within {} seconds", deadline.as_secs());
    let mut shell = Subprocess::shell("exec /bin/sh -c \"$1\"");
    // What a key service says about an error can contain credentials.
    shell.arg(command).stderr(Stdio::null());
    SECRET_VARIABLES.into_iter().chain(SOCKET_VARIABLES).for_each(|name| {
        shell.env_remove(name);
    });
    let mut running = Subprocess::start(shell).map_err(|error| format!("cannot be started: {error}"))?;
    let began = Instant::now();
    let Some(output) = running.child.stdout.take() else { return Err("has no output".to_owned()) };
    let (sender, receiver) = channel();
    let reader =
        std::thread::Builder::new().name("command".into()).spawn(move || sender.send(read_at_most(output, most)));
    reader.map_err(|error| format!("cannot be read: {error}"))?;
    let unknown = |error: io::Error| format!("cannot be waited for: {error}");
    while !running.has_ended().map_err(unknown)? {
        if began.elapsed() >= deadline {
            return Err(late());
        }
        std::thread::sleep(PAUSE);
    }
    // What it has left in the background can have its output open.
    let status = running.end().map_err(unknown)?;
    let Ok(read) = receiver.recv_timeout(deadline.saturating_sub(began.elapsed())) else { return Err(late()) };
    let bytes = read.map_err(|error| format!("cannot be read: {error}"))?;
    if !status.success() {
        return Err(format!("failed ({status}); run it by hand to see why"));
    }
    Ok(bytes)
}

/// Reads at most so many bytes, and one more if there are more.
pub(super) fn read_at_most(from: impl Read, most: u64) -> io::Result<Zeroizing<Vec<u8>>> {
    // A vector that grows would leave copies in freed memory.
    let mut bytes = Zeroizing::new(Vec::with_capacity(2 * most as usize));
    from.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
