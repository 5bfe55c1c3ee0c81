//! The files that `--output` and `--out` name. A pull request can contain a link in their place (D31).

use crate::cli::prelude::*;
use crate::files::{folder_of, if_exists};
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::OFlags;

/// A link is not followed.
const NO_LINK: i32 = OFlags::NOFOLLOW.bits() as i32;
/// The folders with links to the pipes and terminals of a process, such as `/dev/stdout`.
const OF_THE_SYSTEM: [&str; 2] = ["/dev", "/proc"];

/// Creates a file, or empties the one that exists. A link is replaced by a file, and what it leads to is left alone.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let whole = std::path::absolute(path)?;
    if OF_THE_SYSTEM.iter().any(|folder| whole.starts_with(folder)) {
        return File::create(path);
    }
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        fs::remove_file(path)?;
    }
    File::options().write(true).create(true).truncate(true).custom_flags(NO_LINK).open(path)
}

/// Fails if the folder of a file does not exist, so that nobody waits for a result that cannot be kept. `failure` begins the message.
pub(crate) fn check_folder(file: &Path, failure: &str) -> Result<(), Diagnostic> {
    let folder = folder_of(file);
    match if_exists(fs::metadata(folder)) {
        Ok(None) => {
            let message = format!("{failure}: the folder {} does not exist", folder.display());
            Err(Diagnostic::error(Code::Unreadable, message).help("create the folder, or use another path"))
        }
        // Whatever else is wrong is an error of the file.
        _ => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::{io::Write, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_file_needs_a_folder_and_a_name_alone_has_one() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let error = check_folder(&missing.join("p.json"), "cannot save the plan").unwrap_err();
        assert_eq!(error.message, format!("cannot save the plan: the folder {} does not exist", missing.display()));
        for file in [missing.as_path(), Path::new("p.json"), Path::new("/dev/stdout")] {
            assert!(check_folder(file, "").is_ok(), "{}", file.display());
        }
    }

    #[test]
    fn a_link_is_replaced_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("victim"), "victim").unwrap();
        fs::write(at("file"), "an earlier report").unwrap();
        symlink("victim", at("link")).unwrap();
        symlink("missing", at("dangling")).unwrap();
        for name in ["file", "link", "dangling", "new"] {
            create(&at(name)).unwrap().write_all(b"report").unwrap();
            assert!(fs::symlink_metadata(at(name)).unwrap().is_file(), "{name}");
            assert_eq!(fs::read_to_string(at(name)).unwrap(), "report", "{name}");
        }
        assert_eq!(fs::read_to_string(at("victim")).unwrap(), "victim");
        assert!(!at("missing").exists());
        assert!(create(Path::new("/dev/null")).is_ok());
    }
}
