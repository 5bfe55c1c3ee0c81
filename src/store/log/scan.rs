//! Finds everything that can be read in a file of the log, also after damage (D100).
//!
//! A reader stops at the first bytes that are no frame. A repair wants to know what is behind them: it looks for the next
//! place at which a complete frame begins, whose checksum and digest make a coincidence impossible, and goes on there. The
//! result is runs of frames, each of which continues the hash chain without a gap. The first run follows the header of the
//! file; what the later ones followed is lost.

use std::path::Path;

use super::appender::{HEAD, start_of};
use super::frame;
use crate::store::commit::batch::{Batch, Tip};
use crate::store::commit::header::{ScrubbedRecord, ScrubbedRecords, chain_commit};
use crate::store::disk::files;
use crate::store::error::{Doing, StoreError};
use crate::store::seal::StoreId;

/// A file of the log that was scanned.
pub(crate) struct LogScan {
    bytes: Vec<u8>,
    /// The store of the file, and the batch before its first one; none if the header cannot be read.
    pub header: Option<(StoreId, Tip)>,
    /// The frames that follow the header or the expected start. They may be none.
    pub first: FrameRun,
    /// The frames after damage, or of another log.
    pub later: Vec<FrameRun>,
    /// The earlier records that those of `first` list as scrubbed.
    pub listed: ScrubbedRecords,
}

/// Frames without a gap. Each continues the hash chain of the one before.
pub(crate) struct FrameRun {
    /// The offset of the first one.
    pub begin: usize,
    /// The end of the last one.
    pub end: usize,
    pub frames: Vec<ScannedFrame>,
}

/// A frame that can be read.
#[derive(Clone, Copy)]
pub(crate) struct ScannedFrame {
    pub offset: usize,
    /// The end of the log after it.
    pub tip: Tip,
}

impl FrameRun {
    fn at(begin: usize) -> Self {
        Self { begin, end: begin, frames: Vec::new() }
    }

    /// The end of the log after the last frame.
    pub(crate) fn tip(&self) -> Option<Tip> {
        self.frames.last().map(|frame| frame.tip)
    }
}

impl LogScan {
    /// Scans a file. `expected` is the batch before its first one, which counts if the header cannot be read. `scrubbed` has
    /// what the files after it list.
    pub(crate) fn read(path: &Path, expected: Option<Tip>, scrubbed: &ScrubbedRecords) -> Result<Self, StoreError> {
        let bytes = files::read(path).doing("read", path)?;
        Ok(Self::from_bytes(bytes, expected, scrubbed))
    }

    fn from_bytes(bytes: Vec<u8>, expected: Option<Tip>, scrubbed: &ScrubbedRecords) -> Self {
        let header = start_of(&bytes);
        let mut previous = header.map(|(_, start)| start).or(expected);
        let mut at = HEAD.min(bytes.len());
        let mut first = FrameRun::at(at);
        let (mut later, mut listed): (Vec<FrameRun>, _) = (Vec::new(), ScrubbedRecords::default());
        while at < bytes.len() {
            let rest = bytes.get(at..).unwrap_or_default();
            let Some((batch, length)) = frame::decode(rest) else {
                let Some(skipped) = frame::next_frame(rest, usize::MAX) else { break };
                at += skipped;
                previous = None;
                continue;
            };
            let continues = |before: Tip| {
                let is_own = || chain_commit(&before.hash, &batch.header, &batch.digest) == batch.hash;
                let is_scrubbed = || scrubbed.contains(&ScrubbedRecord::new(&batch));
                before.position + 1 == batch.position && (is_own() || is_scrubbed())
            };
            if !previous.is_some_and(continues) {
                later.push(FrameRun::at(at));
            }
            if later.is_empty() {
                listed.add_from(&batch.header);
            }
            let run = later.last_mut().unwrap_or(&mut first);
            run.frames.push(ScannedFrame { offset: at, tip: Tip::after(&batch) });
            at += length;
            run.end = at;
            previous = Some(Tip::after(&batch));
        }
        Self { bytes, header, first, later, listed }
    }

    /// Scans the file anew with another expected start.
    pub(crate) fn rescanned(self, expected: Tip, scrubbed: &ScrubbedRecords) -> Self {
        Self::from_bytes(self.bytes, Some(expected), scrubbed)
    }

    /// The length of the file.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Whether every byte after the header is a frame of the log.
    pub(crate) fn is_whole(&self) -> bool {
        self.first.end == self.size() && self.later.is_empty()
    }

    /// Reads a frame.
    pub(crate) fn batch(&self, frame: &ScannedFrame) -> Option<Batch> {
        frame::decode(self.bytes.get(frame.offset..)?).map(|(batch, _)| batch)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;
    use crate::store::log::{appender, frame::tests::batch};

    fn log(count: u64) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.0000000001");
        let mut before = Tip::default();
        let mut batches = (1..=count).map(|position| {
            let mut batch = batch(position, 1);
            batch.hash = chain_commit(&before.hash, &batch.header, &batch.digest);
            before = Tip::after(&batch);
            batch
        });
        appender::write_whole(&path, [1; 16], Tip::default(), || Ok(batches.next())).unwrap();
        (folder, path)
    }

    fn positions(run: &FrameRun) -> Vec<u64> {
        run.frames.iter().map(|frame| frame.tip.position).collect()
    }

    #[test]
    fn what_is_after_damage_is_found_and_told_from_what_is_before() {
        let (_folder, path) = log(6);
        let whole = LogScan::read(&path, None, &ScrubbedRecords::default()).unwrap();
        assert!(whole.is_whole() && positions(&whole.first) == [1, 2, 3, 4, 5, 6]);
        let third = whole.first.frames.get(2).unwrap().offset;
        let mut bytes = fs::read(&path).unwrap();
        *bytes.get_mut(third + 106).unwrap() ^= 1;
        fs::write(&path, &bytes).unwrap();
        let damaged = LogScan::read(&path, None, &ScrubbedRecords::default()).unwrap();
        assert!(!damaged.is_whole());
        assert_eq!((positions(&damaged.first), damaged.first.end), (vec![1, 2], third));
        assert_eq!(damaged.later.iter().map(positions).collect::<Vec<_>>(), [[4, 5, 6]]);
        assert_eq!(damaged.later.last().unwrap().end, bytes.len());
    }

    #[test]
    fn frames_follow_the_expected_start_if_the_header_cannot_be_read() {
        let (_folder, path) = log(3);
        let mut bytes = fs::read(&path).unwrap();
        *bytes.get_mut(9).unwrap() ^= 1;
        fs::write(&path, &bytes).unwrap();
        let unknown = LogScan::read(&path, None, &ScrubbedRecords::default()).unwrap();
        assert!(unknown.header.is_none() && unknown.first.frames.is_empty());
        assert_eq!(unknown.later.iter().map(positions).collect::<Vec<_>>(), [[1, 2, 3]]);
        let known = unknown.rescanned(Tip::default(), &ScrubbedRecords::default());
        assert!(known.is_whole() && positions(&known.first) == [1, 2, 3]);
    }

    #[test]
    fn a_torn_end_is_no_frame() {
        let (_folder, path) = log(3);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, bytes.get(..bytes.len() - 1).unwrap()).unwrap();
        let torn = LogScan::read(&path, None, &ScrubbedRecords::default()).unwrap();
        assert!(!torn.is_whole() && torn.later.is_empty());
        assert_eq!(positions(&torn.first), [1, 2]);
    }
}
