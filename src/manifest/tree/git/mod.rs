//! Manifests in a commit of a Git repository: which commit a name means, what it has, and who signed it.

pub(crate) mod commit;
pub(crate) mod lineage;
pub(crate) mod provenance;
pub(crate) mod range;
mod ref_suggestions;
pub(crate) mod reference;
mod repository;
pub(crate) mod revision_spec;
pub(crate) mod signed;
