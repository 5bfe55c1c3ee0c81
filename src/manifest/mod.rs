//! Manifests: YAML and JSON files to the desired state of one source, with every error at its line.
//!
//! # The problem
//!
//! People edit files that refer to each other by name, in any order and across files, and take modules from sets and
//! values from elsewhere. The planner needs the opposite: one typed resource per key, with identifiers in place of
//! names. In between, each mistake has to be reported once, at its line, whatever else is broken.
//!
//! # The idea
//!
//! Three steps, each from one value to the next. Every step returns all that it could make and every [`Diagnostic`](crate::Diagnostic):
//!
//! ```text
//! tree    (a folder, a Git commit, a request)  → files: name, text, values from files and variables
//! load    (each file by itself)                → declarations: kind, name, typed Spec with names, origin
//! resolve (all declarations against a store)   → desired resources: key, Spec with identifiers, claim
//! ```
//!
//! For example, `kind: HttpsEdgeRoute`, `spec: {edge: shop, modules_from: [base]}` is loaded as a declaration with the names
//! `shop` and `base`, whatever other files declare. It is resolved to a resource below the identifier of `shop`, with the
//! modules of `base`.
//!
//! Loading a file depends on that file and its values alone, so [`load_again`] takes over what an earlier reading made of
//! equal files. Two rooms are about texts: `format` tidies them, and `export` writes them from a store.
//!
//! # What it never does
//!
//! - It never treats a failed or partial read as "nothing is declared": that would delete everything.
//! - It does not read or change a store. Resolving gets a Snapshot.
//! - It never quotes a secret, or text that may be one (D28).

pub(crate) mod export;
pub(crate) mod format;
pub(crate) mod load;
mod loader;
mod prelude;
pub(crate) mod resolve;
#[cfg(test)]
mod tests;
pub(crate) mod tree;

pub(crate) use load::declaration::{DeclaredTest, Origins};
pub(crate) use loader::load_again;
pub use loader::{Loaded, load};
pub use resolve::origin::ManifestFile;
pub(crate) use resolve::surrounding::with_source;
