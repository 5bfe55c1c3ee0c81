//! The ties of sources, kept as entries of their own beside the parsed files: for each run that is remembered, the last.

use std::time::SystemTime;

use super::{MOST_BYTES, ParsedFiles};
use crate::manifest::SourceTies;

/// The folder of the entries.
pub(super) const FOLDER: &str = "ties";

impl ParsedFiles {
    /// Keeps the ties of a source. `run` is what the run depended on besides the files and the state.
    pub(crate) fn keep_ties(&self, run: &str, ties: &SourceTies) {
        let Some((shelf, payload)) = self.ties.as_ref().zip(serde_json::to_vec(ties).ok()) else { return };
        // Without them, the next run takes longer.
        let _ = shelf.write(&key(run), &payload);
        let now = SystemTime::now();
        if shelf.is_due(now) {
            shelf.sweep(now, MOST_BYTES / 4);
        }
    }

    /// Returns the ties that the last run of this kind kept, if they are intact.
    pub(crate) fn ties(&self, run: &str) -> Option<SourceTies> {
        serde_json::from_slice(&self.ties.as_ref()?.read(&key(run))?).ok()
    }
}

fn key(run: &str) -> blake3::Hash {
    blake3::derive_key("edgewright 2026-11-22 ties of a source", run.as_bytes()).into()
}
