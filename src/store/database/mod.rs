//! What the folder of a store has in sled (D58): the state at the start of a part of the log, and the index of the history.
//!
//! A state is written once, synced and then named by the head; it does not change after that (`state`). The index has the
//! location of each commit and entry in the log (`index`, `rows`). A thread adds to it some time after the commits
//! (`indexing`); until then they are found in memory (`memtable`), and after a crash in the log (`catch_up`). All queries
//! of the history begin in `history_reader`. Both databases can be made again from the log.

mod catch_up;
mod commit_files;
pub(crate) mod history_reader;
pub(crate) mod index;
mod indexing;
mod memtable;
pub(crate) mod open;
pub(crate) mod rows;
pub(crate) mod state;
