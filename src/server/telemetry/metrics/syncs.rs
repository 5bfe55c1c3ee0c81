//! When each source was last in sync with what a client sent.

use crate::server::prelude::*;

/// The most sources; the one that was in sync the longest ago makes room.
const MOST_SOURCES: usize = 100;

/// The last successful sync of each source, since the server started.
#[derive(Default)]
pub(crate) struct SyncTimes(Lock<BTreeMap<String, i64>>);

impl SyncTimes {
    /// Records a successful sync.
    pub(in crate::server) fn note(&self, source: &str) {
        self.note_at(source, clock::now().as_second());
    }

    fn note_at(&self, source: &str, second: i64) {
        let mut times = self.0.lock();
        times.insert(source.to_owned(), second);
        if times.len() > MOST_SOURCES {
            let oldest = times.iter().min_by_key(|(_, second)| **second).map(|(source, _)| source.clone());
            if let Some(oldest) = oldest {
                times.remove(&oldest);
            }
        }
    }

    /// Returns the Unix time of a source's last successful sync.
    pub(in crate::server) fn last(&self, source: &str) -> Option<i64> {
        self.0.lock().get(source).copied()
    }

    /// Returns the sources with the Unix time of their last successful sync.
    pub(super) fn all(&self) -> Vec<(String, i64)> {
        self.0.lock().iter().map(|(source, second)| (source.clone(), *second)).collect()
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn the_source_of_the_oldest_sync_makes_room() {
        let times = SyncTimes::default();
        for second in 0..=100 {
            times.note_at(&format!("s{second:03}"), second);
        }
        times.note_at("s001", 500);
        let all = times.all();
        assert_eq!((all.len(), all[0].clone()), (MOST_SOURCES, ("s001".to_owned(), 500)));
    }
}
