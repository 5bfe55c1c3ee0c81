//! The write-ahead log in the folder of a store (D58): what is written and synced here is acknowledged.
//!
//! # The problem
//!
//! After a power loss, the end of a file can be missing, be zeros, or be half of what was written, and has to be cut
//! off: nobody was told of these commits. But a flipped bit or a lost block also leaves bytes that cannot be read, and
//! if *these* are cut off, acknowledged commits vanish: a route is open again, a key works again. In the file alone,
//! both look the same.
//!
//! # The idea
//!
//! Two witnesses decide. The *head*, another file, says up to which commit the log was acknowledged. And a write is
//! interrupted only at the end: if a complete frame follows bytes that cannot be read, they were not the last write.
//!
//! | The log can be read to | The head says | After that | Verdict |
//! | --- | --- | --- | --- |
//! | commit 42 | 42 | nothing | complete |
//! | commit 42 | 42 | half a frame | an interrupted write, cut off |
//! | commit 42 | 41 | nothing | complete: the head was not on the disk yet |
//! | commit 41 | 42 | half a frame, or nothing | `STORE_CORRUPT`: 42 was acknowledged |
//! | commit 41 | 41 | bytes, then a complete frame | `STORE_CORRUPT`: the end is elsewhere |
//! | commit 42, with another hash | 42 | | `STORE_CORRUPT`: not the acknowledged one |
//!
//! The head is written after each sync of the log, but synced itself only in a pause, so that a commit costs one sync.
//! After a power loss, the head may therefore be older than the log, and then only says less.
//!
//! # How a frame gets there
//!
//! A frame is a commit behind lengths, hashes and a checksum (`frame`), so it is read completely or not at all, and the
//! header of a large one without the rest. Small frames of all waiting commits go out in one write. A large one is written in
//! pieces, and its start last: without it, an interrupted write is no frame, and hundreds of megabytes are never in memory as
//! a whole (`appender`). A write that fails is cut off again, which a full disk allows. After a failed sync nobody knows what
//! is on the disk, and a second one can succeed without writing it, so the store takes no more commits until a restart reads
//! what is there.
//!
//! Readers go through a part frame by frame, so that the largest commit bounds their memory (`reader`); `parts` knows all
//! parts that are kept, `search` answers questions without the index, and `scan` finds what can still be read after damage,
//! for a repair.
//!
//! # What it never does
//!
//! The log never cuts off an acknowledged commit, and never changes a byte that was synced. Only the removal of tokens
//! replaces frames, in a new file (`edit`). The log does not interpret commits.

pub(crate) mod appender;
pub(crate) mod edit;
pub(crate) mod frame;
pub(crate) mod head;
pub(crate) mod parts;
pub(crate) mod reader;
pub(crate) mod scan;
pub(crate) mod search;
