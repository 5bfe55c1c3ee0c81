//! Words for what a repair gives up (D100).

use std::collections::BTreeSet;

use crate::store::commit::codec::resource_changes;
use crate::store::commit::header::CommitHeader;
use crate::store::commit::record_key::{RECORD, decode_key};
use crate::store::log::scan::{LogScan, ScannedFrame};

/// The most resources of a given-up record that are named.
const MOST_RESOURCES: usize = 10;

/// Describes a record: its number, revision and resources.
pub(super) fn describe_record(scan: &LogScan, frame: &ScannedFrame) -> String {
    let position = frame.tip.position;
    let batch = scan.batch(frame);
    let found = batch.and_then(|batch| Some((CommitHeader::from_bytes(&batch.header).ok()?, batch.entries)));
    let Some((header, entries)) = found else { return format!("record {position}, whose content is unknown") };
    let Some(revision) = header.revision else { return format!("record {position}, which changed nothing") };
    let keys = resource_changes(&entries).filter_map(|entry| decode_key(RECORD, entry.key.as_bytes()).ok());
    let mut paths: Vec<String> = keys.take(MOST_RESOURCES).map(|key| key.path()).collect();
    let others = header.changed.saturating_sub(paths.len());
    if others > 0 {
        paths.push(format!("{others} others"));
    }
    format!("record {position}, revision {revision} of {}: {}", header.at, paths.join(", "))
}

/// The numbers after `from` and up to `upto` that are not in a set, as ranges.
pub(super) fn gaps(from: u64, upto: u64, known: &BTreeSet<u64>) -> Vec<(u64, u64)> {
    let (mut found, mut next) = (Vec::new(), from + 1);
    for number in known.range(next..).copied().chain([upto + 1]) {
        if number > next && next <= upto {
            found.push((next, number - 1));
        }
        next = next.max(number + 1);
    }
    found
}

/// Names a range of records.
pub(super) fn numbers(from: u64, to: u64) -> String {
    if from == to { format!("record {from}") } else { format!("records {from} to {to}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_numbers_are_ranges() {
        let known = BTreeSet::from([3, 5, 6, 9]);
        assert_eq!(gaps(2, 10, &known), [(4, 4), (7, 8), (10, 10)]);
        assert!(gaps(9, 9, &known).is_empty() && gaps(0, 0, &BTreeSet::new()).is_empty());
        assert_eq!(gaps(0, 2, &BTreeSet::new()), [(1, 2)]);
        assert_eq!((numbers(4, 4).as_str(), numbers(7, 8).as_str()), ("record 4", "records 7 to 8"));
    }
}
