//! Faults and merge keys of untyped documents, which need the diagnostics of the model (D76).
//!
//! # The problem
//!
//! Values that no field can have must be reported with the paths of their fields, before serde sees a document: it takes
//! the last of two values of a key, and rounds long numbers. YAML also has merge keys; JSON does not.
//!
//! # The idea
//!
//! The readers of `syntax::yaml` note on a tape whether it has a duplicate, a merge key, a long key or a number without a
//! form in JSON. Only such a document is visited again, by `Tape::take_faults` and `Tape::merge`.
//!
//! # What it never does
//!
//! A document is never changed to make it valid: what is faulty is removed and reported.

mod faults;
mod merge;
#[cfg(test)]
mod tests;
