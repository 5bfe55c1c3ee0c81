//! Exemptions of many hosts, on an edge with many matches.

use serde_json::{Value, json};

use super::{Given, edge, invariant, login, now, route, state};
use crate::routing::invariant::{ProofAnswer, prove};

const HOSTS: usize = 100;
const MATCHES: usize = 300;

/// The answer about an invariant with an exemption for each of some hosts, and the number of classes that it is about.
fn answer(paths_of: impl Fn(usize) -> Value) -> Option<(ProofAnswer, usize)> {
    let exemption = |number: usize| {
        let (host, paths) = (format!("h{number}.example.com"), paths_of(number));
        json!({"hosts": [host], "path_prefixes": paths, "owner": "o", "reason": "r", "expires": "2027-12-31"})
    };
    let exemptions: Vec<Value> = (0..HOSTS).map(exemption).collect();
    let scope = json!({"hosts": ["*.example.com"]});
    let needs_login = invariant(json!({"scope": scope, "requires_any": ["oidc"], "exemptions": exemptions}));
    let routes = (0..MATCHES).map(|number| route("wiki", "shop", &format!("/a{number}"), login()));
    let wiki = edge("wiki", "shop", "*.example.com:443", json!({}));
    let state = state(&[needs_login, wiki].into_iter().chain(routes).collect::<Vec<Given>>());
    let proofs = prove(&state, now());
    proofs.first().map(|proof| (proof.answer(), proof.classes + proof.exempt))
}

#[test]
fn exempt_hosts_share_their_classes_however_many_exemptions_they_have() {
    // Each match, and the paths of none.
    let of_a_host = MATCHES + 1;
    assert_eq!(answer(|_| json!([])), Some((ProofAnswer::Proven, 2 * of_a_host)));
    assert_eq!(answer(|_| json!(["/a1/x"])), Some((ProofAnswer::Proven, 2 * of_a_host + 1)));
    // The paths of each host are split in another way.
    let of_own_paths = answer(|number| json!([format!("/a{number}/x")]));
    assert_eq!(of_own_paths.map(|(answer, _)| answer), Some(ProofAnswer::Depends));
}
