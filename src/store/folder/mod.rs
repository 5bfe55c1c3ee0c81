//! The engine in a folder (D58): a write-ahead log in front, and sled databases behind it.
//!
//! # The problem
//!
//! A log that only grows takes longer to replay each day. So the state has to be written from time to time, while commits go
//! on, and the process can die at any moment of that. Whatever a start finds then must be one state, and the right one.
//!
//! # The idea
//!
//! Time is divided into *generations*. Generation N has a part of the log and, from the second one on, the state at its
//! start. A checkpoint begins the next one: it ends the part that is being written, which takes a moment, and writes the
//! state at that point while commits go to the new part.
//!
//! ```text
//! log.1         c1 c2 … c900         a new store begins from nothing, so there is no state.1
//! log.2         c901 c902 …          where commits go from now on
//! state.tmp     all of c1 … c900     is written, synced, and renamed to state.2
//! head          state 2              only now a start reads state.2, and the log after it
//! ```
//!
//! A part of the log and a named state never change again. Nothing that counts is overwritten, so a crash leaves what counted
//! before:
//!
//! | The process dies | The next start |
//! | --- | --- |
//! | before `log.2` is there | replays `log.1` |
//! | while the state is written | replays `log.1` and `log.2`; the next checkpoint removes `state.tmp` |
//! | before the head names `state.2` | the same |
//! | after that | reads `state.2`, and replays `log.2` |
//!
//! `log.1` stays, because it is also the history, until retention removes it. The state before the named one is removed,
//! unless it might be needed: if the beginning of the log is gone, or a key for its values, the log alone no longer leads to
//! the present, and only the previous state could replace a damaged one.
//!
//! | File | Content |
//! | --- | --- |
//! | `log.N` | the commits of generation N, with what undoes them |
//! | `state.N/` | the state at the start of generation N, in sled |
//! | `head` | the position up to which the log was acknowledged, and the generation of the newest state |
//! | `kept` | where the history begins, once retention has removed older records |
//! | `keys`, `keys.copy` | the root secret and the data keys, encrypted with the master key (D96), and a copy |
//! | `master.key` | the master key, if it can be nowhere else |
//! | `index/` | the location of each commit and of its entries, in sled |
//! | `lock` | locked by a writer, shared by readers |
//! | `copy_of` | marks a local copy of a store in a database |
//! | `new/`, `next/`, `former/` | a local copy that is made anew (`copy_swap`), and one that was kept |
//! | `restore.tmp/` | a backup that is being restored (D100) |
//! | `remembered`, `security.log`, `suspensions`, `applied`, `conditions`, `notifications`, `transitions` | files of others, which are no part of the store (`docs/explanation/store.md`) |
//!
//! # What it never does
//!
//! A store never opens with less than the head acknowledges, and never as empty because something is missing. A reader
//! (`readonly`) changes nothing. The engine does not know what is in a record.

pub(crate) mod content;
pub(crate) mod copy_swap;
pub(crate) mod creation;
mod fingerprint;
mod folder_copy;
mod folder_engine;
pub(crate) mod format;
pub(crate) mod interrupted_restore;
pub(crate) mod key_copies;
pub(crate) mod keys;
pub(crate) mod local_mark;
mod readonly;

pub(crate) use fingerprint::on_disk;
pub(crate) use folder_copy::FolderCopy;
pub(crate) use folder_engine::FolderEngine;
pub(crate) use key_copies::harmless_damage;
pub(crate) use keys::{default_master_key, expected_master_key};
pub(crate) use readonly::FolderReader;
