//! Queries of the history: commits in lists, the history of a resource, who set each field, earlier states, what
//! others than its source have written to a resource, and what a rollback leaves.
//!
//! # The problem
//!
//! Two years of commits are in the log, and one of them can have changed 100,000 resources. Every question is about a few of
//! them: the last twenty attempts, the author of one field, yesterday's state. A question that reads the log from one end to
//! the other takes longer each day, and takes the disk from commits. A table for each question would have to be written with
//! each commit.
//!
//! # The idea
//!
//! There are three ways through the log, and each question takes the cheapest one that answers it:
//!
//! | Way | Reads | Questions |
//! | --- | --- | --- |
//! | Headers, newest first | some hundred bytes of each commit | lists (`select`), revisions by Git commit (`commits`), which manifests are in effect (`after_rollback`) |
//! | The history of one resource, newest first | one entry of each commit that changed it | blame (`blame`), drift and origin (`external_writes`), where a resource is declared (`declared_places`) |
//! | Every commit back to a revision | all entries since then | an earlier state (`rewind`) |
//!
//! The index leads to headers and entries. Where there is none, in a command or after it has failed, the log is searched,
//! which takes longer and finds the same: both are behind [`Engine`](super::engine::Engine).
//!
//! Who follows the store asks nothing of the log: the newest revisions are in memory, and each reader has a cursor instead of
//! a queue (`change_window`). Readers that fall behind read from the history.
//!
//! # An example
//!
//! Who set `description` of the edge `shop`? The state says that it is `All products` now. The history of the edge, from its
//! newest entry:
//!
//! ```text
//! commit 9  before {"metadata": ""}                  after {"metadata": "{…}"}                  not this field
//! commit 7  before {"description": "Public shop"}    after {"description": "All products"}   set here: commit 7
//! ```
//!
//! `blame` stops as soon as every field is explained, or at the entry that created the resource. What a person reads of an
//! entry is made from its two values (`change_description`): only the fields that differ, with digests in place of secrets,
//! and nothing at all of them over the API (`masking`).
//!
//! # What it never does
//!
//! The history shows no secret, and changes only by commits. A query never reads a whole commit for one of its
//! resources if there is an index. A write over the API never waits for the index: what it needs of the newest commits
//! is in memory.

pub(crate) mod after_rollback;
pub(crate) mod blame;
pub(crate) mod change_description;
pub(crate) mod change_window;
pub(crate) mod commits;
pub(crate) mod declared_places;
pub(crate) mod external_writes;
pub(crate) mod masking;
mod protection_change;
pub(crate) mod records;
pub(crate) mod resource_history;
pub(crate) mod rewind;
pub(crate) mod select;

use crate::model::Code;
use crate::store::error::StoreError;

/// Returns what was read from the history; none if the history is in a database that does not answer. Other reads go on then.
pub(crate) fn if_available<T>(read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Err(error) if error.code == Code::StoreUnavailable => {
            tracing::warn!(code = %error.code, reason = %error, "the history is unavailable");
            Ok(None)
        }
        read => read.map(Some),
    }
}
