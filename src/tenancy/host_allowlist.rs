//! The hosts that a scope lists: an API key or a followed source takes no others for edges (D101, D112).

use foldhash::HashSet;

use super::hostports::added;
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

/// Returns the first host that an operation takes or changes and that is not listed. An empty list has all hosts.
///
/// An edge of a source is judged by the hosts that it adds, and by all if it gets another source. On an edge without a source, an
/// operation changes what all of its hosts serve, and so does one on a route there, unless a source gives its own route up.
pub(super) fn unlisted_host(hosts: &[String], current: &Snapshot, operation: &Operation) -> Option<String> {
    if hosts.is_empty() {
        return None;
    }
    let key = operation.key();
    let first = |edge: &HttpsEdge| unlisted(edge, hosts).next().map(|(_, _, host)| host);
    match (key.kind, operation) {
        (Kind::HttpsEdge, Operation::Create { spec, .. }) => first(spec.as_any().downcast_ref::<HttpsEdge>()?),
        (Kind::HttpsEdge, Operation::Patch { spec, fields, .. }) => {
            let is_hostports = |field: &String| field == "hostports";
            let edge = spec.as_any().downcast_ref::<HttpsEdge>().filter(|_| fields.iter().any(is_hostports));
            match unowned_edge(current, key) {
                Some(former) if !fields.iter().all(is_hostports) => first(former).or_else(|| first(edge?)),
                // Without the others, its hosts stay as they are.
                Some(former) => moved_host(hosts, edge?, former).or_else(|| moved_host(hosts, former, edge?)),
                None => {
                    let former = current.get(key).and_then(|entry| entry.spec_as::<HttpsEdge>());
                    let former = former.into_iter().flat_map(|edge| edge.addresses());
                    let known: HashSet<String> = former.map(|(_, _, (host, _))| host).collect();
                    unlisted(edge?, hosts).map(|(_, _, host)| host).find(|host| !known.contains(host))
                }
            }
        }
        (Kind::HttpsEdge, Operation::Claim { claim: Some(claim), .. }) => {
            let taken = current.get(key).filter(|entry| entry.source() != Some(claim.source.as_str()))?;
            first(taken.spec_as::<HttpsEdge>()?)
        }
        (Kind::HttpsEdge, _) => first(unowned_edge(current, key)?),
        // These only leave requests to others.
        (Kind::HttpsEdgeRoute, Operation::Claim { claim: None, .. }) => None,
        (Kind::HttpsEdgeRoute, Operation::Delete { .. }) if current.get(key)?.claim.is_some() => None,
        (Kind::HttpsEdgeRoute, _) => first(unowned_edge(current, &key.parent_key()?)?),
        _ => None,
    }
}

