//! Resolves declarations against the state of a store: names to identifiers, and declarations to desired resources.
//!
//! # The problem
//!
//! Manifests have names, the store has identifiers. A name must keep its identifier when its file moves, when the resource is
//! renamed or moves to another source, and in a store that is built again. Two sources can use one name.
//!
//! # The idea
//!
//! Kinds are resolved in the order of their dependencies: parents before children, and what is referenced before what refers
//! to it. For each kind:
//!
//! 1. `scope` resolves each declaration by itself: its parent, its module sets and its references.
//! 2. `identity` chooses the identifiers of all declarations together, because one may take over the name of another: the
//!    stated one, that of the resource with the former name, that with the same name, or one derived from the name.
//! 3. `transfer` decides whether a resource is applied now, or is left to another source (D104).
//!
//! For example, `metadata: {name: shop, renamed_from: store}` gets the identifier of the resource that is called `store` in
//! the Snapshot. In an empty store, it gets the one that is derived from `shop`.
//!
//! [`last_resolution`] has what a run leaves for the next one on a followed source.
//!
//! # What it never does
//!
//! It decides nothing by the order of files: a duplicate is an error in both places. It never lets a reference switch to
//! another resource by itself (D112).

mod cycles;
pub(crate) mod foreign_files;
mod guessed_consent;
mod guessed_identity;
mod identity;
mod last_resolution;
mod module_set_origin;
mod options;
pub(crate) mod origin;
mod resolution;
mod resolver;
pub(super) mod scope;
pub(crate) mod surrounding;
pub(super) mod surrounding_declarations;
pub(crate) mod transfer;
pub(super) mod transfer_markers;
pub(crate) mod unknown_values;

mod checks;
mod transfer_order;

pub(crate) use last_resolution::{LastResolution, resolve_again};
pub(crate) use options::ResolveOptions;
pub(crate) use resolution::Resolution;
pub(crate) use resolver::{resolve, resolve_offline};
