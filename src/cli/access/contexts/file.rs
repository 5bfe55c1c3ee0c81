//! The file of contexts. It has tokens, so others can neither read nor replace it.

use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};

use rustix::fs::OFlags;

use super::{Contexts, ServerContext};
use crate::cli::config::place_in;
use crate::cli::prelude::*;
use crate::files::{appended, write_whole};
use crate::manifest::load::syntax;
use crate::model::decode::decode;
use crate::store::disk::lock_wait::retry_while_locked;
use crate::syntax::yaml::{Tape, to_yaml};

const FILE: &str = "contexts.yaml";
/// The file that is locked for a change. The other one is replaced, so its lock would be of no use.
const LOCK: &str = "contexts.lock";
/// The time that a change waits for one of another process.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// The most bytes that are read.
const MOST_BYTES: u64 = 1 << 20;

/// The folder of the user for the configuration of this program. A relative path does not count, as in the XDG Base
/// Directory Specification: it would be another folder in each working folder.
pub(super) fn folder() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let configuration = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(configuration.join("edgewright"))
}

pub(super) fn read(folder: &Path) -> Result<Contexts, Failure> {
    let path = folder.join(FILE);
    match read_private(folder, &path)? {
        Some(text) => parse(&path, &text),
        None => Ok(Contexts::default()),
    }
}

/// Reads the file if it exists. Fails if others can read it, or put another one in its place.
fn read_private(folder: &Path, path: &Path) -> Result<Option<String>, Failure> {
    // A FIFO is opened without waiting for its other end.
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = match File::options().read(true).custom_flags(flags).open(path) {
        // The home folder of another user, such as after `sudo`, has no contexts of this user.
        Err(error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied) =>
        {
            return Ok(None);
        }
        opened => opened.map_err(|error| unreadable(path, &error))?,
    };
    let facts = file.metadata().map_err(|error| unreadable(path, &error))?;
    if !facts.is_file() {
        return Err(unreadable(path, &io::Error::other("not a regular file")));
    }
    let mode = facts.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let message = format!("{} is open to other users (mode {mode:04o})", path.display());
        let help = format!("run `chmod 600 {}`; if others may have read it, revoke the API keys in it", path.display());
        return Err(Diagnostic::error(Code::Unreadable, message).help(help).into());
    }
    check_folder(folder)?;
    let mut text = String::new();
    file.take(MOST_BYTES).read_to_string(&mut text).map_err(|error| unreadable(path, &error))?;
    Ok(Some(text))
}

/// Fails if others can replace files in a folder: tokens would go to the servers that they name.
fn check_folder(folder: &Path) -> Result<(), Failure> {
    let facts = fs::metadata(folder).map_err(|error| unreadable(folder, &error))?;
    let mode = facts.permissions().mode() & 0o777;
    if mode & 0o022 == 0 {
        return Ok(());
    }
    let message = format!("other users can write to {} (mode {mode:04o})", folder.display());
    Err(Diagnostic::error(Code::Unreadable, message).help(format!("run `chmod 700 {}`", folder.display())).into())
}

/// Changes the contexts in a folder, which is created if missing. Another process waits for a moment until the change is done.
pub(super) fn change<T>(folder: &Path, change: impl FnOnce(&mut Contexts) -> Result<T, Failure>) -> Result<T, Failure> {
    let path = folder.join(FILE);
    let failed = |error: io::Error| unwritable(&path, &error);
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    check_folder(folder)?;
    let lock = File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(folder.join(LOCK));
    let lock = lock.map_err(failed)?;
    lock_exclusively(&lock, folder, LOCK_WAIT)?;
    let mut contexts = read(folder)?;
    let done = change(&mut contexts)?;
    let text = to_yaml(&json::value(&contexts, Secrets::Revealed)?);
    write_whole(&path, &appended(&path, ".tmp"), |writer| writer.write_all(text.as_bytes())).map_err(failed)?;
    drop(lock);
    Ok(done)
}

/// Locks the file of the lock, or fails if another process holds it for too long.
fn lock_exclusively(lock: &File, folder: &Path, timeout: Duration) -> Result<(), Failure> {
    match retry_while_locked(timeout, |error| matches!(error, TryLockError::WouldBlock), || lock.try_lock()) {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let message = format!("another process is changing the contexts in {}", folder.display());
            let help = "wait for the other `edgewright login`, `logout` or `context use`, then run the command again";
            Err(Diagnostic::error(Code::Timeout, message).help(help).into())
        }
        Err(TryLockError::Error(error)) => Err(unwritable(&folder.join(LOCK), &error)),
    }
}

