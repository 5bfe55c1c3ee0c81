//! What a caller asks of a store, and gets back: a commit, or an attempt as the history records it.

use std::{sync::Arc, time::Instant};

use jiff::Timestamp;

use super::clock;
use super::commit::header::{Places, RevertedDrift};
use crate::model::{Author, Operation, Snapshot};

/// A commit request.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The revision that the Operations were computed from. If none, they apply to the current revision.
    pub base: Option<u64>,
    /// The changes, in order.
    pub operations: Vec<Operation>,
    /// The author of the changes.
    pub author: Author,
    /// The time of the commit.
    pub at: Timestamp,
}

impl Commit {
    /// Changes by whoever can open the store, now and on whatever is current.
    pub(crate) fn local(operations: Vec<Operation>) -> Self {
        Self { base: None, operations, author: Author::Local, at: clock::now() }
    }
}

/// An attempt to change the store, as the history records it.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The author.
    pub author: Author,
    /// The source that is suspended or resumed, if the attempt is that.
    pub source: Option<String>,
    /// The time at which the attempt began.
    pub at: Timestamp,
    /// The file that declares each resource, as `file:line` or without the line.
    pub places: Places,
    /// The fields whose drift the change reverts (D85).
    pub reverted_drift: RevertedDrift,
    /// The clock at the start, to compute the duration.
    pub began: Instant,
    /// The message in the history, if the change is applied.
    pub note: String,
}

impl Attempt {
    /// Starts an attempt now.
    pub fn new(author: Author) -> Self {
        let (places, reverted_drift, note) = (Places::new(), RevertedDrift::new(), String::new());
        Self { author, source: None, at: clock::now(), places, reverted_drift, began: Instant::now(), note }
    }
}

/// The result of a commit.
#[derive(Debug, Clone)]
pub struct Committed {
    /// The state after the commit.
    pub snapshot: Arc<Snapshot>,
}
