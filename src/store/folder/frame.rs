//! The frame of a batch in a journal: lengths, hashes, the history record, and the changes of the state.
//!
//! A checksum covers every byte, so that a frame is read completely or not at all.

use std::{convert::Infallible, sync::Arc};

use crate::store::engine::{Batch, Hash, RecordChange};

/// The first bytes of every frame.
const MAGIC: [u8; 4] = *b"ewf2";
/// Magic, length of the record, length of the changes, position, revision, next order, chain hash, checksum.
pub(super) const HEAD: usize = 4 + 4 + 8 + 8 + 8 + 8 + 32 + 32;
/// The offset of the checksum.
const CHECKSUM: usize = HEAD - 32;
/// The lengths of a key and a value.
const CHANGE_HEAD: usize = 4 + 8;

/// The reason why bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// The bytes end before the frame does.
    Short,
    /// The bytes are not what was written.
    Damaged,
}

/// The approximate size of the pieces in which the changes of a batch are written.
const CHUNK: usize = 1 << 20;

/// The longest frame that is made as a whole: BLAKE3 hashes bytes that are together several times as fast as pieces.
const TOGETHER: u64 = 1 << 16;

/// The frame of a batch. A large one is written in pieces: one with hundreds of megabytes is never in memory as a whole.
pub(super) struct BatchFrame<'b> {
    /// The head, and what follows it unless that is written from the batch.
    bytes: Vec<u8>,
    /// The batch of a large frame.
    large: Option<&'b Batch>,
    length: u64,
}

impl<'b> BatchFrame<'b> {
    /// Prepares the frame of a batch.
    pub(super) fn new(batch: &'b Batch) -> Self {
        let size = |(key, value): &RecordChange| CHANGE_HEAD + key.len() + value.as_ref().map_or(0, Vec::len);
        let changes = batch.changes.iter().map(size).sum::<usize>() as u64;
        let length = HEAD as u64 + batch.record.len() as u64 + changes;
        let large = (length > TOGETHER).then_some(batch);
        let mut bytes = Vec::with_capacity(if large.is_some() { HEAD } else { length as usize });
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&(batch.record.len() as u32).to_le_bytes());
        for number in [changes, batch.position, batch.revision, batch.next_order] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&batch.hash);
        let sum = if large.is_some() {
            let mut hasher = blake3::Hasher::new();
            hasher.update(&bytes);
            let Ok(()) = content(batch, &mut |piece: &[u8]| {
                if piece.len() < CHUNK {
                    hasher.update(piece)
                } else {
                    hasher.update_rayon(piece)
                };
                Ok::<(), Infallible>(())
            });
            hasher.finalize()
        } else {
            bytes.extend_from_slice(&batch.record);
            encode_changes(batch.changes.iter().map(|(key, value)| (key.as_str(), value.as_deref())), &mut bytes);
            blake3::hash(&bytes)
        };
        // The checksum is the end of the head.
        drop(bytes.splice(CHECKSUM..CHECKSUM, sum.as_bytes().iter().copied()));
        Self { bytes, large, length }
    }

    /// Returns the length in bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Gives all bytes to `write`, in order.
    pub(super) fn write<E>(&self, write: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        write(&self.bytes)?;
        self.large.map_or(Ok(()), |batch| content(batch, write))
    }
}

/// Visits what follows the head of a frame.
fn content<E>(batch: &Batch, visit: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    visit(&batch.record)?;
    let mut chunk = Vec::new();
    for (key, value) in &batch.changes {
        encode_changes([(key.as_str(), value.as_deref())].into_iter(), &mut chunk);
        if chunk.len() >= CHUNK {
            visit(&chunk)?;
            chunk.clear();
        }
    }
    visit(&chunk)
}

/// Appends changes to `out`.
pub(super) fn encode_changes<'a>(changes: impl Iterator<Item = (&'a str, Option<&'a [u8]>)>, out: &mut Vec<u8>) {
    for (key, value) in changes {
        out.extend_from_slice(&(key.len() as u32).to_le_bytes());
        // No value has this length, so it marks a removed record.
        let length = value.map_or(u64::MAX, |value| value.len() as u64);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(value.unwrap_or_default());
    }
}

/// Returns the length of the change at the start of `bytes`, which only need to have its head.
pub(super) fn change_length(bytes: &[u8]) -> Option<usize> {
    let key = number::<4>(bytes, 0)? as usize;
    let value = number::<8>(bytes, 4)?;
    let value = if value == u64::MAX { 0 } else { usize::try_from(value).ok()? };
    CHANGE_HEAD.checked_add(key)?.checked_add(value)
}

/// Parses the output of [`encode_changes`]. After an error there is nothing more.
pub(super) struct Changes<'b> {
    rest: &'b [u8],
}

