//! The records of a state. Each stays in the memory to which its file was read.

use std::collections::BTreeMap;

use bytes::Bytes;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

use super::entries::{CommitEntries, EntriesIn};

/// Records of a state, in any order. They are found by their places: a value for each that shares the memory of a file would
/// be counted there, by all cores in turn.
#[derive(Default)]
pub struct StateRecords {
    memory: Vec<Bytes>,
    places: Vec<RecordPlace>,
}

/// The length of a key, and that of a value.
const HEAD: usize = 4 + 8;

/// What a place without a record would be in.
static NOTHING: Bytes = Bytes::new();

/// Where a record is.
#[derive(Clone, Copy)]
struct RecordPlace {
    /// The number of its memory.
    memory: u32,
    /// The length of its key.
    key: u32,
    /// Where its key starts. The value follows.
    start: usize,
    /// The length of its value.
    value: usize,
}

/// A record of a state.
#[derive(Clone, Copy)]
pub(super) struct StateRecord<'r> {
    /// Its key.
    pub key: &'r str,
    /// Its value.
    pub value: &'r [u8],
    /// The memory that both are in.
    pub memory: &'r Bytes,
}

impl RecordPlace {
    /// The place of a record in the memory with this number. Its key and value are one after the other there.
    fn in_memory(number: usize, memory: &Bytes, key: &str, value: &[u8]) -> Self {
        let start = key.as_ptr().addr().wrapping_sub(memory.as_ptr().addr());
        Self { memory: number as u32, key: key.len() as u32, start, value: value.len() }
    }

    fn of<'m>(self, memory: &'m [Bytes]) -> Option<StateRecord<'m>> {
        let memory = memory.get(self.memory as usize)?;
        let (key, rest) = memory.get(self.start..)?.split_at_checked(self.key as usize)?;
        Some(StateRecord { key: std::str::from_utf8(key).ok()?, value: rest.get(..self.value)?, memory })
    }
}

/// Appends a record: the length of its key, that of its value, the key and the value.
pub(crate) fn encode_record(key: &str, value: &[u8], out: &mut Vec<u8>) {
    out.reserve(HEAD + key.len() + value.len());
    out.extend_from_slice(&(key.len() as u32).to_le_bytes());
    out.extend_from_slice(&(value.len() as u64).to_le_bytes());
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(value);
}

/// Returns the length of the record at the start of `bytes`, which only need to have its lengths.
pub(crate) fn record_length(bytes: &[u8]) -> Option<usize> {
    let (key, value, _) = lengths(bytes)?;
    HEAD.checked_add(key)?.checked_add(value)
}

fn decode_record(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (key, value, rest) = lengths(bytes)?;
    let (key, rest) = rest.split_at_checked(key)?;
    Some((std::str::from_utf8(key).ok()?, rest.get(..value)?))
}

fn lengths(bytes: &[u8]) -> Option<(usize, usize, &[u8])> {
    let (key, rest) = bytes.split_first_chunk()?;
    let (value, rest) = rest.split_first_chunk()?;
    Some((u32::from_le_bytes(*key) as usize, usize::try_from(u64::from_le_bytes(*value)).ok()?, rest))
}

impl StateRecords {
    /// Records that start at these places of some memory, which has them as [`encode_record`] writes them. Returns none if one
    /// is incomplete, or if its key is no text.
    pub(crate) fn in_memory(memory: Bytes, starts: &[usize]) -> Option<Self> {
        let place = |start: &usize| -> Option<RecordPlace> {
            let (key, value) = decode_record(memory.get(*start..)?)?;
            Some(RecordPlace::in_memory(0, &memory, key, value))
        };
        let places: Vec<Option<RecordPlace>> =
            starts.par_iter().with_min_len(256).with_max_len(4096).map(place).collect();
        let places = places.into_iter().collect::<Option<Vec<RecordPlace>>>()?;
        Some(Self { memory: vec![memory], places })
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns all records: their keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let records = self.places.iter().filter_map(|place| place.of(&self.memory));
        records.map(|record| (record.key, record.value))
    }

