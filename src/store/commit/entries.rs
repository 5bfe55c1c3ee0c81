//! The entries of a commit: what it did to each record of the state. They are in the form in which the log has them, so that
//! those of a large commit are not hundreds of thousands of small values in memory.
//!
//! An entry is verified by itself, since it is also read by itself. Numbers are little endian, and a length of all ones is a
//! value that does not exist:
//!
//! ```text
//!  0  lengths: key (4 bytes), value after (8), value before (8), place (4), drift (4)
//! 28  the first 8 bytes of the BLAKE3 hash of the rest of the entry
//! 36  key · value after · value before · place · drift
//! ```

use bytes::Bytes;

/// A blake3 hash.
pub type Hash = [u8; 32];

/// The lengths of the key, the value after, the value before, the place and the drift, and the checksum of an entry.
pub(crate) const HEAD: usize = 4 + 8 + 8 + 4 + 4 + SUM;
/// The length of the checksum of an entry: one that is read by itself is verified by it.
const SUM: usize = 8;
/// No value has this length: it marks one that does not exist.
const NONE: u64 = u64::MAX;
/// A piece that is as long as this is complete.
const PIECE: usize = 1 << 20;
/// How many bytes are hashed at once. BLAKE3 hashes many at a time several times as fast as few.
const ON_ALL_CORES: usize = 1 << 17;

/// A commit's change to a record of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommitEntry<'e> {
    /// The key of the record.
    pub key: &'e str,
    /// The value after the commit, or none if it was removed.
    pub after: Option<&'e [u8]>,
    /// The value before the commit, or none if it is new.
    pub before: Option<&'e [u8]>,
    /// The file that declares the resource, as `file:line` or without the line; empty if there is none.
    pub place: &'e str,
    /// A JSON list of pointers to the fields whose drift was reverted (D85); empty if there is none.
    pub drift: &'e str,
}

/// The entries of a commit, in order.
#[derive(Clone, Default)]
pub struct CommitEntries {
    /// Each has complete entries, one after another.
    pieces: Vec<Bytes>,
    /// The encoded entries after the pieces.
    last: Vec<u8>,
    count: usize,
}

impl CommitEntries {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds an entry.
    pub fn push(&mut self, entry: &CommitEntry<'_>) {
        if self.last.len() >= PIECE {
            self.end_piece();
        }
        encode_entry(entry, &mut self.last);
        self.count += 1;
    }

    /// Ends the last piece, without room for more.
    pub(super) fn end_piece(&mut self) {
        if !self.last.is_empty() {
            self.last.shrink_to_fit();
            self.pieces.push(std::mem::take(&mut self.last).into());
        }
    }

    /// Adds entries after these.
    pub fn append(&mut self, more: Self) {
        if more.is_empty() {
            return;
        }
        self.end_piece();
        self.pieces.extend(more.pieces);
        (self.last, self.count) = (more.last, self.count + more.count);
    }

    /// Visits all entries.
    pub fn iter(&self) -> impl Iterator<Item = CommitEntry<'_>> {
        self.pieces().flat_map(entries_in).map(|(entry, _)| entry)
    }

    /// Visits all entries, each with the offset at which it is encoded.
    pub(crate) fn located(&self) -> impl Iterator<Item = (u64, CommitEntry<'_>)> {
        let mut at = 0;
        self.iter().map(move |entry| {
            let offset = at;
            at += entry.length() as u64;
            (offset, entry)
        })
    }

    /// Visits all entries, each with its encoded form.
    pub(crate) fn encoded(&self) -> impl Iterator<Item = (CommitEntry<'_>, &[u8])> {
        self.pieces().flat_map(|piece| {
            let mut from = piece;
            entries_in(piece).map(move |(entry, rest)| {
                let own = from.get(..from.len() - rest.len()).unwrap_or_default();
                from = rest;
                (entry, own)
            })
        })
    }

    /// Reads encoded entries, which share the memory of `bytes`.
    pub(crate) fn parse(bytes: Bytes) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::default());
        }
        let (count, rest) = entries_in(&bytes).fold((0, &*bytes), |(count, _), (_, rest)| (count + 1, rest));
        rest.is_empty().then(|| Self { pieces: vec![bytes.clone()], last: Vec::new(), count })
    }

    /// The encoded entries.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let last = (!self.last.is_empty()).then_some(self.last.as_slice());
        self.pieces.iter().map(|piece| &**piece).chain(last)
    }

    /// The length of the encoded entries, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.pieces().map(<[u8]>::len).sum()
    }

    /// The digest of the calls and the entries of a commit, which the hash chain covers.
    pub(crate) fn digest(&self, calls: &[u8]) -> Hash {
        digest_of(std::iter::once(calls).chain(self.pieces()))
    }
}

