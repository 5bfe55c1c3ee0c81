//! `edge-without-hostports`: routes that no request can reach, because their edge serves no hostport.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "edge-without-hostports",
    default: Level::Warn,
    summary: "An HTTPS edge has routes, but no hostports.",
    why: "The host and port of a request select its edge, so no request reaches the routes.",
    cure: "Add the hostports that the edge serves, such as `shop.example.com:443`.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, edge) in view.all::<HttpsEdge>() {
        if edge.hostports.is_empty() && view.routes_of(&key.id).next().is_some() {
            findings.report(key, ["hostports"], "the edge has no hostports, so no request reaches its routes");
        }
    }
}
