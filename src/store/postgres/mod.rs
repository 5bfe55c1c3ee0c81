//! The engine on PostgreSQL (D115): a store that outlives the machine of the process that writes it.
//!
//! # The problem
//!
//! A folder is as safe as its disk. Where a database is run anyway, with replicas and backups, a store in it can be taken over
//! by another machine within seconds. But a database adds what a folder does not have: connections that break while a commit is on
//! its way, two processes that both believe to be the writer, and tables that another version has made.
//!
//! # The idea
//!
//! The database has what a folder has: the history with what undoes it, and the state. A group of commits is one transaction,
//! which moves the head, and everything in it has the form in which a log has it, so digests and the chain of hashes are the
//! same in both. The state is never behind the history, so a start reads it and replays nothing.
//!
//! ```text
//! edgewright.head      position 42 · hash · revision 17 · epoch 7 · writer     the end, and who may move it and where it is
//!                      · sum of digests
//! edgewright.commits   1 … 42, each with its header, digest, hash and calls    lists read these alone
//! edgewright.entries   (42, 0), (42, 1) …, by the path of a resource           its history is an index scan
//! edgewright.state     r/HttpsEdge//edghts_U9Cj → record · digest              the state after 42
//! edgewright.secrets   the data keys, wrapped by the master key
//! edgewright.files     what a folder has beside its store, such as suspensions
//! ```
//!
//! | File | What it knows |
//! | --- | --- |
//! | `address`, `password`, `tls` | URLs as libpq has them, passwords, certificates |
//! | `link` | Connections, and waiting for them |
//! | `schema` | The tables and their versions |
//! | `head`, `rows` | Rows and values, in both directions |
//! | `row_digests` | What reveals a row of the state that no commit has written |
//! | `writer`, `writer_lock` | The lock, the epoch, and what a lost connection means |
//! | `lease` | The end of a writer that stops |
//! | `group_transaction` | A group of commits as one transaction |
//! | `follower` | The commits of the writer, and whether it is there |
//! | `questions` | Queries of the history |
//! | `upkeep` | New data keys, retention, and the removal of tokens |
//! | `keys`, `shared_files` | What a folder has in files |
//! | `postgres_copy` | A copy of another store |
//! | `engine` | All of it as an [`Engine`](super::engine::Engine) |
//!
//! # What it never does
//!
//! A writer that was overtaken changes nothing. A process that has had a store open uses no other one that takes its place. Whether
//! a commit counts is read, never guessed. No message has a password, a parameter of a URL, or a value of a row. The master key is
//! never in the database.

mod address;
mod engine;
mod failure;
mod follower;
mod group_transaction;
mod head;
mod keys;
mod lease;
mod link;
mod password;
mod postgres_copy;
mod questions;
mod row_digests;
mod rows;
mod schema;
mod shared_files;
mod tls;
mod upkeep;
mod writer;
mod writer_lock;

pub(crate) use address::{check_scheme, shown, url_of};
pub(crate) use engine::PostgresEngine;
pub(crate) use keys::check_named;
pub(crate) use postgres_copy::PostgresCopy;
