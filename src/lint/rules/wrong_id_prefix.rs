//! `wrong-id-prefix`: an ID of one kind of another system where an ID of another kind belongs.
//!
//! IDs of other systems are opaque (D20), so only prefixes that are known are judged, and what no ID has: variables and invisible
//! characters. Prefixes of this service are errors.

use super::prelude::*;
use crate::model::external_id::{BACKEND, ExternalKind, IP_POLICY, SUBSCRIPTION, TLS_EDGE};
use crate::model::module::backend::Backend;
use crate::model::module::ip_restriction::EndpointIpRestriction;
use crate::syntax::text::is_invisible;

pub(crate) static LINT: Lint = Lint {
    name: "wrong-id-prefix",
    default: Level::Warn,
    summary: "An ID has the prefix of the wrong kind of resource, such as a backend's in place of an IP policy's, has its prefix in upper case, or contains a variable or an invisible character.",
    why: "Backends, IP policies, TLS edges and event subscriptions belong to other systems, so the API rejects only \
          IDs with the prefix of a kind of this service. An ID with the prefix of another kind was usually copied from \
          the wrong place, and refers to nothing. An ID with a variable refers to nothing either, because variables in \
          strings are not expanded.",
    cure: "Use the ID of a resource of the field's kind: `bkd_…` for a backend, `ipp_…` for an IP policy, `edgtls_…` for \
           a TLS edge, `esb_…` for an event subscription. Render templates before edgewright reads the manifests.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, restriction) in view.all::<IpRestriction>() {
        findings.report_entries(key, &["ip_policy_ids"], &restriction.ip_policy_ids, |id| fault(id, &IP_POLICY));
    }
    for (key, route) in view.all::<HttpsEdgeRoute>() {
        modules(findings, key, route.backend.as_deref(), route.ip_restriction.as_deref());
    }
    let mut last = None;
    for key in view.resources().map(|(key, _)| key) {
        match (key.kind, &key.parent) {
            (Kind::TlsEdge, _) => judge_own(findings, key, &key.id, &TLS_EDGE),
            // A subscription exists only as the parent of its sources, and its document declares all of them.
            (Kind::EventSource, Some(parent)) if last != Some(parent) => {
                last = Some(parent);
                judge_own(findings, key, parent, &SUBSCRIPTION);
            }
            _ => {}
        }
    }
    for (key, edge) in view.all::<TlsEdge>() {
        modules(findings, key, edge.backend.as_deref(), edge.ip_restriction.as_deref());
    }
}

fn modules(findings: &mut Findings, key: &Key, backend: Option<&Backend>, restriction: Option<&EndpointIpRestriction>) {
    if let Some(message) = backend.and_then(|backend| fault(&backend.backend_id, &BACKEND)) {
        findings.report(key, ["backend", "backend_id"], message);
    }
    if let Some(restriction) = restriction {
        let list = ["ip_restriction", "ip_policy_ids"];
        findings.report_entries(key, &list, &restriction.ip_policy_ids, |id| fault(id, &IP_POLICY));
    }
}

/// Judges the ID that a document adopts.
fn judge_own(findings: &mut Findings, key: &Key, id: &Id, expected: &ExternalKind) {
    if let Some(message) = fault(id.as_str(), expected) {
        findings.report(key, ["metadata", "id"], message).in_document = true;
    }
}

/// Returns what is wrong with an ID of an external kind.
fn fault(id: &str, expected: &ExternalKind) -> Option<String> {
    if id.starts_with('$') || ["${", "$(", "{{"].iter().any(|start| id.contains(start)) {
        return Some(format!("`{}` contains a variable, which is not expanded", printable(id)));
    }
    if id.contains(is_invisible) {
        return Some(format!("`{}` contains an invisible character", printable(id)));
    }
    let prefix = expected.prefix;
    if id.starts_with(prefix) {
        return None;
    }
    let start = id.get(..prefix.len()).filter(|start| start.eq_ignore_ascii_case(prefix));
    if start.is_some() {
        return Some(format!("the prefix of `{}` must be in lower case: `{prefix}`", printable(id)));
    }
    let other = [&BACKEND, &IP_POLICY].into_iter().find(|other| id.starts_with(other.prefix))?;
    Some(format!("`{}` has the prefix of {}, not of {}", printable(id), other.what, expected.what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_of_the_kind_and_in_lower_case() {
        assert!(fault("BKD_1", &BACKEND).is_some_and(|message| message.contains("lower case")));
        assert!(fault("ipp_1", &BACKEND).is_some_and(|message| message.contains("of an IP policy, not of a backend")));
        for variable in ["$BACKEND", "${BACKEND}", "bkd_${NAME}", "{{backend}}", "bkd_$(NAME)"] {
            assert!(fault(variable, &BACKEND).is_some_and(|it| it.contains("contains a variable")), "{variable}");
        }
        assert!(fault("bkd_\u{200b}1", &BACKEND).is_some_and(|message| message.contains("invisible")));
        for good in ["bkd_1", "BKD", "Bkdpool_1", "pool_1", "bkdx_1", "é"] {
            assert_eq!(fault(good, &BACKEND), None, "{good}");
        }
    }
}
