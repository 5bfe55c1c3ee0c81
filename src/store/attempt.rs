//! An attempt to change the store, as the history records it.

use std::time::Instant;

use jiff::Timestamp;

use super::clock;
use super::commit::header::{Places, RevertedDrift};
use crate::model::Author;

/// Who tries to change the store, when, and what else the history records of it.
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
