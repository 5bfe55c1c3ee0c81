//! `plain-http-hostport`: a protected host that its edge serves on the port of plain HTTP.
//!
//! A route counts only if it receives requests on that port: a redirect to HTTPS needs no protection.

use std::cell::LazyCell;

use super::prelude::*;
use crate::model::traffic::PLAIN_HTTP;
use crate::model::{AnyResource, rules};
use crate::routing::table::RouteTable;

pub(crate) static LINT: Lint = Lint {
    name: "plain-http-hostport",
    default: Level::Warn,
    summary: "An edge with logins, tokens or client certificates serves the host on port 80.",
    why: "Port 80 is plain HTTP, so session cookies and tokens can be read in transit, and clients present no \
          certificates.",
    cure: "Serve the host on port 443 only, or limit the route to that port with a port in its match, such as \
           `wiki.example.com:443/`.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, edge) in view.all::<HttpsEdge>().filter(|(_, edge)| !rules::passes_through(edge)) {
        let table = LazyCell::new(|| RouteTable::new(false, view.routes_of(&key.id)));
        for (index, text, (host, _)) in edge.addresses().filter(|(_, _, (_, port))| *port == PLAIN_HTTP) {
            let of_routes = || table.receiving(&host, PLAIN_HTTP).find_map(|(_, route)| with_credentials(route));
            if let Some(module) = with_credentials(edge).or_else(of_routes) {
                let message = format!("`{}` is plain HTTP, which `{module}` cannot protect", printable(text));
                findings.report(key, ("hostports", index), message);
            }
        }
    }
}

/// The first enabled module that needs credentials of clients.
pub(super) fn with_credentials(host: &dyn AnyResource) -> Option<&'static str> {
    let mut modules = host.modules();
    let (slot, _) = modules.find(|(slot, module)| {
        module.enabled() && (slot.is_login || matches!(slot.name, "jwt_validation" | "mutual_tls"))
    })?;
    Some(slot.name)
}
