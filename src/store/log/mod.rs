//! The write-ahead log in the folder of a store (D58): what is written and synced here is acknowledged.
//!
//! Parts `log.N` are only appended to, commit by commit (`appender`), each in a frame with checksums (`frame`). The head
//! says up to where everything was acknowledged, so a shorter log is damage and not the end. Readers go through a part
//! frame by frame (`reader`); after damage, `scan` finds what can still be read. Only a scrub of tokens replaces frames
//! (`edit`).

pub(crate) mod appender;
pub(crate) mod edit;
pub(crate) mod frame;
pub(crate) mod head;
pub(crate) mod parts;
pub(crate) mod reader;
pub(crate) mod scan;
pub(crate) mod search;
