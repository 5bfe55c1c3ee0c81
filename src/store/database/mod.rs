//! What the folder of a store has in sled (D58): the state at the start of a part of the log, and the index of the history.
//!
//! The log alone is the store. sled saves reading it: a state saves the replay of what is before it, and the index the
//! search for a commit. Both can be made again from the log, and no commit waits for sled.
//!
//! A state is written once, synced and then named by the head; it does not change after that (`state`). The index has the
//! location of each commit and entry in the log (`index`). A thread follows the log and adds what is new (`indexing`). All
//! queries of the history begin in `history_reader`, and read what the index leads to in the log (`commit_files`).

mod commit_files;
pub(crate) mod history_reader;
pub(crate) mod index;
mod indexing;
pub(crate) mod open;
pub(crate) mod state;
