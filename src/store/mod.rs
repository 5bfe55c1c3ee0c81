//! Revisions and history: a [`Store`] that makes commits, over an [`Engine`](engine::Engine) that makes them durable.
//!
//! # The problem
//!
//! Requests and syncs change the state at the same time. Each must be checked against the whole state that it changes (is
//! this the last admin, does the reference resolve). Readers want a whole state, at once. What was acknowledged must survive
//! a power loss. And months later somebody asks who set a field, and wants the state before. Solved one by one, these
//! contradict each other: a lock around the state keeps readers waiting, a sync for each commit keeps writers waiting, a
//! database that is changed in place may not open after a power loss, and a history beside the state can disagree with it.
//!
//! # The idea
//!
//! The log is the truth, and everything else can be derived from it. A commit is computed on the newest state under a short
//! lock, takes the next position in the log, and is visible once the log is synced. A state is a value that never changes
//! ([`Snapshot`](crate::model::Snapshot)): the next one shares what is the same, so a reader takes the current one and waits
//! for nobody. The history is the log, read again. An earlier state is the log, undone from its end. Databases only save
//! reading the log, and are written when nobody waits.
//!
//! # The life of a commit
//!
//! `PATCH /edges/https/edghts_U9Cj` in a store at revision 4:
//!
//! 1. The caller's closure runs on the *tip*, the state after everything in the queue: permissions and preconditions count
//!    there, not where the request began. The model applies the operations, or refuses them (`speculative`).
//! 2. The commit enters the queue, with position 7, and becomes the tip. Outside the lock, it is encoded: a header, the
//!    calls, and an entry with the edge before and after, secrets encrypted (`commit`, `seal`).
//! 3. Whoever leads the queue appends all commits in it to the log, with one sync (`group_commit`, `log`).
//! 4. Revision 5 is visible: the current state is swapped, and those who follow revisions are told
//!    (`history::change_window`). The request is answered.
//! 5. Later, a thread adds rows to the index of the history, and when the log has grown long, a checkpoint writes the state
//!    (`database`, `checkpoint`).
//!
//! A power loss before the sync in step 3 loses a commit of which nobody was told; after it, nothing is lost.
//!
//! # Rooms
//!
//! | Room | What it knows |
//! | --- | --- |
//! | `open_store` | The current Snapshot, and the only way to make the next one |
//! | `attempt`, `revision` | What goes in, and what those see who follow the store |
//! | `group_commit`, `commit_queue`, `checkpoint`, `speculative` | The order of commits, and when the state is written |
//! | `replication` | Commits of another process |
//! | `local_copy`, `copy_feed`, `stand_in` | A copy in a folder of a store in a database |
//! | `commit` | What a commit and a record are, in bytes |
//! | `log` | Appending, and telling an interrupted write from damage |
//! | `database` | sled: states and the index |
//! | `disk` | Files: created, locked, synced and replaced |
//! | `folder`, `memory`, `postgres` | The engines: in a folder, by generations, in memory, and in a database |
//! | `history` | Questions about the log |
//! | `seal` | Secrets at rest |
//! | `maintenance` | Backup, restore, check, repair, new keys, scrubbing |
//! | `history_quota`, `quota_usage`, `trusted_time` | Who may fill the history, and what is old |
//! | `clock`, `ids`, `tokens` | What the pure model cannot make: the time, random IDs and secrets, API tokens |
//!
//! # What it never does
//!
//! The store interprets no change: the model has the rules, `routing` the invariants, and whoever commits checks permissions. Nothing is visible
//! before it is durable. What cannot be read never counts as empty. Only this module knows the engines;
//! `docs/explanation/store.md` and `history.md` have what all of this guarantees.

mod attempt;
pub(crate) mod checkpoint;
pub(crate) mod clock;
pub(crate) mod commit;
mod commit_queue;
mod copy_feed;
mod database;
pub(crate) mod disk;
pub(crate) mod engine;
mod error;
pub(crate) mod folder;
mod group_commit;
pub(crate) mod history;
mod history_quota;
pub(crate) mod ids;
pub(crate) mod local_copy;
mod log;
pub(crate) mod maintenance;
pub(crate) mod memory;
pub(crate) mod metrics;
mod open_store;
#[cfg(test)]
pub(crate) mod patched_engine;
pub(crate) mod postgres;
mod quota_usage;
mod read_again;
mod replication;
pub(crate) mod revision;
pub(crate) mod seal;
mod session_kind;
mod speculative;
mod stand_in;
pub(crate) mod tokens;
mod trusted_time;

pub use attempt::Attempt;
pub(crate) use commit::header::{CommitHeader, Outcome, Places, Record, ResourceChange, Retention};
pub(crate) use commit_queue::QueuedCommit;
pub(crate) use disk::folder_lock::note_server;
pub(crate) use engine::{OnDisk, Query, SidecarFiles};
pub use error::{CommitError, Declined, StoreError};
pub(crate) use folder::on_disk;
pub(crate) use history::commits::{CommitPrefix, NamingError};
pub use history::rewind::RevisionError;
pub(crate) use history::select::HistoryFilter;
pub(crate) use history::{change_description::OWNED_BY, external_writes::Provenance};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use log::frame::fuzzed as fuzzed_frame;
pub(crate) use maintenance::rekey::{MasterChange, RekeyResult};
pub(crate) use maintenance::scrub::RecordedTokens;
pub use open_store::{MEMORY, Store};
pub(crate) use open_store::{is_in_database, shown_address, store_exists};
pub(crate) use revision::ChangeEvent;
pub use revision::Revision;
pub(crate) use speculative::{CommitRefusals, JudgedOperations, NextState, SpeculativeCommit};
pub(crate) use trusted_time::REMOVAL;
