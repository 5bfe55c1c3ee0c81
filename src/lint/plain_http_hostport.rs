//! `plain-http-hostport`: a protected host that its edge also serves on the port of plain HTTP.

use std::collections::HashMap;

use super::{Findings, Level, Lint, World, duplicate_hostport::host_port};
use crate::{
    model::{
        fault::Path,
        id::Id,
        key::Key,
        kind::{https_edge::HttpsEdge, https_edge_route::HttpsEdgeRoute},
        resource::AnyResource,
        rules,
    },
    text::printable,
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "plain-http-hostport",
    default: Level::Warn,
    summary: "An edge with logins, tokens or client certificates also serves the host on port 80.",
    why: "Port 80 is the port of plain HTTP. Session cookies and tokens can be read on the way, and clients present no \
          certificates.",
    example: "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: wiki}
spec:
  hostports: ['wiki.example.com:443', 'wiki.example.com:80']
  routes:
    - name: wiki
      match_type: path_prefix
      match: /
      backend: {backend_id: bkd_wiki}
      oidc:
        issuer: https://id.example.com
        client_id: wiki
        client_secret: example-client-secret
",
    cure: "Remove the hostport with port 80.",
    check,
};

fn check(world: &World<'_>, findings: &mut Findings) {
    let mut open: Vec<(&Key, &HttpsEdge, usize)> = Vec::new();
    for (key, edge) in world.all::<HttpsEdge>().filter(|(_, edge)| !rules::passes_through(edge)) {
        let mut other_ports: HashMap<String, bool> = HashMap::new();
        for (host, port) in edge.hostports.iter().filter_map(|hostport| host_port(hostport)) {
            *other_ports.entry(host).or_default() |= port != 80;
        }
        let is_both = |text: &String| {
            host_port(text)
                .is_some_and(|(host, port)| port == 80 && other_ports.get(&host).copied().unwrap_or_default())
        };
        let plain = edge.hostports.iter().enumerate().filter(|(_, text)| is_both(text));
        open.extend(plain.map(|(index, _)| (key, edge, index)));
    }
    if open.is_empty() {
        return;
    }
    let mut of_routes: HashMap<&Id, &'static str> = HashMap::new();
    for (key, route) in world.all::<HttpsEdgeRoute>() {
        if let (Some(edge), Some(module)) = (&key.parent, with_credentials(route)) {
            of_routes.entry(edge).or_insert(module);
        }
    }
    for (key, edge, index) in open {
        let module = with_credentials(edge).or_else(|| of_routes.get(&key.id).copied());
        if let (Some(module), Some(text)) = (module, edge.hostports.get(index)) {
            let message = format!("`{}` is plain HTTP, which `{module}` cannot protect", printable(text));
            findings.report(key, Path::root().join("hostports").join(index), message);
        }
    }
}

/// The first enabled module that needs credentials of clients.
fn with_credentials(host: &dyn AnyResource) -> Option<&'static str> {
    let mut modules = host.modules();
    let (slot, _) = modules.find(|(slot, module)| {
        module.enabled() && (slot.is_login || matches!(slot.name, "jwt_validation" | "mutual_tls"))
    })?;
    Some(slot.name)
}
