//! Files that the program generates and a repository keeps: written to a folder, or compared with it.

use crate::cli::prelude::*;

/// Generated files by name.
pub(crate) struct GeneratedFiles {
    /// The name of the files, in the plural.
    pub noun: &'static str,
    /// The command that writes them, without the folder.
    pub command: &'static str,
    pub files: BTreeMap<String, String>,
}

impl GeneratedFiles {
    /// Writes all files to a folder, which is created if it does not exist.
    pub(crate) fn write(&self, folder: &Path) -> CommandResult {
        let each = || self.files.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text));
        match fs::create_dir_all(folder).and_then(|()| each()) {
            Ok(()) => Ok(Exit::Done),
            Err(error) => {
                let message = format!("cannot write {}: {error}", folder.display());
                Err(Diagnostic::error(Code::Unreadable, message).into())
            }
        }
    }

    /// Fails if a file in a folder is missing or out of date.
    pub(crate) fn check(&self, folder: &Path) -> CommandResult {
        let is_stale = |name: &str, text: &String| fs::read_to_string(folder.join(name)).ok().as_ref() != Some(text);
        let stale = self.files.iter().filter(|(name, text)| is_stale(name, text));
        let stale: Vec<&str> = stale.map(|(name, _)| name.as_str()).collect();
        if stale.is_empty() {
            return Ok(Exit::Done);
        }
        let message = format!("outdated {} in {}: {}", self.noun, folder.display(), stale.join(", "));
        let help = format!("run `{} {}`", self.command, folder.display());
        Err(Diagnostic::error(Code::Conflict, message).help(help).into())
    }
}
