//! `edgewright restore`: makes a store from a backup (D100).

use super::{check, master_key, store_args::StoreArgs};
use crate::cli::command_prelude::*;
use crate::store::folder::expected_master_key;
use crate::store::maintenance::backup_read::BackupFile;
use crate::store::maintenance::restore::{PointInTime, Restore};
use crate::store::seal::MasterKeySource;

/// The help for a file that this version cannot restore.
const NO_BACKUP: &str = "name a file that `edgewright backup` wrote, or use the newer version";

/// The help for a file that cannot be read.
pub(super) const UNREADABLE: &str = "check the path of the backup and its permissions";

/// Restore a store from a backup into an empty folder or database.
///
/// The store has the same revision, IDs, history and secrets as the one that was backed up, which can have been in a folder or a
/// database. Everything is verified before the store exists. Requires the master key of the store that was backed up. For a
/// database, the backup is unpacked in a temporary folder first (TMPDIR).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Backup that `edgewright backup` wrote.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Restore an earlier state: the end of a revision, or a time such as 2026-11-22T10:00:00Z. The restored history
    /// ends there.
    #[arg(long, value_name = "REVISION|TIME", value_parser = point_in_time)]
    to: Option<PointInTime>,
    #[command(flatten)]
    store: StoreArgs,
}

impl Args {
    pub(crate) fn run(self) -> CommandResult {
        let source = self.store.master_key.source()?;
        let folder = self.store.folder();
        let restored = during("Restoring", || {
            let with_help = |failure: Failure| {
                failure.with_help(Code::StoreFormat, NO_BACKUP).with_help(Code::StoreFailed, UNREADABLE)
            };
            let backup = BackupFile::open(&self.file).map_err(|error| with_help(error.into()))?;
            let restore = Restore { backup: &backup, to: folder, point: self.to, source: &source };
            restore.run().map_err(Failure::from)
        });
        let (revision, record) =
            restored.map_err(|failure| failure.with_help(Code::StoreCorrupt, check::OTHER_BACKUP))?;
        say(&format!("Restored revision {revision} (record {record}) to {}.", self.store.shown()));
        if let MasterKeySource::File(file) = &source
            && !self.store.is_in_database()
        {
            master_key::say_place("Copy", file, &expected_master_key(folder));
        }
        Ok(Exit::Done)
    }
}

fn point_in_time(text: &str) -> Result<PointInTime, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map(PointInTime::Revision).map_err(|_| "the number is too large".to_owned());
    }
    let time: Result<Timestamp, jiff::Error> = text.parse();
    time.map(PointInTime::Time)
        .map_err(|_| "expected the number of a revision, or a time such as 2026-11-22T10:00:00Z".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_in_time_is_a_revision_or_a_time() {
        assert_eq!(point_in_time("17"), Ok(PointInTime::Revision(17)));
        assert_eq!(point_in_time("1970-01-01T00:00:00Z"), Ok(PointInTime::Time(Timestamp::UNIX_EPOCH)));
        assert_eq!(point_in_time("1970-01-01T01:00:00+01:00"), Ok(PointInTime::Time(Timestamp::UNIX_EPOCH)));
        for wrong in ["", "-1", "yesterday", "2026-11-22", "99999999999999999999999"] {
            assert!(point_in_time(wrong).is_err(), "{wrong}");
        }
    }
}