/// The digest of calls and encoded entries, in pieces.
pub(crate) fn digest_of<'p>(pieces: impl Iterator<Item = &'p [u8]>) -> Hash {
    let mut hasher = blake3::Hasher::new();
    for piece in pieces {
        if piece.len() < ON_ALL_CORES {
            hasher.update(piece)
        } else {
            hasher.update_rayon(piece)
        };
    }
    hasher.finalize().into()
}

impl CommitEntry<'_> {
    /// The length of its encoded form.
    fn length(&self) -> usize {
        let value = |value: Option<&[u8]>| value.map_or(0, <[u8]>::len);
        HEAD + self.key.len() + value(self.after) + value(self.before) + self.place.len() + self.drift.len()
    }
}

impl PartialEq for CommitEntries {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && self.iter().eq(other.iter())
    }
}

/// Omits the values, which have secrets in clear if there is no keyring.
impl std::fmt::Debug for CommitEntries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} entries", self.count)
    }
}

impl<'e> FromIterator<CommitEntry<'e>> for CommitEntries {
    fn from_iter<I: IntoIterator<Item = CommitEntry<'e>>>(entries: I) -> Self {
        let mut all = Self::default();
        entries.into_iter().for_each(|entry| all.push(&entry));
        all
    }
}

/// Appends an encoded entry to `out`.
fn encode_entry(entry: &CommitEntry<'_>, out: &mut Vec<u8>) {
    out.reserve(entry.length());
    let start = out.len();
    let length = |value: Option<&[u8]>| value.map_or(NONE, |value| value.len() as u64);
    out.extend_from_slice(&(entry.key.len() as u32).to_le_bytes());
    out.extend_from_slice(&length(entry.after).to_le_bytes());
    out.extend_from_slice(&length(entry.before).to_le_bytes());
    out.extend_from_slice(&(entry.place.len() as u32).to_le_bytes());
    out.extend_from_slice(&(entry.drift.len() as u32).to_le_bytes());
    out.extend_from_slice(&[0; SUM]);
    out.extend_from_slice(entry.key.as_bytes());
    out.extend_from_slice(entry.after.unwrap_or_default());
    out.extend_from_slice(entry.before.unwrap_or_default());
    out.extend_from_slice(entry.place.as_bytes());
    out.extend_from_slice(entry.drift.as_bytes());
    let sum = out.get(start..).map(checksum).unwrap_or_default();
    if let Some(place) = out.get_mut(start + HEAD - SUM..).and_then(<[u8]>::first_chunk_mut) {
        *place = sum;
    }
}

/// The checksum of an encoded entry, over everything but the checksum itself.
fn checksum(entry: &[u8]) -> [u8; SUM] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(entry.get(..HEAD - SUM).unwrap_or_default()).update(entry.get(HEAD..).unwrap_or_default());
    hasher.finalize().as_bytes().first_chunk().copied().unwrap_or_default()
}

/// Returns the length of the encoded entry at the start of `bytes`, which only need to have its head.
pub(crate) fn entry_length(bytes: &[u8]) -> Option<usize> {
    let (EntryLengths { key, after, before, place, drift }, _) = EntryLengths::read(bytes)?;
    let parts = [key, after.unwrap_or_default(), before.unwrap_or_default(), place, drift];
    parts.into_iter().try_fold(HEAD, usize::checked_add)
}

/// Returns the key of the encoded entry at the start of `bytes`, without a look at the rest.
pub(crate) fn entry_key(bytes: &[u8]) -> Option<&[u8]> {
    let (EntryLengths { key, .. }, rest) = EntryLengths::read(bytes)?;
    rest.get(..key)
}

/// Reads the encoded entry that these bytes are, and verifies it.
pub(crate) fn decode_entry(bytes: &[u8]) -> Option<CommitEntry<'_>> {
    let (entry, rest) = split_entry(bytes)?;
    (rest.is_empty() && bytes.get(HEAD - SUM..HEAD)? == checksum(bytes)).then_some(entry)
}

/// The lengths at the start of an encoded entry.
struct EntryLengths {
    key: usize,
    after: Option<usize>,
    before: Option<usize>,
    place: usize,
    drift: usize,
}

impl EntryLengths {
    /// Reads the head of an entry. Returns what follows it, too.
    fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (key, rest) = bytes.split_first_chunk()?;
        let (after, rest) = rest.split_first_chunk()?;
        let (before, rest) = rest.split_first_chunk()?;
        let (place, rest) = rest.split_first_chunk()?;
        let (drift, rest) = rest.split_first_chunk()?;
        let value = |bytes: &[u8; 8]| match u64::from_le_bytes(*bytes) {
            NONE => Some(None),
            length => usize::try_from(length).ok().map(Some),
        };
        let short = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes) as usize;
        let lengths = Self {
            key: short(key),
            after: value(after)?,
            before: value(before)?,
            place: short(place),
            drift: short(drift),
        };
        Some((lengths, rest.get(SUM..)?))
    }
}

