//! Maintenance of a whole store, mostly by commands: backups and restores, checks and repairs (D100), other keys and
//! the destruction of former ones (D96), and the removal of tokens from the history (D23).
//!
//! # The problem
//!
//! These are the commands of the worst day: a disk has lost blocks, a key has leaked, a store has to come back on
//! another machine. Such a command takes long, can be killed, and runs where nothing can be tried twice. Half of a
//! restore must not look like a store, half of a repair must not be worse than the damage, and a backup that cannot be
//! restored is found out too late by definition.
//!
//! # The idea
//!
//! Each of them has one moment at which it counts, and does everything else before, beside what counts:
//!
//! | Operation | Before | Counts when | Killed before that |
//! | --- | --- | --- | --- |
//! | Backup (`backup`, `backup_begin`, `backup_write`, `backup_read`) | verifies the history, writes, and reads the file again | the file gets its name | no backup |
//! | Restore (`restore`) | unpacks in `restore.tmp`, verifies, moves | the head is written | no store; run it again |
//! | Copy into another engine, and restore into a database (`copy`) | verifies the history, writes it, and the state | the head is written, or says that it is complete | no store; remove it and run it again |
//! | Repair (`repair`, `salvage`) | copies the folder, plans every step | each step, in an order in which any prefix can be planned again | run it again |
//! | New data key (`rekey`, `resealing`) | writes a state with it | the head names that state | the former state counts |
//! | New master key (`rekey`) | `keys` with both | `keys` with the new one alone | either key opens the store |
//! | Removal of tokens (`scrub`) | records what it is going to change | each part of the log is replaced | run it again |
//!
//! A repair never decides by itself. `salvage` reads everything that can be read, and plans: the newest readable state, each
//! commit after it up to the first that cannot be read, and the history that leads there without a gap. What is given up is
//! described, record by record (`loss_report`), and nothing is done until a person says so.
//!
//! `check` reads all that a store would ever read, and more: secrets that are only in former values, and whether the index
//! leads where it should (`inspect`).
//!
//! # What it never does
//!
//! Maintenance loses nothing silently, and skips no commit to reach later ones: they would lead to a state that never
//! existed. Nothing is removed that a checkpoint or retention would not remove.

pub(crate) mod backup;
mod backup_begin;
pub(crate) mod backup_read;
pub(crate) mod backup_write;
pub(crate) mod check;
pub(crate) mod copy;
pub(crate) mod inspect;
mod loss_report;
pub(crate) mod rekey;
pub(crate) mod repair;
pub(crate) mod resealing;
pub(crate) mod restore;
mod salvage;
pub(crate) mod scrub;
