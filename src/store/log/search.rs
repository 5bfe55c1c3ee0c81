//! Searches the log without the index: from its newest part to older ones.

use std::{
    collections::{BTreeMap, VecDeque},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use super::{
    parts::check_begin,
    reader::{Framed, LogReader, commit_at},
};
use crate::store::{
    StoreError,
    commit::header::CommitHeader,
    database::index::Location,
    disk::files::{self, Part},
    engine::{Batch, Query, Stories, StoryVisit, Tip},
    history::stories::OpenStories,
};

/// How many commits are searched for stories at most.
const MOST_SEARCHED: usize = 100_000;
/// How many locations are noted: whoever has seen a header may ask for its commit next.
const MOST_LOCATED: usize = 10_000;

/// A log that is searched.
pub(crate) struct LogSearch {
    folder: PathBuf,
    located: Mutex<BTreeMap<u64, Location>>,
}

impl LogSearch {
    /// Searches the log in a folder.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), located: Mutex::default() }
    }

    /// Visits the parts of the log, newest first, until the visitor breaks: each with its generation. Fails if one is missing.
    fn each_part(
        &self,
        open: fn(&Path) -> Result<LogReader, StoreError>,
        visit: &mut dyn FnMut(u64, &mut LogReader) -> Result<PartStop, StoreError>,
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
            let end = visit(generation, &mut reader)?;
            if end == PartStop::Reached && next.is_some_and(|next| reader.tip.position != next.position) {
                return Err(reader.unreadable());
            }
            if end == PartStop::Over {
                return Ok(());
            }
            next = Some(reader.start);
        }
        next.map_or(Ok(()), |start| check_begin(&self.folder, start))
    }

    /// Finds the headers of at most `limit` commits before a position, newest first.
    pub(crate) fn headers(&self, query: &Query, before: u64, limit: usize) -> Result<Vec<CommitHeader>, StoreError> {
        let mut found: Vec<CommitHeader> = Vec::new();
        if limit == 0 {
            return Ok(found);
        }
        self.each_part(LogReader::open_headers, &mut |generation, reader| {
            let missing = limit - found.len();
            let (mut newest, mut end) = (VecDeque::new(), PartStop::Reached);
            while let Some(Framed { offset, length, batch }) = reader.batch()? {
                if batch.position >= before {
                    end = PartStop::Early;
                    break;
                }
                let header = CommitHeader::from_bytes(&batch.header)?;
                if query.selects(&header) {
                    if newest.len() == missing {
                        newest.pop_front();
                    }
                    newest.push_back((header, Location { generation, offset, length }));
                }
            }
            self.note(newest.iter().map(|(header, location)| (header.position, *location)));
            found.extend(newest.into_iter().rev().map(|(header, _)| header));
            Ok(if found.len() == limit { PartStop::Over } else { end })
        })?;
        Ok(found)
    }

    fn note(&self, locations: impl Iterator<Item = (u64, Location)>) {
        let mut located = self.located.lock().unwrap_or_else(PoisonError::into_inner);
        if located.len() > MOST_LOCATED {
            located.clear();
        }
        located.extend(locations);
    }

    /// Reads the commit at a position, or returns none if there is none.
    pub(crate) fn commit(&self, position: u64) -> Result<Option<Batch>, StoreError> {
        let known = self.located.lock().unwrap_or_else(PoisonError::into_inner).get(&position).copied();
        if let Some(Location { generation, offset, length }) = known
            && let Ok(Some(batch)) = commit_at(&Part::Log.path(&self.folder, generation), offset, length)
            && batch.position == position
        {
            return Ok(Some(batch));
        }
        let mut found = None;
        self.each_part(LogReader::open, &mut |_, reader| {
            if reader.start.position >= position {
                return Ok(PartStop::Early);
            }
            while let Some(Framed { batch, .. }) = reader.batch()? {
                if batch.position == position {
                    found = Some(batch);
                    break;
                }
            }
            match found.is_none() && reader.rest.is_some() {
                true => Err(reader.unreadable()),
                false => Ok(PartStop::Over),
            }
        })?;
        Ok(found)
    }

    /// Visits the stories of resources.
    pub(crate) fn stories(&self, wanted: Stories<'_>, visit: &mut StoryVisit<'_>) -> Result<(), StoreError> {
        let (mut open, mut left) = (OpenStories::of(&wanted), MOST_SEARCHED);
        self.each_part(LogReader::open, &mut |_, reader| {
            let (mut batches, mut end) = (Vec::new(), PartStop::Reached);
            while let Some(Framed { batch, .. }) = reader.batch()? {
                if batch.position >= wanted.before {
                    end = PartStop::Early;
                    break;
                }
                batches.extend(open.concern(&batch)?.then_some(batch));
            }
            for batch in batches.iter().rev() {
                open.visit(&wanted, batch, visit)?;
                if open.is_empty() {
                    break;
                }
            }
            left = left.saturating_sub(batches.len());
            Ok(if open.is_empty() || left == 0 { PartStop::Over } else { end })
        })
    }
}

/// Why a visitor has stopped reading a part of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartStop {
    /// It has read all of it.
    Reached,
    /// What follows in the part does not matter, but older parts do.
    Early,
    /// Nothing more is wanted.
    Over,
}