fn parse(path: &Path, text: &str) -> Result<Contexts, Failure> {
    let fail = |fault: &Fault| invalid_file(path, text, fault);
    let mut content: Tape = serde_yaml::from_str(text)
        .map_err(|error| fail(&Fault::new(Code::Syntax, syntax::reason_and_place(&error))))?;
    if content.root().is_null() {
        return Ok(Contexts::default());
    }
    let mut faults = content.take_faults();
    let (contexts, found) = decode::<Contexts>(content.root(), None);
    faults.extend(found);
    if let Some(fault) = faults.into_iter().next() {
        return Err(fail(&hide_value(fault)));
    }
    let contexts = contexts.unwrap_or_default();
    for (name, context) in &contexts.all {
        let place = FieldPath::root().join("contexts").join(name.as_str());
        check_context(context).map_err(|fault| fail(&fault.under(&place)))?;
    }
    Ok(contexts)
}

/// A fault that does not quote the value, which can be a token.
fn hide_value(mut fault: Fault) -> Fault {
    if matches!(fault.code, Code::WrongType | Code::OutOfRange | Code::InvalidFormat) {
        fault.message = "the value has the wrong type".to_owned();
        fault.help = Some("fix the indentation, and quote texts such as tokens".to_owned());
    }
    fault
}

/// Requires a server, and one origin of its token.
fn check_context(context: &ServerContext) -> Result<(), Fault> {
    if context.server.is_empty() {
        return Err(Fault::new(Code::Required, "`server` is required").help("set it to the URL of a server"));
    }
    if context.token.is_empty() == context.token_command.is_empty() {
        let fault = Fault::new(Code::NotAllowed, "`token` and `token_command` cannot be combined");
        return Err(fault.help("set one of them, or run `edgewright login` again"));
    }
    Ok(())
}

