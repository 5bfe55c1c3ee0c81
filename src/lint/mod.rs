//! Lints flag configuration that the API accepts but that is probably a mistake.
//!
//! # The problem
//!
//! A rule of the API must hold for everyone, so the API accepts a route that no request can reach, or a login that
//! admits the whole world. The author wants to know before users do.
//!
//! # The idea
//!
//! A lint is a condition and its words: one file each, with a [`Lint`] and a `check`, and a line in [`LINTS`]. The variant
//! of [`LintCheck`](definition::LintCheck) says what a check looks at: a view of resources shows nothing else (`view.rs`), and
//! checks of manifests get the world. So a run (`run.rs`) is a pure function of each part of a source (`partition.rs`), and a server judges
//! only parts that differ from those of its last run (`judged_parts.rs`).
//!
//! # An example
//!
//! `open-login` iterates over the apps of all `oauth` modules, and reports each without an allow list:
//!
//! ```text
//! for (key, app) in view.oauth_apps() → findings.report(key, path, "everyone with an account at `google` has access")
//! ```
//!
//! The engine adds the name of the lint, its level, the file and line, and `explain` shows the rest of the [`Lint`].
//!
//! # What it never does
//!
//! A lint rejects nothing that the API accepts: levels decide what a finding does. It reads no file and no clock, and
//! never quotes a secret. What is missing because of an error in the manifests is no finding (`is_whole`). It does not
//! guess about other systems, and one cause is one finding (D70): a false alarm teaches people to ignore the others.
//!
//! See D2 and D74.

mod by_kind;
mod clean_modules;
mod definition;
mod finding;
mod host_groups;
mod judged_parts;
mod manifest_facts;
mod partition;
mod rules;
mod run;
pub(crate) mod validity;
mod view;
mod world;

pub use definition::{Level, Lint};
pub(crate) use finding::{Finding, Subject};
pub(crate) use judged_parts::JudgedParts;
pub(crate) use manifest_facts::ManifestFacts;
pub use rules::LINTS;
pub(crate) use rules::{EXPIRY_DAYS, UNMANAGED_ROUTE, find};
pub(crate) use run::run;
pub(crate) use world::World;
