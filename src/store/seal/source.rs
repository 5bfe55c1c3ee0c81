//! Where a master key is read from: a file, a command, or a value.

use std::fs::File;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fmt, io};

use rustix::fs::{OFlags, StatVfsMountFlags};

use super::command::{output_of, read_at_most};
use super::master::{MasterKey, unusable};
use crate::{model::Secret, store::error::StoreError, syntax::text::printable_path};

/// The most bytes of a key with its line break.
const MOST_BYTES: u64 = 1024;

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
    let bytes = read_at_most(file, MOST_BYTES).map_err(unreadable)?;
    MasterKey::read(&bytes, true, name)
}

fn from_command(command: &str) -> Result<MasterKey, StoreError> {
    let bytes =
        output_of(command, MOST_BYTES).map_err(|reason| unusable(format!("the master key command {reason}")))?;
    MasterKey::read(&bytes, false, "the output of the master key command".to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;
    use crate::model::Code;

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
        // The `sleep` would keep the output open for longer than a command may take.
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
