//! What nearly every lint uses: the parts of a finding, the views, and the kinds that lints look at.

pub(super) use crate::lint::{
    Findings, Level, Lint, LintCheck, Subject,
    view::{EdgeView, EstateView, HostView, ManifestsView},
};
pub(super) use crate::{
    model::{
        Kind,
        diagnostics::{Aim, Path},
        id::Id,
        key::Key,
        kind::{
            certificate_authority::CertificateAuthority, https_edge::HttpsEdge, https_edge_route::HttpsEdgeRoute,
            ip_restriction::IpRestriction, tls_certificate::TlsCertificate, tls_edge::TlsEdge,
        },
    },
    syntax::text::printable,
};
