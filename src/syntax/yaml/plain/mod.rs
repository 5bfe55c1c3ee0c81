//! A direct reader of plain YAML (D76).
//!
//! # The problem
//!
//! Four fifths of the time to parse a large source were the events of serde_yaml, whose scanner is ready for all of
//! YAML. Nearly all manifests use a small part of it.
//!
//! # The idea
//!
//! The reader knows the forms that nearly all manifests consist of: block mappings and lists, flow collections, literal
//! block scalars, comments, and quoted and plain scalars of one line. It gives up at the first byte whose meaning is
//! not certain: an alias, a tag, a tab as indentation, a carriage return, a scalar of several lines, a number in
//! another notation than the decimal one. serde_yaml then reads the whole text, and it defines what a manifest means.
//!
//! For example, `port: 443` is read here, and `port: 0x1bb` makes serde_yaml read the whole file.
//!
//! # What it never does
//!
//! It never returns documents that serde_yaml would read otherwise, or reject. Tests and a fuzz target compare the two
//! item by item (`agreement`). It reports no error: where it is not sure, it returns `None`.

#[cfg(any(test, feature = "fuzzing"))]
mod agreement;
mod blocks;
mod flow;
mod literal;
mod reader;
mod scalar;
#[cfg(test)]
mod tests;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use agreement::plain_reader_agrees;
pub(crate) use blocks::plain_documents;
