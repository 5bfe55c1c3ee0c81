//! What nearly every lint uses: the parts of a finding, the views, and the kinds that lints look at.

pub(super) use crate::lint::{
    Findings, Level, Lint, LintCheck, Subject,
    view::{EdgeView, EstateView, HostView, ManifestsView},
};
pub(super) use crate::{
    model::{
        CertificateAuthority, HttpsEdge, HttpsEdgeRoute, Id, IpRestriction, Key, Kind, TlsCertificate, TlsEdge,
        diagnostics::{Aim, Path},
    },
    syntax::text::printable,
};
