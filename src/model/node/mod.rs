//! Untyped documents: the common form of request bodies and manifests (D76).

mod build;
mod faults;
mod merge;
mod plain;
mod read;
mod tape;
#[cfg(test)]
mod tests;

pub(crate) use plain::plain_documents;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use plain::plain_reader_agrees;
pub(crate) use read::{Allowance, BYTES_OF_A_VALUE, Counted};
pub(crate) use tape::{Node, NodeEntries, NodeItems, NodeShape, Tape};
