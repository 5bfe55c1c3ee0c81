//! How much of a tree is read that is read again and again (D74).

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

/// Files that have certainly not changed are not read.
const CHANGED: u8 = 0;
/// All files are read, until something is saved.
const FULL_UNTIL_SAVED: u8 = 1;
/// All files are read.
const FULL: u8 = 2;

/// Whether a reading reads all files, also those that have certainly not changed. Clones share it: a file that is saved during a
/// reading for which nobody waits makes it read only what may have changed from there on.
#[derive(Debug, Clone, Default)]
pub struct ReadingDepth(Arc<AtomicU8>);

impl ReadingDepth {
    /// The next reading reads only files that may have changed.
    pub(crate) fn read_changed(&self) {
        self.0.store(CHANGED, Ordering::Relaxed);
    }

    /// The next reading reads all files, unless something is saved meanwhile.
    pub(crate) fn read_all_until_saved(&self) {
        self.0.store(FULL_UNTIL_SAVED, Ordering::Relaxed);
    }

    /// The next reading reads all files.
    pub(crate) fn read_all(&self) {
        self.0.store(FULL, Ordering::Relaxed);
    }

    /// Something was saved.
    pub(crate) fn hurry(&self) {
        self.turn(CHANGED);
    }

    /// The reading has ended, so that what is saved from now on does not change what it has read.
    pub(super) fn end(&self) {
        self.turn(FULL);
    }

    fn turn(&self, to: u8) {
        let _ = self.0.compare_exchange(FULL_UNTIL_SAVED, to, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Whether to read a file that has certainly not changed; after the reading, whether it has read all files.
    pub(crate) fn is_full(&self) -> bool {
        self.0.load(Ordering::Relaxed) != CHANGED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_shortens_only_a_reading_that_nobody_waits_for_and_that_has_not_ended() {
        let depth = ReadingDepth::default();
        assert!(!depth.is_full());
        depth.read_all_until_saved();
        assert!(depth.is_full());
        depth.clone().hurry();
        assert!(!depth.is_full());
        depth.end();
        assert!(!depth.is_full());
        depth.read_all_until_saved();
        depth.end();
        depth.hurry();
        assert!(depth.is_full(), "it has read all files");
        depth.read_all();
        depth.hurry();
        assert!(depth.is_full(), "it is overdue");
        depth.read_changed();
        assert!(!depth.is_full());
    }
}
