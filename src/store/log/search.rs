//! Searches the log without the index: from its newest part to older ones. Whoever only reads a store has no index, and a
//! server whose index has failed goes on without it. It takes longer, and finds the same.
//!
//! Most questions are about the newest commits, so a part is read forwards, since frames have no length at their end, and
//! answered backwards, and older parts are not opened once the question is answered. Headers are read without the entries
//! behind them.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::parts::{self, check_begin};
use super::reader::{LogReader, LogTail, ReadBatch, commit_at};
use crate::lock::Lock;
use crate::store::commit::batch::{Batch, Tip};
use crate::store::commit::header::CommitHeader;
use crate::store::database::index::Location;
use crate::store::disk::files::{self, Part};
use crate::store::engine::{BatchVisit, History, Query, ResourceHistoryQuery, ResourceHistoryVisit};
use crate::store::error::StoreError;
use crate::store::history::resource_history::OpenResourceHistories;

/// The most headers whose places are known.
const MOST_LOCATED: usize = 10_000;

/// A log that is searched.
pub(crate) struct LogSearch {
    folder: PathBuf,
    /// Where the headers were that were read last: whoever has seen one may ask for its commit next.
    located: Lock<BTreeMap<u64, Location>>,
}

impl LogSearch {
    /// Searches the log in a folder.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), located: Lock::default() }
    }

    /// Visits the selected commits before a position, newest first, until the visitor breaks: of each part, at most the
    /// newest `most`. `open` opens a part with or without entries. Fails if a part is missing or damaged.
    fn search(
        &self,
        open: fn(&Path) -> Result<LogReader, StoreError>,
        before: u64,
        most: usize,
        selects: &dyn Fn(&Batch) -> Result<bool, StoreError>,
        visit: &mut dyn FnMut(Location, Batch) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        // The start of the part that follows in the log.
        let mut next: Option<Tip> = None;
        for generation in Part::Log.generations(&self.folder)?.into_iter().rev() {
            let path = Part::Log.path(&self.folder, generation);
            let mut reader = match open(&path) {
                // The retention has dropped it, and everything before it.
                Err(_) if next.is_some() && !files::exists(&path)? => break,
                opened => opened?,
            };
            let mut newest = VecDeque::new();
            while reader.tip.position + 1 < before
                && let Some(ReadBatch { offset, length, batch }) = reader.batch()?
            {
                if selects(&batch)? {
                    newest.push_back((Location { generation, offset, length }, batch));
                }
                if newest.len() > most {
                    newest.pop_front();
                }
            }
            let is_read = reader.tip.position + 1 < before;
            let is_cut =
                reader.tail == Some(LogTail::Damaged) || next.is_some_and(|next| reader.tip.position != next.position);
            if is_read && is_cut {
                return Err(reader.unreadable());
            }
            for (location, batch) in newest.into_iter().rev() {
                if visit(location, batch)?.is_break() {
                    return Ok(());
                }
            }
            next = Some(reader.start);
        }
        next.map_or(Ok(()), |start| check_begin(&self.folder, start))
    }
}

impl History for LogSearch {
    fn headers(&self, query: &Query, before: u64, limit: usize) -> Result<Vec<CommitHeader>, StoreError> {
        let mut found: Vec<CommitHeader> = Vec::new();
        if limit == 0 {
            return Ok(found);
        }
        let selects = |batch: &Batch| CommitHeader::from_bytes(&batch.header).map(|header| query.selects(&header));
        self.search(LogReader::open_headers, before, limit, &selects, &mut |location, batch| {
            let mut located = self.located.lock();
            if located.len() >= MOST_LOCATED {
                located.clear();
            }
            located.insert(batch.position, location);
            drop(located);
            found.push(CommitHeader::from_bytes(&batch.header)?);
            Ok(if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(found)
    }

    fn commit(&self, position: u64) -> Result<Option<Batch>, StoreError> {
        let known = self.located.lock().get(&position).copied();
        if let Some(Location { generation, offset, length }) = known
            && let Ok(Some(batch)) = commit_at(&Part::Log.path(&self.folder, generation), offset, length)
            && batch.position == position
        {
            return Ok(Some(batch));
        }
        let mut found = None;
        let (before, selects) = (position.saturating_add(1), |batch: &Batch| Ok(batch.position == position));
        self.search(LogReader::open, before, 1, &selects, &mut |_, batch| {
            found = Some(batch);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    fn resource_histories(
        &self,
        wanted: ResourceHistoryQuery<'_>,
        visit: &mut ResourceHistoryVisit<'_>,
    ) -> Result<(), StoreError> {
        let open = RefCell::new(OpenResourceHistories::new(&wanted));
        let selects = |batch: &Batch| open.borrow().concern(batch);
        self.search(LogReader::open, wanted.before, usize::MAX, &selects, &mut |_, batch| {
            let mut open = open.borrow_mut();
            open.visit(&wanted, &batch, visit)?;
            Ok(if open.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })
    }

    fn walk(&self, revision: u64, upto: u64, visit: &mut BatchVisit<'_>) -> Result<(), StoreError> {
        parts::walk(&self.folder, revision, upto, visit)
    }
}
