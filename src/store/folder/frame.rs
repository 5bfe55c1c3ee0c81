//! The frame of a batch in a journal: lengths, hashes, the history record, and the changes of the state.
//!
//! A checksum covers every byte, so that a frame is read completely or not at all.

use bytes::Bytes;

use crate::store::{
    changes::Changes,
    engine::{Batch, Hash},
};

/// The first bytes of every frame.
const MAGIC: [u8; 4] = *b"ewf2";
/// Magic, length of the record, length of the changes, position, revision, next order, chain hash, checksum.
pub(super) const HEAD: usize = 4 + 4 + 8 + 8 + 8 + 8 + 32 + 32;
/// The offset of the checksum.
const CHECKSUM: usize = HEAD - 32;

/// The reason why bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// The bytes end before the frame does.
    Short,
    /// The bytes are not what was written.
    Damaged,
}

/// The longest frame that is made as a whole: BLAKE3 hashes bytes that are together several times as fast as pieces.
const TOGETHER: u64 = 1 << 16;
/// Pieces of this size and more are hashed on all cores.
const ON_ALL_CORES: usize = 1 << 20;

/// The frame of a batch. A large one is written in pieces: one with hundreds of megabytes is never in memory as a whole.
pub(super) struct BatchFrame<'b> {
    batch: &'b Batch,
    length: u64,
    /// All bytes of a small frame.
    whole: Option<Vec<u8>>,
}

impl<'b> BatchFrame<'b> {
    /// Prepares the frame of a batch.
    pub(super) fn new(batch: &'b Batch) -> Self {
        let length = HEAD as u64 + batch.record.len() as u64 + batch.changes.size() as u64;
        let frame = Self { batch, length, whole: None };
        let whole = (length <= TOGETHER).then(|| {
            let mut bytes = frame.fields(length as usize);
            frame.content().for_each(|piece| bytes.extend_from_slice(piece));
            let sum = blake3::hash(&bytes);
            // The checksum is the end of the head.
            drop(bytes.splice(CHECKSUM..CHECKSUM, sum.as_bytes().iter().copied()));
            bytes
        });
        Self { whole, ..frame }
    }

    /// Returns the length in bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// All bytes, if they are few.
    pub(super) fn whole(&self) -> Option<&[u8]> {
        self.whole.as_deref()
    }

    /// Returns the head of a large frame. That takes a while: it has the checksum.
    pub(super) fn head(&self) -> Vec<u8> {
        let mut bytes = self.fields(HEAD);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&bytes);
        for piece in self.content() {
            if piece.len() < ON_ALL_CORES {
                hasher.update(piece)
            } else {
                hasher.update_rayon(piece)
            };
        }
        bytes.extend_from_slice(hasher.finalize().as_bytes());
        bytes
    }

    /// What follows the head.
    pub(super) fn content(&self) -> impl Iterator<Item = &'b [u8]> {
        std::iter::once(&*self.batch.record).chain(self.batch.changes.pieces())
    }

    /// Gives all bytes to `write`, in order.
    pub(super) fn write<E>(&self, write: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        if let Some(whole) = self.whole() {
            return write(whole);
        }
        write(&self.head())?;
        self.content().try_for_each(write)
    }

    /// The head up to its checksum.
    fn fields(&self, capacity: usize) -> Vec<u8> {
        let Batch { position, revision, next_order, record, hash, changes } = self.batch;
        let mut bytes = Vec::with_capacity(capacity);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&(record.len() as u32).to_le_bytes());
        for number in [&(changes.size() as u64), position, revision, next_order] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(hash);
        bytes
    }
}

/// Returns the lengths of the record and the changes of the frame at the start of `bytes`, which only need to have its head.
pub(super) fn lengths(bytes: &[u8]) -> Result<(u64, u64), Unreadable> {
    let head = bytes.get(..HEAD).ok_or(Unreadable::Short)?;
    if !head.starts_with(&MAGIC) {
        return Err(Unreadable::Damaged);
    }
    Ok((number::<4>(head, 4).ok_or(Unreadable::Short)?, number::<8>(head, 8).ok_or(Unreadable::Short)?))
}

/// Returns the length of the frame at the start of `bytes`, which only need to have its head.
pub(super) fn frame_length(bytes: &[u8]) -> Result<usize, Unreadable> {
    let (record, changes) = lengths(bytes)?;
    let length = (HEAD as u64 + record).checked_add(changes);
    length.and_then(|length| usize::try_from(length).ok()).ok_or(Unreadable::Damaged)
}

/// Parses the frame at the start of `bytes`. Returns its batch and its length.
pub(super) fn decode(bytes: &[u8], with_changes: bool) -> Result<(Batch, usize), Unreadable> {
    let length = frame_length(bytes)?;
    let frame = bytes.get(..length).ok_or(Unreadable::Short)?;
    let (head, content) = frame.split_at_checked(HEAD).ok_or(Unreadable::Short)?;
    if head.get(CHECKSUM..) != Some(checksum(head, content).as_slice()) {
        return Err(Unreadable::Damaged);
    }
    let (record, _) = lengths(head)?;
    let (record, changes) = content.split_at_checked(record as usize).ok_or(Unreadable::Short)?;
    let changes = if with_changes { changes } else { &[] };
    Ok((batch_of(head, Bytes::copy_from_slice(record), Bytes::copy_from_slice(changes))?, length))
}

