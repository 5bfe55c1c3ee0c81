//! Items that many lints use: the parts of a finding, the views, the kinds that lints check, and where these have
//! policies, certificates and hosts.

pub(super) use super::{certificate_chain::chains, placed_policy::placed_policies};
pub(super) use crate::lint::{
    definition::{Level, Lint, LintCheck},
    finding::{Findings, Subject},
    view::{EdgeView, HostView, LintedSource, ManifestsView},
};
pub(super) use crate::{
    model::{
        CertificateAuthority, HttpsEdge, HttpsEdgeRoute, Id, IpRestriction, Key, Kind, TlsCertificate, TlsEdge,
        diagnostics::{FaultTarget, Path},
        traffic::{host_name, host_port},
    },
    syntax::text::printable,
};
