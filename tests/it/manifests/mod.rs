//! Manifests: how they are read, resolved, judged, written and formatted.

pub(crate) mod adoption;
pub(crate) mod bounds;
pub(crate) mod delegation;
pub(crate) mod delegation_help;
pub(crate) mod export;
pub(crate) mod fmt;
pub(crate) mod foreign_files;
pub(crate) mod guessed_answers;
pub(crate) mod guessed_identities;
pub(crate) mod identity;
pub(crate) mod invariant_evidence;
pub(crate) mod invariants;
pub(crate) mod isolation;
pub(crate) mod lint_places;
pub(crate) mod lints;
pub(crate) mod mistakes;
pub(crate) mod root_cause;
pub(crate) mod route_tests;
pub(crate) mod surrounding_proofs;
