//! The changes of a batch. They are in the form in which journals and bases have them, so that those of a large commit are
//! not hundreds of thousands of small values in memory.

use bytes::Bytes;

use super::engine::UNDO;

/// The length of a key, and that of a value.
const HEAD: usize = 4 + 8;
/// No value has this length: it marks a removed record.
const REMOVED: u64 = u64::MAX;
/// A piece that is as long as this is complete.
const PIECE: usize = 1 << 20;

/// A change of the state: the key of a record, and its value unless the record is removed.
pub type RecordChange<'c> = (&'c str, Option<&'c [u8]>);

/// Changes of the state, in order.
#[derive(Clone, Default)]
pub struct Changes {
    /// Each has complete changes, one after another.
    pieces: Vec<Bytes>,
    /// Those after the pieces.
    last: Vec<u8>,
    count: usize,
}

impl Changes {
    /// Returns the number of changes.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a change.
    pub fn push(&mut self, key: &str, value: Option<&[u8]>) {
        if self.last.len() >= PIECE {
            self.end_piece();
        }
        encode_change(key, value, &mut self.last);
        self.count += 1;
    }

    fn end_piece(&mut self) {
        if !self.last.is_empty() {
            self.pieces.push(std::mem::take(&mut self.last).into());
        }
    }

    /// Adds changes after these.
    pub fn append(&mut self, more: Self) {
        if more.is_empty() {
            return;
        }
        self.end_piece();
        self.pieces.extend(more.pieces);
        (self.last, self.count) = (more.last, self.count + more.count);
    }

    /// Visits all changes.
    pub fn iter(&self) -> impl Iterator<Item = RecordChange<'_>> {
        self.pieces().flat_map(|piece| ChangesIn::new(piece).map_while(Result::ok))
    }

    /// Returns the changes that undo a batch: all that the history keeps.
    #[must_use]
    pub fn undoing(&self) -> Self {
        self.iter().filter(|(key, _)| key.starts_with(UNDO)).collect()
    }

    /// Returns the encoded changes.
    pub(super) fn into_pieces(mut self) -> Vec<Bytes> {
        self.end_piece();
        self.pieces
    }

    /// Makes changes of encoded ones, of which there are `count`.
    pub(super) fn of_piece(piece: Vec<u8>, count: usize) -> Self {
        Self { pieces: Vec::new(), last: piece, count }
    }

    /// Reads encoded changes, which share the memory of `bytes`.
    pub(super) fn parse(bytes: Bytes) -> Result<Self, Malformed> {
        let count = ChangesIn::new(&bytes).try_fold(0, |count, change| change.map(|_| count + 1))?;
        Ok(if count == 0 { Self::default() } else { Self { pieces: vec![bytes], last: Vec::new(), count } })
    }

    /// The encoded changes.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let last = (!self.last.is_empty()).then_some(self.last.as_slice());
        self.pieces.iter().map(|piece| &**piece).chain(last)
    }

    /// The length of the encoded changes, in bytes.
    pub(super) fn size(&self) -> usize {
        self.pieces().map(<[u8]>::len).sum()
    }
}

impl PartialEq for Changes {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && self.iter().eq(other.iter())
    }
}

/// Omits the values, which have secrets in clear if there is no keyring.
impl std::fmt::Debug for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} changes", self.count)
    }
}

impl<K: AsRef<str>, V: AsRef<[u8]>> FromIterator<(K, Option<V>)> for Changes {
    fn from_iter<I: IntoIterator<Item = (K, Option<V>)>>(changes: I) -> Self {
        let mut all = Self::default();
        for (key, value) in changes {
            all.push(key.as_ref(), value.as_ref().map(AsRef::as_ref));
        }
        all
    }
}

/// Appends an encoded change to `out`.
pub(super) fn encode_change(key: &str, value: Option<&[u8]>, out: &mut Vec<u8>) {
    out.reserve(HEAD + key.len() + value.map_or(0, <[u8]>::len));
    append_head(key, value.map_or(REMOVED, |value| value.len() as u64), out);
    out.extend_from_slice(value.unwrap_or_default());
}

/// Appends an encoded change whose value `write` appends.
pub(super) fn encode_change_with<E>(
    key: &str,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    append_head(key, 0, out);
    let start = out.len();
    write(out)?;
    let length = (out.len() - start) as u64;
    if let Some(place) = out.get_mut(start - key.len() - 8..).and_then(<[u8]>::first_chunk_mut) {
        *place = length.to_le_bytes();
    }
    Ok(())
}

