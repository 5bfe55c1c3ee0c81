//! Invariants about different hosts, on an edge with many matches.

use serde_json::{Value, json};

use super::{Given, change, edge, login, now, route, state};
use crate::model::{Id, Key, Kind};
use crate::routing::invariant::{ProofAnswer, prove};

const HOSTS: usize = 100;
const MATCHES: usize = 400;

/// An invariant for each of some hosts: its requests need a login.
fn invariants() -> Vec<Given> {
    let of_host = |number: usize| {
        let scope = json!({"hosts": [format!("h{number}.example.com")]});
        invariant(
            &format!("inv_{number}"),
            json!({"description": "It holds", "scope": scope, "requires_any": ["oidc"]}),
        )
    };
    (0..HOSTS).map(of_host).collect()
}

fn invariant(id: &str, spec: Value) -> Given {
    (Key::new(Kind::Invariant, Id::new(id)), "platform", spec)
}

/// An edge with many matches for all hosts, each with a login.
fn wiki() -> Vec<Given> {
    let routes = (0..MATCHES).map(|number| route("wiki", "shop", &format!("/a{number}"), login()));
    [edge("wiki", "shop", "*.example.com:443", json!({}))].into_iter().chain(routes).collect()
}

/// The answers about the invariants of a state, each with the number of classes that it is about.
fn answers(given: &[Given]) -> Vec<(ProofAnswer, usize)> {
    let state = state(given);
    prove(&state, now()).iter().map(|proof| (proof.answer(), proof.classes + proof.exempt)).collect()
}

#[test]
fn each_invariant_has_as_many_classes_as_it_would_have_alone() {
    // Each match, and the paths of none.
    let alone = (ProofAnswer::Proven, MATCHES + 1);
    assert_eq!(answers(&[invariants(), wiki()].concat()), vec![alone; HOSTS]);
    let open = route("wiki", "shop", "h7.example.com/open", json!({}));
    let given = [invariants(), wiki(), vec![open]].concat();
    let refuted = (ProofAnswer::Refuted, MATCHES + 2);
    let expected: Vec<_> = (0..HOSTS).map(|number| if number == 7 { refuted } else { alone }).collect();
    assert_eq!(answers(&given), expected);
    let state = state(&given);
    let requests: Vec<String> =
        prove(&state, now()).iter().flat_map(|proof| &proof.breaches).map(|breach| breach.request_text()).collect();
    assert_eq!(requests, ["`GET https://h7.example.com/open`"]);
    assert!(change(&invariants(), &[invariants(), wiki()].concat()).is_empty(), "a new edge is judged like that, too");
}

#[test]
fn an_invariant_with_too_many_classes_leaves_the_others_alone() {
    let exemption = |number: usize| {
        let (host, paths) = (format!("h{number}.example.com"), json!([format!("/a{number}/x")]));
        json!({"hosts": [host], "path_prefixes": paths, "owner": "o", "reason": "r", "expires": "2027-12-31"})
    };
    let exemptions: Vec<Value> = (0..HOSTS).map(exemption).collect();
    let scope = json!({"hosts": ["*.example.com"]});
    let wide = invariant(
        "inv_wide",
        json!({"description": "It holds", "scope": scope, "requires_any": ["oidc"], "exemptions": exemptions}),
    );
    let before = [vec![wide], invariants()].concat();
    let after = [before.clone(), wiki()].concat();
    let found = answers(&after);
    assert_eq!(found.first().map(|(answer, _)| *answer), Some(ProofAnswer::Depends));
    assert_eq!(found.get(1..), Some(&vec![(ProofAnswer::Proven, MATCHES + 1); HOSTS][..]));
    // A change is refused by this one only.
    assert_eq!(change(&before, &after), ["wiki/hostports"]);
}
