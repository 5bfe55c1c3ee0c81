//! Where a master key is read from: a file, a command, or a value.

use std::{
    fmt,
    fs::File,
    io::{self, Read},
    os::unix::{
        fs::{OpenOptionsExt, PermissionsExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::channel,
    time::{Duration, Instant},
};

use rustix::{
    fs::{OFlags, StatVfsMountFlags},
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid},
};
use zeroize::Zeroizing;

use super::master::{MasterKey, unusable};
use crate::{model::secret::Secret, store::StoreError, text::printable_path};

/// The most bytes of a key with its line break.
const MOST_BYTES: u64 = 1024;
/// How long a command may take: that of a key service makes a request or two.
const DEADLINE: Duration = Duration::from_secs(30);
/// How often to check whether a command has ended.
const PAUSE: Duration = Duration::from_millis(5);
/// Runs a command, and ends it when standard input ends: with this process, however that ends. The command has a process
/// group of its own, which the signals of a terminal do not reach.
const GUARDED: &str = "exec 3<&0; { read -r _ <&3; kill -s KILL 0; } >/dev/null 2>&1 & \
                       exec /bin/sh -c \"$1\" 3<&- </dev/null";
/// What a command does not need: others of the same user can read the environment of its processes.
const SECRET_VARIABLES: [&str; 4] =
    ["EDGEWRIGHT_MASTER_KEY", "EDGEWRIGHT_MASTER_KEY_COMMAND", "EDGEWRIGHT_NEW_MASTER_KEY_COMMAND", "EDGEWRIGHT_TOKEN"];

/// Where the master key of a store comes from.
#[derive(Clone, Default)]
pub enum MasterKeySource {
    /// A file beside the store's folder, with `.master.key` after its name. It is created with the store.
    #[default]
    Beside,
    /// A file with 32 bytes, raw or in base64 or hexadecimal. Only its owner may be able to read it.
    File(PathBuf),
    /// A shell command that prints the key in base64 or hexadecimal.
    Command(String),
    /// The key in base64 or hexadecimal. The text says where it came from, for messages.
    Value(Secret, String),
}

impl fmt::Debug for MasterKeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A command can have the credentials of a key service.
        f.write_str(match self {
            MasterKeySource::Beside => "Beside",
            MasterKeySource::File(_) => "File",
            MasterKeySource::Command(_) => "Command",
            MasterKeySource::Value(..) => "Value",
        })
    }
}

impl MasterKeySource {
    /// Reads the key. `beside` is the file beside the store, if it exists. Returns none if the key is expected there and the
    /// file does not exist.
    pub(crate) fn read(&self, beside: Option<&Path>) -> Result<Option<MasterKey>, StoreError> {
        match self {
            MasterKeySource::Beside => beside.map(from_file).transpose(),
            MasterKeySource::File(path) => from_file(path).map(Some),
            MasterKeySource::Command(command) => from_command(command).map(Some),
            MasterKeySource::Value(value, origin) => {
                MasterKey::read(value.expose().as_bytes(), false, origin.clone()).map(Some)
            }
        }
    }
}

fn from_file(path: &Path) -> Result<MasterKey, StoreError> {
    let name = printable_path(&path.display().to_string());
    let unreadable = |error: io::Error| unusable(format!("the master key {name} cannot be read: {error}"));
    // A FIFO is opened without waiting for its other end.
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
    let facts = file.metadata().map_err(unreadable)?;
    if !facts.is_file() {
        return Err(unusable(format!("the master key {name} is not a regular file")));
    }
    let mode = facts.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        // Kubernetes mounts secrets with the mode 0644, read-only, where nobody can change the mode.
        let is_read_only =
            rustix::fs::fstatvfs(&file).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY));
        if !is_read_only {
            let message =
                format!("the master key {name} is open to other users (mode {mode:04o}): run `chmod 600` on it");
            return Err(unusable(message));
        }
        tracing::warn!("The master key {name} is open to other users (mode {mode:04o}).");
    }
    let bytes = at_most(file).map_err(unreadable)?;
    MasterKey::read(&bytes, true, name)
}