impl<'b> Changes<'b> {
    /// Starts at the first change.
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    fn read(&mut self) -> Option<(&'b str, Option<&'b [u8]>)> {
        let bytes = std::mem::take(&mut self.rest);
        let key_length = number::<4>(bytes, 0)? as usize;
        let value_length = number::<8>(bytes, 4)?;
        let (key, rest) = bytes.get(CHANGE_HEAD..)?.split_at_checked(key_length)?;
        let key = std::str::from_utf8(key).ok()?;
        if value_length == u64::MAX {
            self.rest = rest;
            return Some((key, None));
        }
        let (value, rest) = rest.split_at_checked(usize::try_from(value_length).ok()?)?;
        self.rest = rest;
        Some((key, Some(value)))
    }
}

impl<'b> Iterator for Changes<'b> {
    type Item = Result<(&'b str, Option<&'b [u8]>), Unreadable>;

    fn next(&mut self) -> Option<Self::Item> {
        (!self.rest.is_empty()).then(|| self.read().ok_or(Unreadable::Damaged))
    }
}

/// Parses the output of [`encode_changes`] as a whole.
fn decode_changes(bytes: &[u8]) -> Result<Vec<RecordChange>, Unreadable> {
    Changes::new(bytes).map(|change| change.map(|(key, value)| (key.to_owned(), value.map(<[u8]>::to_vec)))).collect()
}

/// Returns the length of the frame at the start of `bytes`, which only need to have its head.
pub(super) fn frame_length(bytes: &[u8]) -> Result<usize, Unreadable> {
    let head = bytes.get(..HEAD).ok_or(Unreadable::Short)?;
    if !head.starts_with(&MAGIC) {
        return Err(Unreadable::Damaged);
    }
    let record = number::<4>(head, 4).ok_or(Unreadable::Short)? as usize;
    let changes = usize::try_from(number::<8>(head, 8).ok_or(Unreadable::Short)?).map_err(|_| Unreadable::Damaged)?;
    HEAD.checked_add(record).and_then(|length| length.checked_add(changes)).ok_or(Unreadable::Damaged)
}

/// Parses the frame at the start of `bytes`. Returns its batch and its length.
pub(super) fn decode(bytes: &[u8], with_changes: bool) -> Result<(Batch, usize), Unreadable> {
    let length = frame_length(bytes)?;
    let head = bytes.get(..HEAD).ok_or(Unreadable::Short)?;
    let record = number::<4>(head, 4).ok_or(Unreadable::Short)? as usize;
    let frame = bytes.get(..length).ok_or(Unreadable::Short)?;
    if head.get(CHECKSUM..) != Some(checksum(frame).as_slice()) {
        return Err(Unreadable::Damaged);
    }
    let field = |at: usize| number::<8>(head, at).ok_or(Unreadable::Short);
    let (kept, changed) = frame.get(HEAD..).and_then(|rest| rest.split_at_checked(record)).ok_or(Unreadable::Short)?;
    let batch = Batch {
        position: field(16)?,
        revision: field(24)?,
        next_order: field(32)?,
        hash: hash_at(head, 40).ok_or(Unreadable::Short)?,
        record: Arc::from(kept),
        changes: if with_changes { decode_changes(changed)? } else { Vec::new() },
    };
    Ok((batch, length))
}

/// Returns whether a complete frame starts anywhere in these bytes. Tries at most 1,000 candidates.
pub(super) fn is_anywhere(bytes: &[u8]) -> bool {
    let starts = bytes.windows(MAGIC.len()).enumerate().filter(|(_, window)| *window == MAGIC);
    starts.take(1000).any(|(at, _)| bytes.get(at..).is_some_and(|rest| decode(rest, false).is_ok()))
}

/// Returns the offset of the first complete frame after the start of these bytes.
pub(super) fn next_frame(bytes: &[u8]) -> Option<usize> {
    let mut starts = bytes.windows(MAGIC.len()).enumerate().skip(1).filter(|(_, window)| *window == MAGIC);
    starts.find(|(at, _)| bytes.get(*at..).is_some_and(|rest| decode(rest, false).is_ok())).map(|(at, _)| at)
}

/// Computes the checksum of a frame.
fn checksum(frame: &[u8]) -> Hash {
    let head = frame.get(..CHECKSUM).unwrap_or_default();
    let content = frame.get(HEAD..).unwrap_or_default();
    if frame.len() as u64 <= TOGETHER {
        return blake3::hash(&[head, content].concat()).into();
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(head);
    if content.len() < CHUNK {
        hasher.update(content)
    } else {
        hasher.update_rayon(content)
    };
    hasher.finalize().into()
}

/// Reads the little-endian number of `N` bytes at an offset.
pub(super) fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let mut wide = [0; 8];
    wide.get_mut(..N)?.copy_from_slice(bytes.get(at..at + N)?);
    Some(u64::from_le_bytes(wide))
}

/// Reads the hash at an offset.
pub(super) fn hash_at(bytes: &[u8], at: usize) -> Option<Hash> {
    bytes.get(at..at + 32)?.try_into().ok()
}