/// Makes the batch of a large frame from its parts, without copying them.
pub(super) fn assemble(head: &[u8], record: Vec<u8>, changes: Vec<u8>) -> Result<Batch, Unreadable> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(head.get(..CHECKSUM).unwrap_or_default()).update_rayon(&record).update_rayon(&changes);
    if head.get(CHECKSUM..) != Some(hasher.finalize().as_bytes().as_slice()) {
        return Err(Unreadable::Damaged);
    }
    batch_of(head, record.into(), changes.into())
}

/// A large frame whose changes are only verified.
pub(super) struct PartlyRead {
    head: [u8; HEAD],
    record: Vec<u8>,
    hasher: blake3::Hasher,
}

impl PartlyRead {
    /// Begins with the head and the record.
    pub(super) fn new(head: [u8; HEAD], record: Vec<u8>) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(head.get(..CHECKSUM).unwrap_or_default()).update_rayon(&record);
        Self { head, record, hasher }
    }

    /// Adds the next part of the changes.
    pub(super) fn add_changes(&mut self, part: &[u8]) {
        self.hasher.update(part);
    }

    /// Returns the batch without its changes, if all bytes are what was written.
    pub(super) fn finish(self) -> Result<Batch, Unreadable> {
        let Self { head, record, hasher } = self;
        if head.get(CHECKSUM..) != Some(hasher.finalize().as_bytes().as_slice()) {
            return Err(Unreadable::Damaged);
        }
        batch_of(&head, record.into(), Bytes::new())
    }
}

fn batch_of(head: &[u8], record: Bytes, changes: Bytes) -> Result<Batch, Unreadable> {
    let field = |at: usize| number::<8>(head, at).ok_or(Unreadable::Short);
    Ok(Batch {
        position: field(16)?,
        revision: field(24)?,
        next_order: field(32)?,
        hash: hash_at(head, 40).ok_or(Unreadable::Short)?,
        record,
        changes: Changes::parse(changes).map_err(|_| Unreadable::Damaged)?,
    })
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
fn checksum(head: &[u8], content: &[u8]) -> Hash {
    let head = head.get(..CHECKSUM).unwrap_or_default();
    if ((HEAD + content.len()) as u64) <= TOGETHER {
        return blake3::hash(&[head, content].concat()).into();
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(head);
    if content.len() < ON_ALL_CORES {
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
    use std::convert::Infallible;

    use crate::store::changes::change_length;

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
    let Ok(changes) = Changes::parse(Bytes::copy_from_slice(bytes)) else { return };
    let again = changes.pieces().collect::<Vec<_>>().concat();
    assert_eq!(again, bytes, "changes differ when they are written again");
    let copied: Changes = changes.iter().collect();
    assert!(copied == changes && copied.size() == bytes.len(), "changes differ when they are copied");
    let first = changes.iter().next().map(|change| std::iter::once(change).collect::<Changes>().size());
    assert!(first.is_none() || change_length(bytes) == first, "the length of the first change is another one");
    let number = bytes.len() as u64;
    let batch = Batch {
        position: number,
        revision: number,
        next_order: number,
        record: Bytes::copy_from_slice(bytes),
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
    use std::convert::Infallible;

    use super::*;

    fn batch() -> Batch {
        Batch {
            position: 7,
            revision: 5,
            next_order: 9,
            record: Bytes::from_static(b"{\"a\":1}"),
            hash: [3; 32],
            changes: [("r/a", Some(b"value".as_slice())), ("r/b", None), ("r/c", Some(&[]))].into_iter().collect(),
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
        let changes: Changes = (0..3000).map(|at| (format!("r/{at}"), Some(vec![7; 1000]))).collect();
        let large = Batch { changes, ..batch() };
        let mut longest = 0;
        let Ok(()) = BatchFrame::new(&large).write(&mut |piece: &[u8]| {
            longest = longest.max(piece.len());
            Ok::<(), Infallible>(())
        });
        assert!(longest < (1 << 20) + 2000, "{longest}");
        let (read, _) = decode(&bytes_of(&large), true).unwrap();
        assert_eq!(read.changes, large.changes);
    }

    #[test]
    fn a_frame_has_the_same_bytes_as_a_whole_and_in_pieces() {
        let empty = bytes_of(&Batch { changes: Changes::default(), ..batch() }).len() as u64 + 12 + 3;
        for length in [TOGETHER - 1, TOGETHER, TOGETHER + 1] {
            let value = vec![7; (length - empty) as usize];
            let bytes = bytes_of(&Batch { changes: std::iter::once(("r/a", Some(value))).collect(), ..batch() });
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
        bytes.extend(bytes_of(&Batch { changes: Changes::default(), ..batch() }));
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
