//! `disabled-termination`: credentials on an edge that does not terminate TLS.

use super::{plain_http_hostport::with_credentials, prelude::*};

pub(crate) static LINT: Lint = Lint {
    name: "disabled-termination",
    default: Level::Warn,
    summary: "`tls_termination` is disabled on an edge that checks client certificates or has a route with a login.",
    why: "Client certificates, session cookies and tokens need TLS between the client and the edge. With the module \
          disabled, the edge does not terminate TLS.",
    cure: "Enable `tls_termination`, or remove it: an edge terminates TLS by default.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, edge) in view.all::<HttpsEdge>() {
        if edge.tls_termination.as_ref().is_none_or(|module| module.enabled) {
            continue;
        }
        let of_routes = || view.routes_of(&key.id).find_map(|(_, route)| with_credentials(route));
        if let Some(module) = with_credentials(edge).or_else(of_routes) {
            let message = format!("`tls_termination` is disabled, but `{module}` needs TLS");
            findings.report(key, ["tls_termination", "enabled"], message);
        }
    }
}
