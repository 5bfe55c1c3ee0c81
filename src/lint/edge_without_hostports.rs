//! `edge-without-hostports`: routes that no request can reach, because their edge serves no hostport.

use std::collections::HashSet;

use super::{EdgeView, Findings, Level, Lint, LintCheck};
use crate::model::{
    id::Id,
    kind::{https_edge::HttpsEdge, https_edge_route::HttpsEdgeRoute},
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "edge-without-hostports",
    needs_whole: false,
    default: Level::Warn,
    summary: "An HTTPS edge has routes, but no hostports.",
    why: "A request selects an edge by the host and port that it is sent to, so no request reaches the routes.",
    example: "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  hostports: []
  routes:
    - name: all
      match_type: path_prefix
      match: /
      backend: {backend_id: bkd_shop}
",
    cure: "Add the hostports that the edge serves, such as `shop.example.com:443`.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    let bare = || view.all::<HttpsEdge>().filter(|(_, edge)| edge.hostports.is_empty());
    if bare().next().is_none() {
        return;
    }
    let with_routes: HashSet<&Id> = view.all::<HttpsEdgeRoute>().filter_map(|(key, _)| key.parent.as_ref()).collect();
    for (key, _) in bare().filter(|(key, _)| with_routes.contains(&key.id)) {
        findings.report(key, ["hostports"], "the edge has no hostports, so no request reaches its routes");
    }
}