    /// All records, for all cores.
    pub(super) fn par_iter(&self) -> impl IndexedParallelIterator<Item = StateRecord<'_>> {
        self.at(&self.places)
    }

    /// All records in pieces of `size`, each for all cores.
    pub(super) fn pieces(
        &self,
        size: usize,
    ) -> impl Iterator<Item = impl IndexedParallelIterator<Item = StateRecord<'_>>> {
        self.places.chunks(size).map(|piece| self.at(piece))
    }

    fn at<'r>(&'r self, places: &'r [RecordPlace]) -> impl IndexedParallelIterator<Item = StateRecord<'r>> {
        // Each was found when its place was noted.
        places
            .par_iter()
            .map(move |place| place.of(&self.memory).unwrap_or(StateRecord { key: "", value: &[], memory: &NOTHING }))
    }

    /// Takes out the records with certain keys.
    pub(super) fn take(&mut self, is_taken: impl Fn(&str) -> bool + Sync) -> Vec<(String, Vec<u8>)> {
        // Usually, there is none.
        if !self.par_iter().any(|record| is_taken(record.key)) {
            return Vec::new();
        }
        let Self { memory, places } = self;
        let record = |place: RecordPlace| place.of(memory).map(|it| (it.key.to_owned(), it.value.to_vec()));
        let taken = places.extract_if(.., |place| place.of(memory).is_some_and(|it| is_taken(it.key)));
        taken.filter_map(record).collect()
    }

    /// These records after commits, in the order of their keys.
    #[must_use]
    pub(super) fn after(self, commits: impl Iterator<Item = CommitEntries>) -> Self {
        let Self { mut memory, places } = self;
        let first = memory.len();
        memory.extend(commits.flat_map(CommitEntries::into_pieces));
        let before = places.into_iter().filter_map(|place| Some((place.of(&memory)?.key, place)));
        let mut after: BTreeMap<&str, RecordPlace> = before.collect();
        for (number, bytes) in memory.iter().enumerate().skip(first) {
            for entry in EntriesIn::new(bytes).map_while(Result::ok) {
                match entry.after {
                    Some(value) => after.insert(entry.key, RecordPlace::in_memory(number, bytes, entry.key, value)),
                    None => after.remove(entry.key),
                };
            }
        }
        let places = after.into_values().collect();
        Self { memory, places }
    }
}

impl<K: AsRef<str>, V: AsRef<[u8]>> FromIterator<(K, V)> for StateRecords {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(records: I) -> Self {
        let (mut memory, mut places) = (Vec::new(), Vec::new());
        for (key, value) in records {
            let (key, value) = (key.as_ref().as_bytes(), value.as_ref());
            places.push(RecordPlace { memory: 0, key: key.len() as u32, start: memory.len(), value: value.len() });
            memory.extend_from_slice(key);
            memory.extend_from_slice(value);
        }
        Self { memory: vec![memory.into()], places }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::commit::entries::CommitEntry;

    fn all(records: &StateRecords) -> Vec<(String, Vec<u8>)> {
        let all: Vec<(String, Vec<u8>)> = records.par_iter().map(|it| (it.key.to_owned(), it.value.to_vec())).collect();
        assert!(all.iter().map(|(key, value)| (key.as_str(), value.as_slice())).eq(records.iter()));
        all
    }

    fn record(key: &str, value: &str) -> (String, Vec<u8>) {
        (key.to_owned(), value.as_bytes().to_vec())
    }

    #[test]
    fn records_after_changes_are_those_that_are_left() {
        let records: StateRecords = [record("r/b", "1"), record("d/x", ""), record("r/a", "22")].into_iter().collect();
        assert_eq!(all(&records), [record("r/b", "1"), record("d/x", ""), record("r/a", "22")]);
        let entry = |(key, after): (&'static str, Option<&'static str>)| CommitEntry {
            key,
            after: after.map(str::as_bytes),
            before: Some(b"22"),
            ..CommitEntry::default()
        };
        let first: CommitEntries = [("r/c", Some("333")), ("r/a", None)].into_iter().map(entry).collect();
        let mut second: CommitEntries = [("r/b", Some("4"))].into_iter().map(entry).collect();
        second.append([("d/x", None), ("r/a", Some("5"))].into_iter().map(entry).collect());
        let after = records.after([first, second].into_iter());
        assert_eq!(all(&after), [record("r/a", "5"), record("r/b", "4"), record("r/c", "333")]);
        let pieces: Vec<usize> = after.pieces(2).map(|piece| piece.len()).collect();
        assert_eq!((pieces, after.len()), (vec![2, 1], 3));
    }

    #[test]
    fn records_are_taken_by_their_keys() {
        let many = (0..1000).map(|at| record(&format!("{}/{at}", if at % 100 == 7 { "d" } else { "r" }), "value"));
        let mut records: StateRecords = many.collect();
        let taken = records.take(|key| key.starts_with("d/"));
        assert_eq!((taken.len(), records.len()), (10, 990));
        assert!(taken.iter().all(|(key, value)| key.starts_with("d/") && value == b"value"));
        assert!(records.take(|key| key.starts_with("d/")).is_empty());
        assert!(all(&records).iter().all(|(key, _)| key.starts_with("r/")));
    }

    #[test]
    fn an_incomplete_record_is_none() {
        let mut memory = Vec::new();
        encode_record("r/a", b"value", &mut memory);
        let (end, whole) = (memory.len(), Bytes::from(memory));
        assert_eq!(all(&StateRecords::in_memory(whole.clone(), &[0]).unwrap()), [record("r/a", "value")]);
        assert!((0..end).all(|cut| StateRecords::in_memory(whole.slice(..cut), &[0]).is_none()));
        assert!(StateRecords::in_memory(whole, &[end]).is_none());
        let mut memory = 1_u32.to_le_bytes().to_vec();
        memory.extend(0_u64.to_le_bytes());
        memory.push(0xff);
        assert!(StateRecords::in_memory(memory.into(), &[0]).is_none(), "a key that is no text");
    }
}
