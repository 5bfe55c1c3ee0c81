//! `hop-by-hop-header`: a header that the gateway controls.

use super::{duplicate_header::headers, prelude::*};

pub(crate) static LINT: Lint = Lint {
    name: "hop-by-hop-header",
    default: Level::Warn,
    summary: "A route adds or removes a header that the gateway controls, such as `Connection`, `Transfer-Encoding` or `Host`.",
    why: "These headers describe one connection or the framing of one message, and the gateway sets them for each (RFC \
          9110, section 7.6.1). Changing them has no effect, or breaks requests.",
    cure: "Remove the entry. To forward the host, use a header such as `X-Forwarded-Host`.",
    check: LintCheck::Edge(check),
};

/// Hop-by-hop headers (RFC 9110, section 7.6.1, and RFC 2616, section 13.5.1), and two that the gateway computes for
/// each message.
#[rustfmt::skip]
const HEADERS: &[&str] = &[
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
    "upgrade", "host", "content-length",
];

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, route) in view.all::<HttpsEdgeRoute>() {
        for (module, headers) in headers(route) {
            for (name, place) in headers {
                if HEADERS.iter().any(|header| header.eq_ignore_ascii_case(name)) {
                    let does = if place.target() == FaultTarget::Key { "adds" } else { "removes" };
                    let message = format!("`{module}` {does} `{name}`, which the gateway controls");
                    findings.report(key, place.path(module), message).target = place.target();
                }
            }
        }
    }
}
