//! What readers ask of the history: commits in lists, the story of a resource, who set each field, earlier states, what
//! others than its source have written to a resource, and what a rollback leaves.
//!
//! Each is answered from headers and the few entries that it needs, through [`Engine`](super::engine::Engine); only the
//! newest revisions are in memory (`recent`).

pub(crate) mod after_rollback;
pub(crate) mod blame;
pub(crate) mod change_description;
pub(crate) mod change_window;
pub(crate) mod commits;
pub(crate) mod declared_places;
pub(crate) mod external_writes;
pub(crate) mod masking;
pub(crate) mod records;
pub(crate) mod rewind;
pub(crate) mod select;
pub(crate) mod stories;