/// Reads a key, or a little more than any key has.
fn at_most(from: impl Read) -> io::Result<Zeroizing<Vec<u8>>> {
    // A vector that grows would leave copies in freed memory.
    let mut bytes = Zeroizing::new(Vec::with_capacity(2 * MOST_BYTES as usize));
    from.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn from_command(command: &str) -> Result<MasterKey, StoreError> {
    const ORIGIN: &str = "the output of the master key command";
    let failed = |reason: &str| unusable(format!("the master key command {reason}"));
    let late = || failed(&format!("did not end within {} seconds", DEADLINE.as_secs()));
    let mut shell = Command::new("/bin/sh");
    // What a key service says about an error can contain credentials.
    shell.args(["-c", GUARDED, "sh", command]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    SECRET_VARIABLES.into_iter().for_each(|name| {
        shell.env_remove(name);
    });
    let spawned = shell.process_group(0).spawn();
    let mut running = Running::new(spawned.map_err(|error| failed(&format!("cannot be started: {error}")))?);
    let began = Instant::now();
    let Some(output) = running.child.stdout.take() else { return Err(failed("has no output")) };
    let (sender, receiver) = channel();
    let reader = std::thread::Builder::new().name("master key".into()).spawn(move || sender.send(at_most(output)));
    reader.map_err(|error| failed(&format!("cannot be read: {error}")))?;
    let unknown = |error: io::Error| failed(&format!("cannot be waited for: {error}"));
    while !running.has_ended().map_err(unknown)? {
        if began.elapsed() >= DEADLINE {
            return Err(late());
        }
        std::thread::sleep(PAUSE);
    }
    // What it has left in the background can have its output open.
    let status = running.end().map_err(unknown)?;
    let Ok(read) = receiver.recv_timeout(DEADLINE.saturating_sub(began.elapsed())) else { return Err(late()) };
    let bytes = read.map_err(|error| failed(&format!("cannot be read: {error}")))?;
    if !status.success() {
        return Err(failed(&format!("failed ({status}); run it by hand to see why")));
    }
    MasterKey::read(&bytes, false, ORIGIN.to_owned())
}

/// A shell that runs a command, with all processes that it starts, which end with this value.
struct Running {
    child: Child,
    is_over: bool,
}

impl Running {
    fn new(child: Child) -> Self {
        Self { child, is_over: false }
    }

    /// Whether the shell has ended. Until [`Running::end`], no other process gets its number.
    fn has_ended(&self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(Pid::from_child(&self.child)), options)?.is_some())
    }

    /// Ends what is still running, and returns how the shell ended.
    fn end(&mut self) -> io::Result<ExitStatus> {
        if !self.is_over {
            self.is_over = true;
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
        self.child.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;
    use crate::model::code::Code;

    const HEX: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

    fn refused(source: &MasterKeySource) -> String {
        let error = source.read(None).err().unwrap();
        assert_eq!(error.code, Code::MasterKey, "{error}");
        error.message
    }

    #[test]
    fn the_key_is_the_same_wherever_it_comes_from() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        fs::write(&file, HEX).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let value = MasterKeySource::Value(Secret::new(HEX), "a variable".into());
        let id = value.read(None).unwrap().unwrap().id();
        for source in [MasterKeySource::File(file.clone()), MasterKeySource::Command(format!("echo {HEX}"))] {
            assert_eq!(source.read(None).unwrap().unwrap().id(), id);
            assert!(!format!("{source:?}").contains("00112233"));
        }
        assert_eq!(MasterKeySource::Beside.read(Some(&file)).unwrap().unwrap().id(), id);
        assert!(MasterKeySource::Beside.read(None).unwrap().is_none());
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        fs::write(&file, HEX).unwrap();
        for mode in [0o644, 0o640, 0o604, 0o620] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let said = refused(&MasterKeySource::File(file.clone()));
            assert!(said.contains("open to other users") && said.contains("chmod 600"), "{said}");
        }
        assert!(refused(&MasterKeySource::File(folder.path().to_owned())).contains("not a regular file"));
        assert!(refused(&MasterKeySource::File(folder.path().join("none"))).contains("cannot be read"));
    }

    #[test]
    fn what_a_command_leaves_in_the_background_ends_with_it() {
        // It would have the output open for longer than a command may take.
        let source = MasterKeySource::Command(format!("echo {HEX}; sleep 100 &"));
        assert!(source.read(None).unwrap().is_some());
    }

    #[test]
    fn a_command_that_fails_or_prints_no_key_is_refused_without_its_output() {
        let cases = [
            (format!("echo {HEX}; exit 3"), "exit status: 3"),
            ("echo hunter2".to_owned(), "not 32 bytes"),
            ("yes hunter2".to_owned(), "failed"),
            ("echo hunter2 >&2; false".to_owned(), "failed"),
            (String::new(), "not 32 bytes"),
        ];
        for (command, expected) in cases {
            let said = refused(&MasterKeySource::Command(command));
            assert!(said.contains(expected) && !said.contains("hunter2") && !said.contains("0011"), "{said}");
        }
    }
}