/// Parses the encoded entry at the start of `bytes`, without its checksum. Returns what follows it, too; none if the bytes end
/// in the middle of it, or a text is none.
fn split_entry(bytes: &[u8]) -> Option<(CommitEntry<'_>, &[u8])> {
    let (lengths, mut rest) = EntryLengths::read(bytes)?;
    let mut take = |length: usize| {
        let (part, after) = rest.split_at_checked(length)?;
        rest = after;
        Some(part)
    };
    let key = std::str::from_utf8(take(lengths.key)?).ok()?;
    let after = if let Some(length) = lengths.after { Some(take(length)?) } else { None };
    let before = if let Some(length) = lengths.before { Some(take(length)?) } else { None };
    let place = std::str::from_utf8(take(lengths.place)?).ok()?;
    let drift = std::str::from_utf8(take(lengths.drift)?).ok()?;
    Some((CommitEntry { key, after, before, place, drift }, rest))
}

/// The entries at the start of `bytes`, each with what follows it.
fn entries_in(bytes: &[u8]) -> impl Iterator<Item = (CommitEntry<'_>, &[u8])> {
    std::iter::successors(split_entry(bytes), |(_, rest)| split_entry(rest))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn values(number: usize) -> (String, Vec<u8>, Vec<u8>) {
        (format!("r/{number}"), vec![7; 1000 * (number % 4)], vec![8; 10 * (number % 3)])
    }

    fn entry((key, after, before): &(String, Vec<u8>, Vec<u8>)) -> CommitEntry<'_> {
        let (place, drift) = if key.ends_with('1') { ("a.yaml:1", "[\"/b\"]") } else { ("", "") };
        let is_there = |value: &&[u8]| !value.is_empty();
        let (after, before) = (Some(after.as_slice()).filter(is_there), Some(before.as_slice()).filter(is_there));
        CommitEntry { key, after, before, place, drift }
    }

    #[test]
    fn entries_are_those_that_were_added_in_any_number_of_pieces() {
        for many in [0, 1, 2000] {
            let added: Vec<_> = (0..many).map(values).collect();
            let expected: Vec<CommitEntry<'_>> = added.iter().map(entry).collect();
            let mut entries: CommitEntries = expected[..many / 2].iter().copied().collect();
            entries.append(expected[many / 2..].iter().copied().collect());
            assert_eq!(entries.iter().collect::<Vec<_>>(), expected);
            assert_eq!((entries.len(), entries.is_empty()), (many, many == 0));
            assert_eq!(entries.pieces().count() > 1, many > 1);
            let bytes = Bytes::from(entries.pieces().collect::<Vec<_>>().concat());
            assert_eq!(bytes.len(), entries.size());
            assert_eq!(entries.digest(b"x"), digest_of([b"x", &bytes[..]].into_iter()));
            let parsed = CommitEntries::parse(bytes.clone()).unwrap();
            assert!(parsed == entries);
            for (offset, entry) in parsed.located() {
                let rest = &bytes[offset as usize..];
                let length = entry_length(rest).unwrap();
                assert_eq!(decode_entry(&rest[..length]), Some(entry));
            }
            assert!(entries.pieces().collect::<Vec<_>>().concat() == bytes);
            assert!(entries.encoded().all(|(entry, own)| decode_entry(own) == Some(entry)));
            assert!(entries.encoded().map(|(_, own)| own).collect::<Vec<_>>().concat() == bytes);
        }
    }

    #[test]
    fn what_ends_in_the_middle_of_an_entry_is_malformed_and_every_flipped_bit_is_found() {
        let values = [values(1), values(5)];
        let entries: CommitEntries = values.iter().map(entry).collect();
        let bytes = Bytes::from(entries.pieces().collect::<Vec<_>>().concat());
        let first = entry_length(&bytes).unwrap();
        for cut in (1..bytes.len()).filter(|cut| *cut != first) {
            assert!(CommitEntries::parse(bytes.slice(..cut)).is_none(), "{cut}");
        }
        assert_eq!(CommitEntries::parse(bytes.slice(..first)).unwrap().len(), 1);
        for at in 0..first {
            let mut damaged = bytes[..first].to_vec();
            damaged[at] ^= 1 << (at % 8);
            assert!(decode_entry(&damaged).is_none(), "byte {at}");
        }
    }
}