/// The failure for a file with an error. Only its line is named: the file has tokens.
fn invalid_file(path: &Path, text: &str, fault: &Fault) -> Failure {
    let place = place_in(text, fault);
    let message = format!("invalid contexts in {}{place}: {}", path.display(), fault.message);
    let help = fault.help.clone().unwrap_or_else(|| "fix the file, or remove it and run `edgewright login`".to_owned());
    Diagnostic::error(fault.code, message).help(help).into()
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot read {}: {error}", path.display());
    Diagnostic::error(Code::Unreadable, message).help("check the path and its permissions").into()
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot write {}: {error}", path.display());
    Diagnostic::error(Code::Unreadable, message).help("check the path, its permissions and the free disk space").into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn context(token: &str, command: &str) -> ServerContext {
        ServerContext {
            server: "https://edge.example.com".into(),
            token: Secret::new(token),
            token_command: Secret::new(command),
            ca_file: "/etc/ca.pem".into(),
            source: "shop".into(),
            version_header: "V".into(),
        }
    }

    fn message(failure: &Failure) -> String {
        failure.diagnostics.iter().map(|it| it.message.as_str()).collect()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("edgewright");
        assert!(read(&home).unwrap().all.is_empty());
        change(&home, |contexts| {
            contexts.current = "no".to_owned();
            contexts.all.insert("no".to_owned(), context("ew_1", ""));
            let command = "pass show 'edge: #1'\n";
            contexts.all.insert("b:8484".to_owned(), context("", command));
            Ok(())
        })
        .unwrap();
        let found = read(&home).unwrap();
        assert_eq!(found.current, "no");
        let (stored, command) = (found.all.get("no").unwrap(), found.all.get("b:8484").unwrap());
        assert_eq!((stored.token.expose(), stored.token_command.expose()), ("ew_1", ""));
        assert_eq!((command.token.expose(), command.token_command.expose()), ("", "pass show 'edge: #1'\n"));
        assert_eq!((stored.source.as_str(), stored.version_header.as_str()), ("shop", "V"));
        assert_eq!(stored.ca_file, "/etc/ca.pem");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&home), mode(&home.join(FILE)), mode(&home.join(LOCK))), (0o700, 0o600, 0o600));
        assert!(!home.join("contexts.yaml.tmp").exists());
        assert!(!format!("{found:?}").contains("ew_1"));
    }

    #[test]
    fn a_change_that_fails_changes_nothing_and_an_interrupted_one_is_in_nobodys_way() {
        let folder = tempfile::tempdir().unwrap();
        let add = |name: &str| {
            change(folder.path(), |contexts| {
                contexts.all.insert(name.to_owned(), context("ew_1", ""));
                if name == "bad" { contexts.get("none").map(|_| ()) } else { Ok(()) }
            })
        };
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        add("a").unwrap();
        fs::write(folder.path().join("contexts.yaml.tmp"), "contexts: {torn").unwrap();
        assert!(add("bad").is_err());
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|at| scope.spawn(move || add(&format!("n{at}")).is_ok())).collect();
            assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
        });
        let names: Vec<String> = read(folder.path()).unwrap().all.into_keys().collect();
        assert_eq!(names, ["a", "n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"]);
    }

    #[test]
    fn a_lock_that_is_held_is_not_waited_for_without_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let open = || File::create(folder.path().join(LOCK)).unwrap();
        let held = open();
        lock_exclusively(&held, folder.path(), Duration::ZERO).unwrap();
        let failure = lock_exclusively(&open(), folder.path(), Duration::ZERO).err().unwrap();
        assert!(message(&failure).starts_with("another process is changing the contexts"), "{}", message(&failure));
        drop(held);
        lock_exclusively(&open(), folder.path(), LOCK_WAIT).unwrap();
    }

    #[test]
    fn a_current_context_that_does_not_exist_is_an_error() {
        let found = |text: &str| parse(Path::new("c.yaml"), text).unwrap();
        for is_allowed in [true, false] {
            let dangling = found("current: nope\n");
            let failure = dangling.current_for(is_allowed).err().unwrap();
            assert_eq!(message(&failure), "the current context `nope` does not exist");
            assert!(found("contexts: {}\n").current_for(is_allowed).unwrap().is_none());
        }
    }

    #[test]
    fn what_others_can_read_or_replace_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        fs::write(&path, "contexts: {}\n").unwrap();
        let refused = |file: u32, of_folder: u32| {
            fs::set_permissions(&path, fs::Permissions::from_mode(file)).unwrap();
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(of_folder)).unwrap();
            read(folder.path()).err().map(|failure| message(&failure)).unwrap_or_default()
        };
        assert_eq!(refused(0o600, 0o700), "");
        assert_eq!(refused(0o600, 0o755), "");
        for mode in [0o644, 0o640, 0o604, 0o620] {
            assert!(refused(mode, 0o700).contains("open to other users"), "{mode:o}");
        }
        for mode in [0o777, 0o720] {
            assert!(refused(0o600, mode).contains("other users can write"), "{mode:o}");
        }
    }

    #[test]
    fn an_error_names_its_line_and_no_token() {
        for (text, expected) in [
            ("contexts:\n  a: {server: 'https://a', token: ew_1, tokn: ew_1}\n", "contexts/a/tokn (line 2)"),
            ("contexts:\n  a: {server: 'https://a'}\n", "contexts/a (line 2)"),
            ("contexts:\n  a: {server: 'https://a', token: ew_1, token_command: x}\n", "contexts/a (line 2)"),
            ("contexts:\n  a: {token: ew_1}\n", "`server` is required"),
            ("contexts:\n  a: ew_1\n", "contexts/a (line 2)"),
            ("contexts:\n  a: {server: [ew_1]}\n", "contexts/a/server (line 2)"),
            ("contexts:\n  a: {server: 'https://a', token: 8151}\n", "contexts/a/token (line 2): the value has"),
            ("contexts:\n  a: {server: 'https://a', token: 8.151}\n", "contexts/a/token (line 2): the value has"),
            ("contexts: {a: ew_1\n", "line"),
            ("ew_1\n", "invalid contexts"),
        ] {
            let found = parse(Path::new("c.yaml"), text).err().map(|failure| message(&failure)).unwrap_or_default();
            assert!(found.contains(expected), "{text:?}: {found}");
            assert!(!found.contains("ew_1") && !found.contains("151"), "{found}");
        }
    }
}
