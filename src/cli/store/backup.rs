//! `edgewright backup`: writes a store with its history to one file (D100).

use std::io::{self, Write};

use crate::cli::command_prelude::*;
use crate::cli::output::{destination, print_all};
use crate::files::{appended, create_temporary, rename};
use crate::server::operations::backup::PATH;
use crate::store::maintenance::backup_read::BackupFile;

/// Write a backup of a store, with its history, to one file.
///
/// With --server, a running server sends it; this requires an admin's API key. The secrets in the backup are encrypted.
/// Keep a copy of the store's master key, apart from the backups: without it, no backup can be restored.
///
/// A store in a database is copied into a temporary folder first (TMPDIR), which needs as much space.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File to write; `-` is standard output.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace the file if it exists.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    pub place: StoreOrServer,
}

/// The receiver of a backup's pieces.
type Sink<'s> = dyn FnMut(&[u8]) -> Result<(), Failure> + 's;

impl Args {
    pub(crate) fn run(self) -> CommandResult {
        if self.file.as_os_str() == "-" {
            during("Backing up", || {
                self.read(&mut |piece| print_all(piece).inspect_err(|_| say("The backup is incomplete.")))
            })?;
            say(ABOUT_KEY);
            return Ok(Exit::Done);
        }
        self.check_free()?;
        destination::check_folder(&self.file, &cannot_write(&self.file))?;
        let temporary = TempFile::next_to(&self.file)?;
        let verified = during("Backing up", || -> Result<BackupFile, Failure> {
            let mut file = create_temporary(&temporary.path).map_err(|error| self.unwritable(&error))?;
            self.read(&mut |piece| file.write_all(piece).map_err(|error| self.unwritable(&error)))?;
            file.sync_all().map_err(|error| self.unwritable(&error))?;
            drop(file);
            // What was written is read again: a backup that cannot be read must not have its name.
            let written = BackupFile::open(&temporary.path)?;
            written.verify()?;
            Ok(written)
        })?;
        self.check_free()?;
        rename(&temporary.path, &self.file).map_err(|error| self.unwritable(&error))?;
        let (manifest, file) = (verified.manifest(), self.file.display());
        say(&format!("Backed up revision {} (record {}) to {file}.", manifest.revision, manifest.position));
        say(ABOUT_KEY);
        Ok(Exit::Done)
    }

    /// Reads the backup from the server or the store.
    fn read(&self, sink: &mut Sink<'_>) -> Result<(), Failure> {
        if let Some(client) = self.place.client()? {
            return client.download(PATH, sink);
        }
        let store = self.place.store.read_existing()?;
        let mut backup = store.backup()?;
        let message = |error: io::Error| format!("cannot read the store {}: {error}", self.place.store.shown());
        let unreadable = |error: io::Error| Diagnostic::error(Code::StoreFailed, message(error));
        while let Some(piece) = backup.next_piece().map_err(unreadable)? {
            sink(&piece)?;
        }
        Ok(())
    }

    fn unwritable(&self, error: &io::Error) -> Failure {
        Diagnostic::error(Code::Unreadable, format!("{}: {error}", cannot_write(&self.file)))
            .help("check the path, its permissions and the free disk space")
            .into()
    }

    /// Fails if the file exists and must not be replaced.
    fn check_free(&self) -> Result<(), Failure> {
        match fs::symlink_metadata(&self.file) {
            Ok(_) if !self.force => {
                let message = format!("`{}` already exists", self.file.display());
                Err(Diagnostic::error(Code::Conflict, message).help("use another name, or --force").into())
            }
            Ok(found) if !found.is_file() => {
                let message = format!("`{}` is not a regular file", self.file.display());
                Err(Diagnostic::error(Code::Unreadable, message).help("use the path of a file").into())
            }
            _ => Ok(()),
        }
    }
}

const ABOUT_KEY: &str =
    "The backup can be restored only with the store's master key: keep a copy of the key in another place.";

fn cannot_write(file: &Path) -> String {
    format!("cannot write the backup to `{}`", file.display())
}

/// The file beside the backup that is renamed once it is complete. It is removed if that does not happen.
struct TempFile {
    path: PathBuf,
}

impl TempFile {
    fn next_to(file: &Path) -> Result<Self, Failure> {
        if file.file_name().is_none() {
            let message = format!("`{}` is not the name of a file", file.display());
            return Err(Diagnostic::error(Code::Unreadable, message).help("use the path of a file").into());
        }
        // Another run may write a backup of the same name.
        Ok(Self { path: appended(file, &format!("{}.tmp", ids::fresh("."))) })
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
