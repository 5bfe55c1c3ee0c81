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

/// A [`Lint::example`] of edges, each by its name and the fields of its Spec. Further lines of the fields are indented by two
/// spaces.
macro_rules! edge_example {
    ($name:literal => $fields:literal $(, $next:literal => $more:literal)*) => {
        concat!(
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: ", $name, "}\nspec:\n  ", $fields, "\n"
            $(, "---\napiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: ", $next, "}\nspec:\n  ", $more, "\n")*
        )
    };
}

/// A [`Lint::example`] of an edge with one route, by its name, its path and its modules. Further lines of the modules are
/// indented by six spaces.
macro_rules! route_example {
    ($name:literal, $path:literal => $modules:literal) => {
        concat!(
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: shop}\nspec:\n",
            "  hostports: ['shop.example.com:443']\n  routes:\n    - name: ",
            $name,
            "\n      match_type: path_prefix\n      match: ",
            $path,
            "\n      backend: {backend_id: bkd_shop}\n      ",
            $modules,
            "\n",
        )
    };
}
pub(super) use {edge_example, route_example};
