//! Repairs a store, after a copy of it was made (D100).

use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::salvage::{self, RepairStep, Salvage};
use crate::model::Code;
use crate::store::clock;
use crate::store::commit::batch::Tip;
use crate::store::commit::header::ScrubbedRecords;
use crate::store::database::open;
use crate::store::disk::files::{self, Part};
use crate::store::disk::folder_lock;
use crate::store::disk::temp_dir::TempFolder;
use crate::store::error::{Doing, StoreError};
use crate::store::folder::local_mark;
use crate::store::log::appender;
use crate::store::log::head::{self, HeadFile};
use crate::store::log::parts;
use crate::store::log::scan::LogScan;
use crate::store::seal::MasterKeySource;

/// How many copies of a store can be made in one second.
const MOST_COPIES: usize = 100;

/// The repair of a store, which nobody else can open meanwhile.
pub(crate) struct Repair {
    /// The problems, and the losses.
    pub salvage: Salvage,
    _lock: Vec<File>,
}

impl Repair {
    /// Plans a repair. Changes nothing.
    pub(crate) fn plan(folder: &Path, source: &MasterKeySource) -> Result<Self, StoreError> {
        let lock = folder_lock::lock_shared(folder)?;
        Ok(Self { salvage: salvage::plan(folder, source)?, _lock: lock })
    }

    /// Plans a repair that is going to be carried out.
    pub(crate) fn begin(folder: &Path, source: &MasterKeySource) -> Result<Self, StoreError> {
        // A folder in which nothing can be repaired must not get a lock file.
        if Part::Log.generations(folder)?.is_empty() {
            return Err(StoreError::corrupt(folder, "it has no log, so it cannot be repaired"));
        }
        local_mark::check_writable(folder)?;
        let lock = folder_lock::lock(folder)?;
        Ok(Self { salvage: salvage::plan(folder, source)?, _lock: lock })
    }

    /// Whether anything has to be done.
    pub(crate) fn is_needed(&self) -> bool {
        !self.salvage.steps.is_empty()
    }

    /// Copies the folder, and repairs the store. Returns the copy. Whenever this is interrupted, it can be done again.
    pub(crate) fn apply(self) -> Result<PathBuf, StoreError> {
        let copy = copy_beside(&self.salvage.folder)?;
        for step in &self.salvage.steps {
            self.step(step)?;
        }
        files::sync_folder(&head::path(&self.salvage.folder))?;
        Ok(copy)
    }

    fn step(&self, step: &RepairStep) -> Result<(), StoreError> {
        let (folder, store) = (&self.salvage.folder, self.salvage.store);
        match step {
            RepairStep::Restore(damage) => damage.restore(),
            RepairStep::Kept(start) => parts::keep_from(folder, store, *start),
            RepairStep::Rewrite { generation, start, frames } => self.rewrite(*generation, *start, frames),
            RepairStep::Remove(path) => files::remove(path),
            RepairStep::Head(head) => {
                // What the head acknowledges is durable.
                files::sync_folder(&head::path(folder))?;
                HeadFile::create(folder, *head)
            }
        }
    }

    /// Writes a part of the log anew, with its frames at some offsets.
    fn rewrite(&self, generation: u64, start: Tip, offsets: &Range<usize>) -> Result<(), StoreError> {
        let path = Part::Log.path(&self.salvage.folder, generation);
        if offsets.is_empty() {
            return appender::write_whole(&path, self.salvage.store, start, || Ok(None));
        }
        let scan = LogScan::read(&path, Some(start), &ScrubbedRecords::default())?;
        let frames = std::iter::once(&scan.first).chain(&scan.later).flat_map(|run| &run.frames);
        let mut frames = frames.filter(|frame| offsets.contains(&frame.offset));
        appender::write_whole(&path, self.salvage.store, start, || {
            let Some(frame) = frames.next() else { return Ok(None) };
            let batch = scan.batch(frame);
            batch.map(Some).ok_or_else(|| StoreError::corrupt(&path, "it changed during the repair"))
        })
    }
}

/// Copies a folder to one beside it, durably. The copy has its name once it is complete.
fn copy_beside(folder: &Path) -> Result<PathBuf, StoreError> {
    let whole = fs::canonicalize(folder).doing("copy", folder)?;
    let name = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let time = clock::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    for number in 0..MOST_COPIES {
        let more = if number == 0 { String::new() } else { format!("-{number}") };
        let copy = whole.with_file_name(format!("{name}.damaged-{time}{more}"));
        let unfinished = whole.with_file_name(format!("{name}.damaged-{time}{more}.tmp"));
        if files::exists(&copy)? || files::exists(&unfinished)? {
            continue;
        }
        let made = TempFolder::at(unfinished)?;
        files::copy_folder(&whole, made.path())?;
        open::sync(made.path())?;
        files::rename(made.path(), &copy)?;
        return Ok(copy);
    }
    Err(StoreError::new(Code::StoreFailed, format!("cannot copy {}: there are too many copies", folder.display())))
}
