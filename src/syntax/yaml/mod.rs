//! YAML and JSON: the untyped documents that request bodies and manifests are read into, and YAML output (D76).
//!
//! # The problem
//!
//! A large source has millions of values. A tree with a string of its own for each key and value took a third of the
//! time to parse it, and a map of serde loses what has to be reported: the order of keys, duplicates, and numbers that
//! JSON cannot represent.
//!
//! # The idea
//!
//! YAML and JSON become a [`Tape`]: all values of a document in one list, each collection before its contents and with
//! its length, and the texts of all of them in one string. That takes a few allocations, however many values there are.
//! A [`Node`] is a position in it:
//!
//! ```text
//! {a: [1, x]}  →  map(5) "a" seq(3) 1 "x"
//! ```
//!
//! serde fills the tape: `serde_yaml` for YAML, `serde_json` for JSON. [`plain`](plain_documents) reads nearly all
//! manifests several times faster, and leaves every other text to serde_yaml. While a mapping is read, its keys are
//! checked, so that whoever reports faults visits only documents that have some.
//!
//! [`to_yaml`] writes YAML that readers of YAML 1.1 and 1.2 understand in the same way.
//!
//! Offsets have 32 bits. The limits of manifests and requests are far below 4 GiB; a reader without such limits, such
//! as that of the configuration file, rejects a larger document.
//!
//! # What it never does
//!
//! A tape has no positions in the text. They come from the events of `saphyr-parser`, and only for a file with an error
//! or a warning ([`YamlCursor`]); to fill the tape from these events is no faster, and allocates for each scalar.

mod build;
mod cursor;
mod plain;
mod read;
mod tape;
mod write;

pub(crate) use build::{MERGE_KEY, MOST_KEY_BYTES};
pub(crate) use cursor::{YamlCursor, without_tabs_after_colons};
pub(crate) use plain::plain_documents;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use plain::plain_reader_agrees;
pub(crate) use read::{Allowance, BYTES_OF_A_VALUE, TapeSeed};
pub(crate) use tape::{Node, NodeEntries, NodeItems, NodeShape, Tape, TapeItem};
pub(crate) use write::to_yaml;
