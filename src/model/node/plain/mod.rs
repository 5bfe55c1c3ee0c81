//! A direct reader of plain YAML (D76).
//!
//! The reader knows the forms of YAML that nearly all manifests consist of, and gives up at the first byte whose meaning is not
//! certain: with aliases, tags, texts of several lines and everything else that needs a scanner with more context.
//! serde_yaml then reads the whole text. It defines what a manifest means: where this reader returns documents,
//! serde_yaml reads the same documents without an error.

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
