//! Items that many lints use: the parts of a finding, the views and the world, the kinds that lints check, and where these have
//! policies, certificates and hosts.

pub(super) use super::shared::{certificate_chain::chains, placed_policy::placed_policies};
pub(super) use crate::lint::definition::{Level, Lint, LintCheck};
pub(super) use crate::lint::finding::{Findings, Subject, unknown_word};
pub(super) use crate::lint::view::{EdgeView, HostView};
pub(super) use crate::lint::world::World;
pub(super) use crate::model::diagnostics::{FaultTarget, Path};
pub(super) use crate::model::traffic::{host_name, host_port};
pub(super) use crate::model::{
    CertificateAuthority, HttpsEdge, HttpsEdgeRoute, Id, Invariant, IpRestriction, Key, Kind, TlsCertificate, TlsEdge,
};
pub(super) use crate::syntax::text::printable;
