//! The sled database of a store folder (D58): the state at the start of a part of the log, and the index of the
//! history.
//!
//! # The problem
//!
//! The log alone is the store, but a start would replay all of it, and a question about one resource would read all of it. A
//! database answers both. As the truth, sled would not do: what it has not flushed may be lost or half written after a power
//! loss, and a sync for each commit would include its bookkeeping. Even to read, sled writes (a snapshot file, zeroed
//! segments), creates what it does not find, follows links, gives its files the mode of the process, and can panic on
//! damaged files.
//!
//! # The idea
//!
//! sled has only what the log has, too, in two forms that need no trust in it:
//!
//! - **A state** is written once, by a checkpoint, into a database of its own, closed, synced file by file, renamed, and only
//!   then named by the head. Nothing writes to it again. The number of its records and their digest are in it: whoever reads it
//!   verifies all of it, so it does not matter how sled might damage it (`state`).
//! - **The index** is a set of rows that depend on nothing but the log. To write one again changes nothing, so rows are
//!   written in any order, and the end of the index after them. After a crash, the thread that follows the log (`indexing`)
//!   writes what is after the end once more. If anything fails, the index is given up until the next start, and the log is
//!   searched instead (`index`).
//!
//! `open` is the one door to sled: it checks before what sled would create or follow, and turns a panic into an error. All
//! questions about the history begin in `history_reader`, and read in the log what the index leads to (`commit_files`).
//!
//! # An example
//!
//! Commit 7 of source `shop` makes revision 5 and changes an edge. The rows of the commit, which is at byte 8192 of
//! `log.0000000002` and 1,460 bytes long:
//!
//! ```text
//! p/ 7                             -> 2, 8192, 1460
//! v/ 5 7                           -> 2, 8192, 1460
//! s/ 7                             -> 2, 8192, 1460
//! k//edges/https/edghts_U9Cj\0 7   -> 2, 8192, 1460, entry at 0, shop
//! m/end-4                          -> 7, its hash
//! ```
//!
//! Numbers in keys are big endian, so the rows of a question are in the order of the log. `history --resource` reads the `k/`
//! rows of the edge from the end, and of each commit the one entry at that offset: 100,000 others in the same commit cost
//! nothing. Whether a source wrote last is in the row itself.
//!
//! # What it never does
//!
//! No commit waits for sled, and nothing is only here: both databases can be deleted, and the next start makes them again.

mod commit_files;
pub(crate) mod history_reader;
pub(crate) mod index;
mod indexing;
pub(crate) mod open;
pub(crate) mod state;