/// The first host of an edge that is not listed, of the hostports that another list of hostports does not have.
fn moved_host(hosts: &[String], edge: &HttpsEdge, other: &HttpsEdge) -> Option<String> {
    let moved: HashSet<String> = added(edge, Some(other)).into_iter().map(|(_, _, (host, _))| host).collect();
    unlisted(edge, hosts).map(|(_, _, host)| host).find(|host| moved.contains(host))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;

    use super::*;
    use crate::model::kind::https_edge_route::MatchType;
    use crate::model::{Claim, HttpsEdgeRoute, Id};

    fn edge(hostports: &[&str]) -> Arc<HttpsEdge> {
        let hostports = hostports.iter().map(|text| (*text).to_owned()).collect();
        Arc::new(HttpsEdge { hostports, ..HttpsEdge::default() })
    }

    fn key(id: &str) -> Key {
        Key::new(Kind::HttpsEdge, Id::new(id))
    }

    fn route_key(edge: &str, id: &str) -> Key {
        Key::child(Kind::HttpsEdgeRoute, Id::new(edge), Id::new(id))
    }

    fn create(id: &str, hostport: &str, claim: Option<Claim>) -> Operation {
        Operation::Create { key: key(id), spec: edge(&[hostport]), claim: claim.map(Arc::new), token: None }
    }

    fn create_route(edge: &str, id: &str, text: &str, claim: Option<Claim>) -> Operation {
        let match_type = Some(MatchType::PathPrefix);
        let spec = Arc::new(HttpsEdgeRoute { match_type, r#match: text.into(), ..HttpsEdgeRoute::default() });
        Operation::Create { key: route_key(edge, id), spec, claim: claim.map(Arc::new), token: None }
    }

    fn patch(id: &str, hostports: &[&str], field: &str) -> Operation {
        Operation::Patch { key: key(id), spec: edge(hostports), fields: vec![field.to_owned()] }
    }

    fn delete(key: Key) -> Operation {
        Operation::Delete { key, with_children: true }
    }

    /// What a key with hosts may not do to a state.
    fn assert_unlisted(current: &Snapshot, cases: &[(Operation, Option<&str>)]) {
        for (operation, expected) in cases {
            let listed = ["docs.example.com".to_owned(), "*.docs.example.com".to_owned()];
            assert_eq!(unlisted_host(&listed, current, operation).as_deref(), *expected, "{operation}");
            assert_eq!(unlisted_host(&[], current, operation), None);
        }
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
        let route = |edge: &str| Operation::create(route_key(edge, "edghtsrt_1"), Arc::new(HttpsEdgeRoute::default()));
        let changed = |edge: &str| Operation::Patch {
            key: route_key(edge, "edghtsrt_1"),
            spec: Arc::new(HttpsEdgeRoute::default()),
            fields: vec!["description".to_owned()],
        };
        let claimed = |edge: &str, claim: Option<Claim>| Operation::Claim {
            key: route_key(edge, "edghtsrt_1"),
            claim: claim.map(Arc::new),
        };
        let adopted = |id: &str| Operation::Claim { key: key(id), claim: Some(Arc::new(claim())) };
        let cases = [
            (create("edghts_new", "Billing.example.com:443", Some(claim())), Some("billing.example.com")),
            (create("edghts_new", "a.docs.example.com:443", Some(claim())), None),
            (create("edghts_new", "*.docs.example.com:443", None), None),
            (patch("edghts_own", &["old.example.com:8443", "docs.example.com:443"], "hostports"), None),
            (
                patch("edghts_own", &["old.example.com:443", "new.example.com:443"], "hostports"),
                Some("new.example.com"),
            ),
            (patch("edghts_own", &["new.example.com:443"], "description"), None),
            (route("edghts_free"), Some("free.example.com")),
            (route("edghts_own"), None),
            (changed("edghts_free"), Some("free.example.com")),
            (changed("edghts_own"), None),
            (claimed("edghts_free", Some(claim())), Some("free.example.com")),
            (claimed("edghts_free", None), None),
            (adopted("edghts_free"), Some("free.example.com")),
            (adopted("edghts_own"), None),
            (adopted("edghts_theirs"), Some("theirs.example.com")),
            (adopted("edghts_offered"), None),
        ];
        assert_unlisted(&current, &cases);
    }

    #[test]
    fn what_changes_an_edge_without_a_source_counts_for_all_of_its_hosts() {
        let (theirs, own) = ("b.example.com:443", "b.docs.example.com:443");
        let both = Operation::create(key("edghts_both"), edge(&[theirs, own]));
        let routes = [("edghtsrt_free", "/free/", None), ("edghtsrt_own", "/own/", Some(claim()))];
        let [free_route, own_route] = routes.map(|(id, text, claim)| create_route("edghts_both", id, text, claim));
        let stored = [both, create("edghts_own", "old.example.com:443", Some(claim())), free_route, own_route];
        let current = Snapshot::default().apply(&stored, Timestamp::UNIX_EPOCH).unwrap().0;
        let slot = Kind::HttpsEdge.info().slots.first().unwrap();
        let without_module = |id: &str| Operation::DeleteModule { host: key(id), slot };
        let hostports = |hostports: &[&str]| patch("edghts_both", hostports, "hostports");
        let refused = Some("b.example.com");
        let cases = [
            (patch("edghts_both", &[], "description"), refused),
            (patch("edghts_own", &[], "description"), None),
            (without_module("edghts_both"), refused),
            (without_module("edghts_own"), None),
            (delete(key("edghts_both")), refused),
            (delete(key("edghts_own")), None),
            (delete(route_key("edghts_both", "edghtsrt_free")), refused),
            // A source may give up what is its own.
            (delete(route_key("edghts_both", "edghtsrt_own")), None),
            (hostports(&[]), refused),
            (hostports(&[own]), refused),
            (hostports(&[theirs, own, "b.example.com:80"]), refused),
            (hostports(&[theirs]), None),
            (hostports(&[theirs, own, "c.docs.example.com:80"]), None),
        ];
        assert_unlisted(&current, &cases);
    }
}
