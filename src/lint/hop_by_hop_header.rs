//! `hop-by-hop-header`: a header that is the gateway's own business.

use super::{Findings, Level, Lint, World, duplicate_header::headers};
use crate::model::{fault::Aim, kind::https_edge_route::HttpsEdgeRoute};

/// The lint.
pub static LINT: Lint = Lint {
    name: "hop-by-hop-header",
    default: Level::Warn,
    says: "adding or removing Connection, Transfer-Encoding, Host and their like",
    why: "These headers are about one connection and the framing of its messages, and the gateway writes them anew for \
          each (RFC 9110, section 7.6.1). To set them by hand does nothing, or breaks requests.",
    example: "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  hostports: ['shop.example.com:443']
  routes:
    - name: all
      match_type: path_prefix
      match: /
      backend: {backend_id: bkd_shop}
      request_headers:
        add: {Connection: close}
",
    cure: "Remove the entry; to pass a host on, use a header such as `X-Forwarded-Host`.",
    check,
};

/// Headers of one connection (RFC 9110, section 7.6.1, and RFC 2616, section 13.5.1), and the two that the gateway
/// works out for each message.
const HEADERS: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "host",
    "content-length",
];

fn check(world: &World<'_>, findings: &mut Findings) {
    for (key, route) in world.all::<HttpsEdgeRoute>() {
        for (module, headers) in headers(route) {
            for (name, path, aim) in headers {
                if HEADERS.iter().any(|header| header.eq_ignore_ascii_case(name)) {
                    let does = if aim == Aim::Key { "adds" } else { "removes" };
                    let message = format!("{module} {does} `{name}`, which the gateway sets itself");
                    findings.report(key, path, message).aim = aim;
                }
            }
        }
    }
}
