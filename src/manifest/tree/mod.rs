//! The places that manifests and their values are read from: folders, commits of Git, or a request.
//!
//! # The problem
//!
//! The same manifests come from a disk on which others write, from a repository that others push to, or from a client that
//! others control. A link must not lead out of the folder, a half-written file must not become a plan, and a value must be
//! read where its manifest is from.
//!
//! # The idea
//!
//! A [`Tree`] lists manifests and reads their values; nothing else knows where they are. [`Disk`], [`CommitTree`], [`RefTree`]
//! and [`Sent`] read one place each. Three trees wrap others: [`SurroundedTree`] adds manifests that a source uses without owning
//! them, [`ListedVariables`] limits the variables that a source reads, and [`Recorder`] keeps what was read, to send it or to
//! see whether it has changed.
//!
//! For example, `{from_file: tls/key.pem}` in `shop/edge.yaml` asks the tree of that manifest for `tls/key.pem`. A disk opens
//! it inside the folder, a commit looks it up in its objects, and a request has it in its body or refuses.
//!
//! # What it never does
//!
//! It does not parse manifests. It never reads outside the root of a tree unless that was allowed, and never in `.git`.

mod cancellation;
mod contents;
mod disk;
pub(super) mod faults;
pub(super) mod file_stamp;
pub(crate) mod git;
mod ignore_rules;
mod jail;
mod limits;
mod listed_variables;
pub(super) mod manifest_tree;
mod paths;
mod recorder;
pub(crate) mod remote;
mod request;
mod source_values;
pub(super) mod surrounding;
mod value_cache;
mod variables;

pub(crate) use cancellation::StopCheck;
pub use disk::Disk;
pub(crate) use faults::{changed_while_read, similar_path};
pub use file_stamp::{FileStamp, NotedFile};
pub use git::commit::CommitTree;
pub(crate) use git::lineage::{Lineage, whole_commit};
pub(crate) use git::range::revisions;
pub(crate) use git::reference::{RefTree, RepositoryPlace};
pub(crate) use git::revision_spec::RevisionSpec;
pub(crate) use git::signed::CommitVerifier;
pub(crate) use jail::find;
pub(crate) use listed_variables::ListedVariables;
pub use manifest_tree::{GitCommitDetails, Tree, TreeFiles};
pub(crate) use paths::absolute;
pub use recorder::Recorder;
pub(crate) use recorder::{ReadDigests, collect};
pub use request::{Sent, SentFile, SentValue};
pub(crate) use source_values::SourceValues;
pub(crate) use surrounding::{SurroundedTree, UnsetValues};
pub(crate) use variables::{is_own_variable, withhold_variables};