/// What holds for any bytes: they are refused, or are exactly what was written; and damage is noticed.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzzed(bytes: &[u8]) {
    let written = |batch: &Batch| {
        let mut out = Vec::new();
        let Ok(()) = BatchFrame::new(batch).write(&mut |piece: &[u8]| {
            out.extend_from_slice(piece);
            Ok::<(), Infallible>(())
        });
        out
    };
    let _ = (decode(bytes, false).is_ok(), is_anywhere(bytes));
    if let Ok((batch, length)) = decode(bytes, true) {
        assert_eq!(Some(written(&batch).as_slice()), bytes.get(..length), "a frame changes when it is written again");
    }
    let Ok(changes) = decode_changes(bytes) else { return };
    assert!(changes.len() <= bytes.len() / CHANGE_HEAD, "more changes than bytes for them");
    let mut again = Vec::new();
    encode_changes(changes.iter().map(|(key, value)| (key.as_str(), value.as_deref())), &mut again);
    assert_eq!(again, bytes, "changes differ when they are written again");
    let first = changes.first().map(|(key, value)| CHANGE_HEAD + key.len() + value.as_ref().map_or(0, Vec::len));
    assert!(first.is_none() || change_length(bytes) == first, "the length of the first change is another one");
    let number = bytes.len() as u64;
    let batch = Batch {
        position: number,
        revision: number,
        next_order: number,
        record: Arc::from(bytes),
        hash: [7; 32],
        changes,
    };
    let mut frame = written(&batch);
    assert!(decode(&frame, true).is_ok_and(|(read, length)| read.changes == batch.changes && length == frame.len()));
    let at = bytes.first().map_or(0, |first| usize::from(*first)) * frame.len() / 256;
    if let Some(byte) = frame.get_mut(at) {
        *byte ^= 1;
    }
    assert!(decode(&frame, true).is_err(), "a frame with a damaged byte at {at} is accepted");
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn batch() -> Batch {
        Batch {
            position: 7,
            revision: 5,
            next_order: 9,
            record: Arc::from(b"{\"a\":1}".as_slice()),
            hash: [3; 32],
            changes: vec![("r/a".into(), Some(b"value".to_vec())), ("r/b".into(), None), ("r/c".into(), Some(vec![]))],
        }
    }

    fn bytes_of(batch: &Batch) -> Vec<u8> {
        let frame = BatchFrame::new(batch);
        let mut bytes = Vec::new();
        let Ok(()) = frame.write(&mut |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            Ok::<(), Infallible>(())
        });
        assert_eq!(frame.length(), bytes.len() as u64);
        bytes
    }

    #[test]
    fn a_large_frame_is_written_in_pieces_and_read_as_a_whole() {
        let changes: Vec<RecordChange> = (0..3000).map(|at| (format!("r/{at}"), Some(vec![7; 1000]))).collect();
        let large = Batch { changes, ..batch() };
        let mut longest = 0;
        let Ok(()) = BatchFrame::new(&large).write(&mut |piece: &[u8]| {
            longest = longest.max(piece.len());
            Ok::<(), Infallible>(())
        });
        assert!(longest < CHUNK + 2000, "{longest}");
        let (read, _) = decode(&bytes_of(&large), true).unwrap();
        assert_eq!(read.changes, large.changes);
    }

    #[test]
    fn a_frame_has_the_same_bytes_as_a_whole_and_in_pieces() {
        let empty = bytes_of(&Batch { changes: Vec::new(), ..batch() }).len() as u64 + CHANGE_HEAD as u64 + 3;
        for length in [TOGETHER - 1, TOGETHER, TOGETHER + 1] {
            let value = vec![7; (length - empty) as usize];
            let bytes = bytes_of(&Batch { changes: vec![("r/a".into(), Some(value))], ..batch() });
            assert_eq!(bytes.len() as u64, length);
            let mut hasher = blake3::Hasher::new();
            hasher.update(&bytes[..CHECKSUM]).update(&bytes[HEAD..]);
            assert_eq!(&bytes[CHECKSUM..HEAD], hasher.finalize().as_bytes());
            assert!(decode(&bytes, true).is_ok());
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let mut bytes = bytes_of(&batch());
        let first = bytes.len();
        bytes.extend(bytes_of(&Batch { changes: Vec::new(), ..batch() }));
        let (whole, length) = decode(&bytes, true).unwrap();
        assert_eq!((length, &whole.changes), (first, &batch().changes));
        assert_eq!((whole.position, whole.revision, whole.next_order), (7, 5, 9));
        let (history, _) = decode(&bytes[first..], true).unwrap();
        assert_eq!((history.changes.len(), &history.record), (0, &batch().record));
    }

    #[test]
    fn no_byte_can_change_unseen() {
        let bytes = bytes_of(&batch());
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                assert!(decode(&damaged, true).is_err(), "byte {at}, bit {bit}");
            }
            assert!(decode(&bytes[..at], true).is_err(), "cut at {at}");
        }
    }
}