fn append_head(key: &str, value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&(key.len() as u32).to_le_bytes());
    out.extend_from_slice(&value.to_le_bytes());
    out.extend_from_slice(key.as_bytes());
}

/// Returns the length of the encoded change at the start of `bytes`, which only need to have its head.
pub(super) fn change_length(bytes: &[u8]) -> Option<usize> {
    let (key, value, _) = head_of(bytes)?;
    HEAD.checked_add(key)?.checked_add(value.unwrap_or_default())
}

/// The lengths of the key and the value of the change at the start of `bytes`, and what follows its head.
fn head_of(bytes: &[u8]) -> Option<(usize, Option<usize>, &[u8])> {
    let (key, rest) = bytes.split_first_chunk()?;
    let (value, rest) = rest.split_first_chunk()?;
    let value = match u64::from_le_bytes(*value) {
        REMOVED => None,
        length => Some(usize::try_from(length).ok()?),
    };
    Some((u32::from_le_bytes(*key) as usize, value, rest))
}

/// Encoded changes end in the middle of one, or a key is no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// Parses encoded changes. After an error there is nothing more.
pub(super) struct ChangesIn<'b> {
    rest: &'b [u8],
}

impl<'b> ChangesIn<'b> {
    /// Starts at the first change.
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    fn read(&mut self) -> Option<RecordChange<'b>> {
        let (key, value, rest) = head_of(std::mem::take(&mut self.rest))?;
        let (key, rest) = rest.split_at_checked(key)?;
        let key = std::str::from_utf8(key).ok()?;
        let value = match value {
            None => {
                self.rest = rest;
                None
            }
            Some(length) => {
                let (value, rest) = rest.split_at_checked(length)?;
                self.rest = rest;
                Some(value)
            }
        };
        Some((key, value))
    }
}

impl<'b> Iterator for ChangesIn<'b> {
    type Item = Result<RecordChange<'b>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        (!self.rest.is_empty()).then(|| self.read().ok_or(Malformed))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;

    use super::*;

    fn change(number: usize) -> (String, Option<Vec<u8>>) {
        let key = if number.is_multiple_of(3) { format!("u/r/{number}") } else { format!("r/{number}") };
        (key, (!number.is_multiple_of(5)).then(|| vec![7; 1000 * (number % 4)]))
    }

    #[test]
    fn changes_are_those_that_were_added_in_any_number_of_pieces() {
        for many in [0, 1, 2000] {
            let added: Vec<(String, Option<Vec<u8>>)> = (0..many).map(change).collect();
            let mut changes: Changes = added.iter().take(many / 2).cloned().collect();
            changes.append(added.iter().skip(many / 2).cloned().collect());
            let borrowed: Vec<RecordChange<'_>> =
                added.iter().map(|(key, value)| (key.as_str(), value.as_deref())).collect();
            assert_eq!(changes.iter().collect::<Vec<_>>(), borrowed);
            assert_eq!((changes.len(), changes.is_empty()), (many, many == 0));
            assert_eq!(changes.pieces().count() > 1, many > 1);
            let bytes = Bytes::from(changes.pieces().collect::<Vec<_>>().concat());
            assert_eq!(bytes.len(), changes.size());
            assert!(Changes::parse(bytes.clone()).unwrap() == changes);
            let mut again = Vec::new();
            for (key, value) in changes.iter() {
                match value {
                    Some(value) => {
                        let write = |out: &mut Vec<u8>| out.write_all(value);
                        encode_change_with(key, &mut again, write).unwrap();
                    }
                    None => encode_change(key, None, &mut again),
                }
            }
            assert!(again == bytes);
            let undoing: Vec<String> = changes.undoing().iter().map(|(key, _)| key.to_owned()).collect();
            assert_eq!(undoing, (0..many).step_by(3).map(|number| format!("u/r/{number}")).collect::<Vec<_>>());
            assert!(changes.into_pieces().concat() == bytes);
        }
    }

    #[test]
    fn what_ends_in_the_middle_of_a_change_is_malformed() {
        let changes: Changes = [("r/a", Some(b"value".as_slice())), ("r/b", None)].into_iter().collect();
        let bytes = Bytes::from(changes.pieces().collect::<Vec<_>>().concat());
        let first = change_length(&bytes).unwrap();
        for cut in (1..bytes.len()).filter(|cut| *cut != first) {
            assert!(Changes::parse(bytes.slice(..cut)).is_err(), "{cut}");
        }
        assert_eq!(Changes::parse(bytes.slice(..first)).unwrap().len(), 1);
        let no_text = Bytes::from_static(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff]);
        assert!(Changes::parse(no_text).is_err());
    }
}
