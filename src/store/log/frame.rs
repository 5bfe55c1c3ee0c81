//! The frame of a commit in the log: lengths, hashes, the header, the calls and the entries.
//!
//! A checksum covers the start of the frame and the header, and the digest there the calls and the entries. So a frame is
//! read completely or not at all, and the header of a large one without the rest. Numbers are little endian:
//!
//! ```text
//!   0  ewf3
//!   4  length of the header (4 bytes)
//!   8  length of the calls, and of the entries (8 bytes each)
//!  24  position, revision, next order (8 bytes each)
//!  48  hash of the chain
//!  80  digest: BLAKE3 of the calls and the entries
//! 112  checksum: BLAKE3 of everything before it, and of the header
//! 144  header · calls · entries
//! ```

use bytes::Bytes;

use crate::store::commit::batch::Batch;
use crate::store::commit::entries::{CommitEntries, Hash, digest_of};

/// The first bytes of every frame.
const MAGIC: [u8; 4] = *b"ewf3";
/// Magic, lengths of the header, the calls and the entries, position, revision, next order, chain hash, digest, checksum.
pub(super) const HEAD: usize = 4 + 4 + 8 + 8 + 8 + 8 + 8 + 32 + 32 + 32;
/// The offset of the digest, and of the checksum.
const DIGEST: usize = HEAD - 64;
const CHECKSUM: usize = HEAD - 32;
/// The longest header that is read at once.
const LONGEST_HEADER: u64 = 16 << 20;

/// The frame of a batch. A large one is written in pieces: one with hundreds of megabytes is never in memory as a whole.
pub(crate) struct BatchFrame<'b> {
    batch: &'b Batch,
    length: u64,
}

impl<'b> BatchFrame<'b> {
    /// Describes the frame of a batch.
    pub(crate) fn new(batch: &'b Batch) -> Self {
        Self { batch, length: (HEAD + batch.size()) as u64 }
    }

    /// Returns the length in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Appends all bytes to `out`.
    pub(super) fn append_to(&self, out: &mut Vec<u8>) {
        out.reserve(self.length as usize);
        out.extend_from_slice(&self.start());
        self.content().for_each(|piece| out.extend_from_slice(piece));
    }

    /// The start with its checksum: the content follows.
    pub(super) fn start(&self) -> Vec<u8> {
        let Batch { position, revision, next_order, header, digest, hash, calls, entries } = self.batch;
        let mut bytes = Vec::with_capacity(HEAD);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&(header.len() as u32).to_le_bytes());
        for number in [&(calls.len() as u64), &(entries.size() as u64), position, revision, next_order] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(hash);
        bytes.extend_from_slice(digest);
        bytes.extend_from_slice(&checksum(&bytes, header));
        bytes
    }

    /// The bytes after the start.
    pub(super) fn content(&self) -> impl Iterator<Item = &'b [u8]> {
        [&*self.batch.header, &*self.batch.calls].into_iter().chain(self.batch.entries.pieces())
    }
}

/// The lengths of the parts of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameLengths {
    /// The length of the header.
    pub header: u64,
    /// The length of the calls.
    pub calls: u64,
    /// The length of the entries.
    pub entries: u64,
}

impl FrameLengths {
    /// Reads the lengths at the start of `bytes`, which only need to have that of a frame.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let head = bytes.get(..HEAD).filter(|head| head.starts_with(&MAGIC))?;
        let (header, calls, entries) = (number::<4>(head, 4)?, number::<8>(head, 8)?, number::<8>(head, 16)?);
        (header <= LONGEST_HEADER).then_some(Self { header, calls, entries })
    }

    /// The length of the whole frame.
    pub(super) fn frame(self) -> Option<u64> {
        self.calls.checked_add(self.entries)?.checked_add(HEAD as u64 + self.header)
    }

    /// Where the entries begin.
    pub(crate) fn entries_at(self) -> u64 {
        HEAD as u64 + self.header + self.calls
    }
}

/// Parses the start of a frame and its header, which are all of these bytes, without its calls and entries. Returns none if
/// they are not what was written.
pub(super) fn decode_start(bytes: &[u8]) -> Option<Batch> {
    let (head, header) = bytes.split_at_checked(HEAD)?;
    let (fields, sum) = head.split_at_checked(CHECKSUM)?;
    if sum != checksum(fields, header) {
        return None;
    }
    Some(Batch {
        position: number::<8>(head, 24)?,
        revision: number::<8>(head, 32)?,
        next_order: number::<8>(head, 40)?,
        header: Bytes::copy_from_slice(header),
        hash: hash_at(head, 48)?,
        digest: hash_at(head, DIGEST)?,
        calls: Bytes::new(),
        entries: CommitEntries::default(),
    })
}

/// Adds calls and entries to a batch, if they are its own.
pub(super) fn complete(batch: Batch, calls: Bytes, entries: Bytes) -> Option<Batch> {
    if digest_of([&*calls, &*entries].into_iter()) != batch.digest {
        return None;
    }
    let entries = CommitEntries::parse(entries)?;
    Some(Batch { calls, entries, ..batch })
}

/// Parses the frame at the start of `bytes`. Returns its batch and its length.
pub(super) fn decode(bytes: &[u8]) -> Option<(Batch, usize)> {
    let lengths = FrameLengths::read(bytes)?;
    let length = usize::try_from(lengths.frame()?).ok()?;
    let (start, content) = bytes.get(..length)?.split_at_checked(HEAD + lengths.header as usize)?;
    let (calls, entries) = content.split_at_checked(lengths.calls as usize)?;
    let batch = decode_start(start)?;
    Some((complete(batch, Bytes::copy_from_slice(calls), Bytes::copy_from_slice(entries))?, length))
}

