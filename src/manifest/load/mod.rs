//! From the bytes of a file to typed declarations, and a diagnostic for each mistake.
//!
//! Every stage goes on after an error, so that one run finds all mistakes. Positions are looked up only for diagnostics
//! ([`source_map`]), because that means reading the file again.

pub(crate) mod declaration;
pub(crate) mod document;
pub(crate) mod findings;
pub(crate) mod kinds;
pub(crate) mod limits;
pub(crate) mod reader;
pub(crate) mod schema;
pub(crate) mod source_map;
pub(crate) mod syntax;
pub(crate) mod values;
