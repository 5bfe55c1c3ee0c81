//! Manifests in Git: which commit a revision names, what it has, who signed it, and whether history only moved forward.
//!
//! # The problem
//!
//! A branch moves while its files are read, a tag can be set again, and anyone who can push can bring back an earlier
//! commit.
//!
//! # The idea
//!
//! A [`RevisionSpec`](revision_spec::RevisionSpec) is resolved to one commit, and everything is read from that commit, without
//! a work tree and without running `git`. Before it is read, the commit is checked: its signature
//! ([`signed`]) and its descent from the commit that was applied last ([`lineage`], D89).
//!
//! For example, `semver: ^1.2` names tag `v1.4.0`, and all manifests, values and surrounding manifests come from the commit of
//! that tag, even if `v1.5.0` is pushed meanwhile.
//!
//! # What it never does
//!
//! It changes no repository. For files on a disk, [`provenance`] only reads which commit they are from.

pub(crate) mod commit;
pub(crate) mod lineage;
pub(crate) mod provenance;
pub(crate) mod range;
mod ref_suggestions;
pub(crate) mod reference;
mod repository;
pub(crate) mod revision_spec;
pub(crate) mod signed;
