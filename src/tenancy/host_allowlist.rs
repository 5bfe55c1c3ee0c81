//! The hosts that a scope lists: an API key or a followed source takes no others for edges (D101, D112).

use foldhash::HashSet;

use crate::model::host_pattern::covers;
use crate::model::traffic::host_name;
use crate::model::{HttpsEdge, Key, Kind, Operation, Snapshot};

/// The hostports of an edge with hosts that are not listed: their places in the list, their texts, and their hosts.
pub(super) fn unlisted<'e>(
    edge: &'e HttpsEdge,
    hosts: &'e [String],
) -> impl Iterator<Item = (usize, &'e str, String)> + use<'e> {
    let listed: Vec<String> = hosts.iter().map(|pattern| host_name(pattern)).collect();
    edge.addresses().filter_map(move |(index, text, (host, _))| {
        let is_listed = listed.iter().any(|pattern| covers(pattern, &host));
        (!is_listed).then_some((index, text, host))
    })
}

/// An edge in the store that no source owns.
pub(super) fn unowned_edge<'s>(current: &'s Snapshot, key: &Key) -> Option<&'s HttpsEdge> {
    current.get(key).filter(|entry| entry.claim.is_none())?.spec_as::<HttpsEdge>()
}

/// Returns the first host that an operation takes and that is not listed: a new one of an edge, one of an edge that gets
/// another source or its first one, or one of an edge without a source of which a route is added, changed or adopted. An empty
/// list has all hosts.
pub(super) fn unlisted_host(hosts: &[String], current: &Snapshot, operation: &Operation) -> Option<String> {
    if hosts.is_empty() {
        return None;
    }
    let key = operation.key();
    let first = |edge: &HttpsEdge| unlisted(edge, hosts).next().map(|(_, _, host)| host);
    match (key.kind, operation) {
        (Kind::HttpsEdge, Operation::Create { spec, .. }) => first(spec.as_any().downcast_ref::<HttpsEdge>()?),
        (Kind::HttpsEdge, Operation::Patch { spec, fields, .. }) if fields.iter().any(|field| field == "hostports") => {
            let former = current.get(key).and_then(|entry| entry.spec_as::<HttpsEdge>());
            let former = former.into_iter().flat_map(|edge| edge.addresses());
            let known: HashSet<String> = former.map(|(_, _, (host, _))| host).collect();
            let edge = spec.as_any().downcast_ref::<HttpsEdge>()?;
            unlisted(edge, hosts).map(|(_, _, host)| host).find(|host| !known.contains(host))
        }
        (Kind::HttpsEdge, Operation::Claim { claim: Some(claim), .. }) => {
            let taken = current.get(key).filter(|entry| entry.source() != Some(claim.source.as_str()))?;
            first(taken.spec_as::<HttpsEdge>()?)
        }
        // These only leave requests to others.
        (Kind::HttpsEdgeRoute, Operation::Delete { .. } | Operation::Claim { claim: None, .. }) => None,
        (Kind::HttpsEdgeRoute, _) => first(unowned_edge(current, &key.parent_key()?)?),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;

    use super::*;
    use crate::model::{Claim, HttpsEdgeRoute, Id};

    fn edge(hostports: &[&str]) -> Arc<HttpsEdge> {
        let hostports = hostports.iter().map(|text| (*text).to_owned()).collect();
        Arc::new(HttpsEdge { hostports, ..HttpsEdge::default() })
    }

    fn create(id: &str, hostport: &str, claim: Option<Claim>) -> Operation {
        let key = Key::new(Kind::HttpsEdge, Id::new(id));
        Operation::Create { key, spec: edge(&[hostport]), claim: claim.map(Arc::new), token: None }
    }

    fn claim() -> Claim {
        Claim::new("docs", "x")
    }

    #[test]
    fn only_what_is_taken_counts() {
        let stored = [
            create("edghts_free", "free.example.com:443", None),
            create("edghts_own", "old.example.com:443", Some(claim())),
            create("edghts_theirs", "theirs.example.com:443", Some(Claim::new("team", "x"))),
            create("edghts_offered", "a.docs.example.com:443", Some(Claim::new("team", "y"))),
        ];
        let current = Snapshot::default().apply(&stored, Timestamp::UNIX_EPOCH).unwrap().0;
        let key = |id: &str| Key::new(Kind::HttpsEdge, Id::new(id));
        let patch = |hostports: &[&str], field: &str| Operation::Patch {
            key: key("edghts_own"),
            spec: edge(hostports),
            fields: vec![field.to_owned()],
        };
        let route_key = |edge: &str| Key::child(Kind::HttpsEdgeRoute, Id::new(edge), Id::new("edghtsrt_1"));
        let route = |edge: &str| Operation::create(route_key(edge), Arc::new(HttpsEdgeRoute::default()));
        let changed = |edge: &str| Operation::Patch {
            key: route_key(edge),
            spec: Arc::new(HttpsEdgeRoute::default()),
            fields: vec!["description".to_owned()],
        };
        let claimed =
            |edge: &str, claim: Option<Claim>| Operation::Claim { key: route_key(edge), claim: claim.map(Arc::new) };
        let deleted = |edge: &str| Operation::Delete { key: route_key(edge), with_children: false };
        let adopted = |id: &str| Operation::Claim { key: key(id), claim: Some(Arc::new(claim())) };
        for (operation, expected) in [
            (create("edghts_new", "Billing.example.com:443", Some(claim())), Some("billing.example.com")),
            (create("edghts_new", "a.docs.example.com:443", Some(claim())), None),
            (create("edghts_new", "*.docs.example.com:443", None), None),
            (patch(&["old.example.com:8443", "docs.example.com:443"], "hostports"), None),
            (patch(&["old.example.com:443", "new.example.com:443"], "hostports"), Some("new.example.com")),
            (patch(&["new.example.com:443"], "description"), None),
            (route("edghts_free"), Some("free.example.com")),
            (route("edghts_own"), None),
            (changed("edghts_free"), Some("free.example.com")),
            (changed("edghts_own"), None),
            (claimed("edghts_free", Some(claim())), Some("free.example.com")),
            (claimed("edghts_free", None), None),
            (deleted("edghts_free"), None),
            (adopted("edghts_free"), Some("free.example.com")),
            (adopted("edghts_own"), None),
            (adopted("edghts_theirs"), Some("theirs.example.com")),
            (adopted("edghts_offered"), None),
        ] {
            let shown = operation.to_string();
            let listed = ["docs.example.com".to_owned(), "*.docs.example.com".to_owned()];
            assert_eq!(unlisted_host(&listed, &current, &operation).as_deref(), expected, "{shown}");
            assert_eq!(unlisted_host(&[], &current, &operation), None);
        }
    }
}