/// Finds the first complete frame that begins after the first byte, at one of the first `most` places that look like it.
pub(super) fn next_frame(bytes: &[u8], most: usize) -> Option<usize> {
    let starts = bytes.windows(MAGIC.len()).enumerate().skip(1).filter(|(_, window)| *window == MAGIC);
    starts.take(most).map(|(at, _)| at).find(|at| bytes.get(*at..).and_then(decode).is_some())
}

/// The checksum of the start of a frame, over its fields and the header.
fn checksum(fields: &[u8], header: &[u8]) -> Hash {
    blake3::Hasher::new().update(fields).update(header).finalize().into()
}

/// Reads the little-endian number of `N` bytes at an offset.
pub(crate) fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let mut wide = [0; 8];
    wide.get_mut(..N)?.copy_from_slice(bytes.get(at..at + N)?);
    Some(u64::from_le_bytes(wide))
}

/// Reads the hash at an offset.
pub(crate) fn hash_at(bytes: &[u8], at: usize) -> Option<Hash> {
    bytes.get(at..at + 32)?.try_into().ok()
}

/// Checks properties of any bytes: they are refused, or are exactly what was written; and damage is noticed.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzzed(bytes: &[u8]) {
    use crate::store::commit::entries::{decode_entry, entry_length};

    let written = |batch: &Batch| {
        let mut bytes = Vec::new();
        BatchFrame::new(batch).append_to(&mut bytes);
        bytes
    };
    let _ = (decode_start(bytes).is_some(), next_frame(bytes, 1000), decode_entry(bytes).is_some());
    if let Some((batch, length)) = decode(bytes) {
        assert_eq!(Some(written(&batch).as_slice()), bytes.get(..length), "a frame changes when it is written again");
    }
    let Some(entries) = CommitEntries::parse(Bytes::copy_from_slice(bytes)) else { return };
    let again = entries.pieces().collect::<Vec<_>>().concat();
    assert_eq!(again, bytes, "entries differ when they are written again");
    let copied: CommitEntries = entries.iter().collect();
    assert!(copied == entries && copied.size() == bytes.len(), "entries differ when they are copied");
    let first = entries.iter().next().map(|entry| std::iter::once(entry).collect::<CommitEntries>().size());
    assert!(first.is_none() || entry_length(bytes) == first, "the length of the first entry is another one");
    let number = bytes.len() as u64;
    let (header, calls) = (Bytes::copy_from_slice(bytes), Bytes::from_static(b"[]"));
    let digest = entries.digest(&calls);
    let batch =
        Batch { position: number, revision: number, next_order: number, header, digest, hash: [7; 32], calls, entries };
    let mut frame = written(&batch);
    assert!(decode(&frame).is_some_and(|(read, length)| read.entries == batch.entries && length == frame.len()));
    let at = bytes.first().map_or(0, |first| usize::from(*first)) * frame.len() / 256;
    if let Some(byte) = frame.get_mut(at) {
        *byte ^= 1;
    }
    assert!(decode(&frame).is_none(), "a frame with a damaged byte at {at} is accepted");
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
pub(super) mod tests {
    use super::*;
    use crate::store::commit::entries::CommitEntry;

    /// A batch with so many entries.
    pub(crate) fn batch(position: u64, many: usize) -> Batch {
        let names: Vec<(String, Vec<u8>)> = (0..many).map(|at| (format!("r/{at}"), vec![at as u8; 1000])).collect();
        let entry = |(at, (key, value)): (usize, &'_ (String, Vec<u8>))| {
            let (key, after) = (key.clone(), (at % 7 != 1).then(|| value.clone()));
            (key, after)
        };
        let mut entries = CommitEntries::default();
        for (key, after) in names.iter().enumerate().map(entry) {
            let after = after.as_deref();
            entries.push(&CommitEntry { key: &key, after, before: Some(b"before"), ..CommitEntry::default() });
        }
        let (header, calls) = (Bytes::from_static(b"{\"a\":1}"), Bytes::from_static(b"[\"GET /\"]"));
        let digest = entries.digest(&calls);
        Batch { position, revision: position, next_order: 9, header, digest, hash: [3; 32], calls, entries }
    }

    fn bytes_of(batch: &Batch) -> Vec<u8> {
        let (frame, mut bytes) = (BatchFrame::new(batch), Vec::new());
        frame.append_to(&mut bytes);
        assert_eq!(frame.length(), bytes.len() as u64);
        bytes
    }

    #[test]
    fn what_was_written_is_read() {
        for many in [0, 3, 60, 3000] {
            let written = batch(7, many);
            let mut bytes = bytes_of(&written);
            let first = bytes.len();
            bytes.extend(bytes_of(&batch(8, 1)));
            let (read, length) = decode(&bytes).unwrap();
            assert_eq!((length, &read.header, &read.calls), (first, &written.header, &written.calls));
            assert_eq!((read.position, read.revision, read.next_order, read.hash), (7, 7, 9, [3; 32]));
            assert!(read.entries == written.entries);
            let lengths = FrameLengths::read(&bytes).unwrap();
            let start = decode_start(&bytes[..HEAD + lengths.header as usize]).unwrap();
            assert_eq!((start.position, &start.header, start.entries.len()), (7, &written.header, 0));
            let entries = &bytes[lengths.entries_at() as usize..first];
            assert_eq!(entries, written.entries.pieces().collect::<Vec<_>>().concat());
        }
    }

    #[test]
    fn no_byte_can_change_unseen() {
        let bytes = bytes_of(&batch(7, 2));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(decode(&damaged).is_none(), "byte {at}");
            assert!(decode(&bytes[..at]).is_none(), "cut at {at}");
        }
    }
}
