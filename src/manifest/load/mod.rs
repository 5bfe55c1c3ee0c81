//! From the text of one file to typed declarations, and a diagnostic for each mistake.
//!
//! # The problem
//!
//! A parser that keeps a position for each value is slow and large, and nearly all files have no mistake. A parser that
//! stops at the first mistake has to be run once for each.
//!
//! # The idea
//!
//! Values are read without positions, and each stage goes on after an error. A diagnostic knows the path of its field, such
//! as `spec.routes[2].match`. Only when one is made, [`source_map`] reads the file again to find the line of that path.
//!
//! ```text
//! document (text → documents within the limits) → reader (document → declarations) → declarations (all files together)
//! ```
//!
//! For example, `hostprots: []` and a missing `metadata.name` in one document are two errors, and the other documents of the
//! file are declared.
//!
//! # What it never does
//!
//! It does not know other files, except for duplicate names at the end
//! ([`declarations::Declarations::report_duplicates`]). It parses nothing before [`limits`] has bounded what that costs (D48).

pub(crate) mod declaration;
pub(crate) mod declarations;
pub(crate) mod document;
pub(crate) mod envelope;
pub(crate) mod findings;
pub(crate) mod kinds;
pub(crate) mod limits;
mod lint_facts;
pub(crate) mod reader;
pub(crate) mod schema;
pub(crate) mod source_map;
pub(crate) mod syntax;
pub(crate) mod values;
