//! `disabled-termination`: credentials on an edge that does not terminate TLS.

use std::collections::HashMap;

use super::{EdgeView, Findings, Level, Lint, LintCheck};
use crate::model::{
    id::Id,
    kind::{https_edge::HttpsEdge, https_edge_route::HttpsEdgeRoute},
    resource::AnyResource,
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "disabled-termination",
    needs_whole: false,
    default: Level::Warn,
    summary: "`tls_termination` is disabled on an edge that checks client certificates or has a route with a login.",
    why: "Client certificates, session cookies and tokens need TLS between the client and the edge. With the module \
          disabled, the edge does not terminate TLS.",
    example: "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  hostports: ['shop.example.com:443']
  tls_termination: {enabled: false}
  routes:
    - name: account
      match_type: path_prefix
      match: /account
      backend: {backend_id: bkd_shop}
      oauth: {provider: {google: {email_domains: [example.com]}}}
",
    cure: "Enable `tls_termination`, or remove it: an edge terminates TLS by default.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    let disabled = || {
        let edges = view.all::<HttpsEdge>();
        edges.filter(|(_, edge)| edge.tls_termination.as_ref().is_some_and(|module| !module.enabled))
    };
    if disabled().next().is_none() {
        return;
    }
    let mut of_routes: HashMap<&Id, &'static str> = HashMap::new();
    for (key, route) in view.all::<HttpsEdgeRoute>() {
        if let (Some(edge), Some(module)) = (&key.parent, credentials(route)) {
            of_routes.entry(edge).or_insert(module);
        }
    }
    for (key, edge) in disabled() {
        if let Some(module) = credentials(edge).or_else(|| of_routes.get(&key.id).copied()) {
            let message = format!("`tls_termination` is disabled, but `{module}` needs TLS");
            findings.report(key, ["tls_termination", "enabled"], message);
        }
    }
}

/// The first enabled module that checks credentials of clients.
fn credentials(host: &dyn AnyResource) -> Option<&'static str> {
    let mut modules = host.modules();
    let (slot, _) = modules.find(|(slot, module)| {
        module.enabled() && (slot.is_login || matches!(slot.name, "jwt_validation" | "mutual_tls"))
    })?;
    Some(slot.name)
}
