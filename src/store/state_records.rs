//! The records of a state. Each stays in the memory to which its file was read.

use std::collections::BTreeMap;

use bytes::Bytes;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

use super::changes::{Changes, ChangesIn};

/// Records of a state, in any order. They are found by their places: a value for each that shares the memory of a file would
/// be counted there, by all cores in turn.
#[derive(Default)]
pub struct StateRecords {
    memory: Vec<Bytes>,
    places: Vec<RecordPlace>,
}

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

impl StateRecords {
    /// Records that start at these places of some memory, which has them as changes. Returns none if one is incomplete or
    /// has no value, or if its key is no text.
    pub(super) fn in_memory(memory: Bytes, starts: &[usize]) -> Option<Self> {
        let place = |start: &usize| -> Option<RecordPlace> {
            let (key, value) = ChangesIn::new(memory.get(*start..)?).next()?.ok()?;
            Some(RecordPlace::in_memory(0, &memory, key, value?))
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

    /// These records after changes of those with certain keys, in the order of their keys.
    #[must_use]
    pub(super) fn after(self, changes: impl Iterator<Item = Changes>, is_record: impl Fn(&str) -> bool) -> Self {
        let Self { mut memory, places } = self;
        let first = memory.len();
        memory.extend(changes.flat_map(Changes::into_pieces));
        let before = places.into_iter().filter_map(|place| Some((place.of(&memory)?.key, place)));
        let mut after: BTreeMap<&str, RecordPlace> = before.collect();
        for (number, bytes) in memory.iter().enumerate().skip(first) {
            let changes = ChangesIn::new(bytes).map_while(Result::ok);
            for (key, value) in changes.filter(|(key, _)| is_record(key)) {
                match value {
                    Some(value) => after.insert(key, RecordPlace::in_memory(number, bytes, key, value)),
                    None => after.remove(key),
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
    use crate::store::changes::encode_change;

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
        let first: Changes = [("r/c", Some("333")), ("u/r/c", None), ("r/a", None)].into_iter().collect();
        let mut second: Changes = [("r/b", Some("4"))].into_iter().collect();
        second.append([("d/x", None), ("r/a", Some("5")), ("u/r/a", Some("22"))].into_iter().collect());
        let after = records.after([first, second].into_iter(), |key| !key.starts_with("u/"));
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
        encode_change("r/a", Some(b"value"), &mut memory);
        let (end, whole) = (memory.len(), Bytes::from(memory));
        assert_eq!(all(&StateRecords::in_memory(whole.clone(), &[0]).unwrap()), [record("r/a", "value")]);
        assert!((0..end).all(|cut| StateRecords::in_memory(whole.slice(..cut), &[0]).is_none()));
        assert!(StateRecords::in_memory(whole, &[end]).is_none());
        for (key, value) in [(&b"r/a"[..], None), (&[0xff][..], Some(&b"value"[..]))] {
            let mut memory = (key.len() as u32).to_le_bytes().to_vec();
            memory.extend(value.map_or(u64::MAX, |value| value.len() as u64).to_le_bytes());
            memory.extend(key.iter().chain(value.unwrap_or_default()));
            assert!(StateRecords::in_memory(memory.into(), &[0]).is_none());
        }
    }
}
