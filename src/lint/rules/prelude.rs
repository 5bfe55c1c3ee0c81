//! Items that many lints use: the parts of a finding, the views, the kinds that lints check, and where these have
//! policies, certificates and hosts.

pub(super) use super::{empty_policy::placed_policies, expired_certificate::chains};
pub(super) use crate::lint::{
    Findings, Level, Lint, LintCheck, Subject,
    view::{EdgeView, EstateView, HostView, ManifestsView},
};
pub(super) use crate::{
    model::{
        CertificateAuthority, HttpsEdge, HttpsEdgeRoute, Id, IpRestriction, Key, Kind, TlsCertificate, TlsEdge,
        diagnostics::{Aim, Path},
        traffic::{host_name, host_port},
    },
    syntax::text::printable,
};
