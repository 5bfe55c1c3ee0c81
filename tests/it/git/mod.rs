//! Manifests in Git: remote repositories, signatures, and the commit that a revision comes from.

pub(crate) mod provenance;
pub(crate) mod remote;
pub(crate) mod signatures;
