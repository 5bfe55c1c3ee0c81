//! `wrong-id-prefix`: an ID of one kind where an ID of another kind belongs.
//!
//! IDs of other systems are opaque (D20), so only prefixes that belong to a known kind are judged.

use std::collections::HashSet;

use super::{Findings, Level, Lint, Scope, World};
use crate::{
    model::{
        Kind,
        fault::Path,
        id::Id,
        key::Key,
        kind::{https_edge_route::HttpsEdgeRoute, ip_restriction::IpRestriction, tls_edge::TlsEdge},
        module::{backend::Backend, ip_restriction::EndpointIpRestriction},
    },
    text::printable,
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "wrong-id-prefix",
    needs_whole: false,
    scope: Scope::Edge,
    default: Level::Warn,
    summary: "The prefix of an ID belongs to another kind of resource than its field.",
    why: "IDs of backends, IP policies and TLS edges belong to other systems, so the API accepts any. An ID with the \
          prefix of another kind is usually copied from the wrong place, and refers to nothing.",
    example: "\
apiVersion: edgewright/v1
kind: TlsEdge
metadata: {name: database}
spec:
  backend: {backend_id: ipp_office}
",
    cure: "Use the ID of a resource of the field's kind: `bkd_…` for a backend, `ipp_…` for an IP policy, `edgtls_…` for \
           a TLS edge.",
    check,
};

/// The prefix of the IDs of backends, and a noun.
const BACKEND: (&str, &str) = ("bkd_", "a backend");
/// The same for IP policies.
const IP_POLICY: (&str, &str) = ("ipp_", "an IP policy");
/// The same for TLS edges, which the API creates with any ID.
const TLS_EDGE: (&str, &str) = ("edgtls_", "a TlsEdge");
/// The same for event subscriptions.
const SUBSCRIPTION: (&str, &str) = ("esb_", "an EventSubscription");

/// The prefix of operations, which are no kind.
const OPERATION: (&str, &str) = ("op_", "an operation");
/// The same for reconciliations.
const RECONCILIATION: (&str, &str) = ("rec_", "a reconciliation");

fn check(world: &World<'_>, findings: &mut Findings) {
    for (key, restriction) in world.all::<IpRestriction>() {
        policies(findings, key, &["ip_policy_ids"], &restriction.ip_policy_ids);
    }
    for (key, route) in world.all::<HttpsEdgeRoute>() {
        modules(findings, key, route.backend.as_deref(), route.ip_restriction.as_deref());
    }
    let mut last = None;
    for key in world.judged.iter().map(|desired| &desired.key) {
        match (key.kind, &key.parent) {
            (Kind::TlsEdge, _) => judge_own(findings, key, &key.id, TLS_EDGE),
            // A subscription exists only as the parent of its sources, and its document declares all of them.
            (Kind::EventSource, Some(parent)) if last != Some(parent) => {
                last = Some(parent);
                judge_own(findings, key, parent, SUBSCRIPTION);
            }
            _ => {}
        }
    }
    for (key, edge) in world.all::<TlsEdge>() {
        modules(findings, key, edge.backend.as_deref(), edge.ip_restriction.as_deref());
    }
}

fn modules(findings: &mut Findings, key: &Key, backend: Option<&Backend>, restriction: Option<&EndpointIpRestriction>) {
    if let Some(backend) = backend {
        let place = || Path::root().join("backend").join("backend_id");
        judge(findings, key, place, &backend.backend_id, BACKEND);
    }
    if let Some(restriction) = restriction {
        policies(findings, key, &["ip_restriction", "ip_policy_ids"], &restriction.ip_policy_ids);
    }
}

fn policies(findings: &mut Findings, key: &Key, list: &[&str], ids: &[String]) {
    // `duplicate-entry` reports duplicates.
    let mut told = HashSet::new();
    for (index, id) in ids.iter().enumerate() {
        if fault(id, IP_POLICY).is_some() && !told.insert(id.as_str()) {
            continue;
        }
        let place = || list.iter().fold(Path::root(), |path, field| path.join(*field)).join(index);
        judge(findings, key, place, id, IP_POLICY);
    }
}

fn judge(findings: &mut Findings, key: &Key, place: impl FnOnce() -> Path, id: &str, expected: (&str, &str)) {
    if let Some(message) = fault(id, expected) {
        findings.report(key, place(), message);
    }
}

/// Judges the ID that a document adopts.
fn judge_own(findings: &mut Findings, key: &Key, id: &Id, expected: (&str, &str)) {
    if let Some(message) = fault(id.as_str(), expected) {
        findings.report(key, ["metadata", "id"], message).in_document = true;
    }
}

/// Returns what is wrong with an ID where the given prefix is expected.
fn fault(id: &str, (prefix, what): (&str, &str)) -> Option<String> {
    if id.starts_with(prefix) {
        return None;
    }
    let start = id.get(..prefix.len()).filter(|start| start.eq_ignore_ascii_case(prefix));
    if start.is_some() {
        return Some(format!("the prefix of `{}` must be in lower case: `{prefix}`", printable(id)));
    }
    let other = owner(id)?;
    Some(format!("`{}` has the prefix of {other}, not of {what}", printable(id)))
}

/// Returns the kind that an ID's prefix belongs to, with its article.
fn owner(id: &str) -> Option<String> {
    let (prefix, _) = id.split_once('_')?;
    let is_prefix = |known: &str| known.strip_suffix('_') == Some(prefix);
    if let Some((_, what)) =
        [BACKEND, IP_POLICY, OPERATION, RECONCILIATION].into_iter().find(|(known, _)| is_prefix(known))
    {
        return Some(what.to_owned());
    }
    let info = Kind::all().find(|info| is_prefix(info.prefix))?;
    // `HttpsEdge` starts with a vowel when it is spoken.
    let article = if info.name.starts_with(['A', 'E', 'H', 'I', 'O']) { "an" } else { "a" };
    Some(format!("{article} {}", info.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_in_lower_case() {
        assert!(fault("BKD_1", BACKEND).is_some_and(|message| message.contains("lower case")));
        assert!(fault("op_1", BACKEND).is_some_and(|message| message.contains("of an operation")));
        for good in ["bkd_1", "BKD", "Bkdpool_1", "pool_1", "é"] {
            assert_eq!(fault(good, BACKEND), None, "{good}");
        }
    }

    #[test]
    fn only_prefixes_of_known_kinds_have_an_owner() {
        assert_eq!(owner("ipp_1").as_deref(), Some("an IP policy"));
        assert_eq!(owner("ca_1").as_deref(), Some("a CertificateAuthority"));
        assert_eq!(owner("edghts_1").as_deref(), Some("an HttpsEdge"));
        for opaque in ["", "_", "_1", "office", "pool_1", "ca1", "bkdx_1"] {
            assert_eq!(owner(opaque), None, "{opaque}");
        }
    }
}
