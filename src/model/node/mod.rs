//! Untyped documents: the common form of request bodies and manifests (D76).

mod faults;
mod merge;
mod read;
mod tape;
#[cfg(test)]
mod tests;

pub(crate) use read::{Allowance, BYTES_OF_A_VALUE, Counted};
pub(crate) use tape::{Node, NodeEntries, NodeItems, NodeShape, Tape};
