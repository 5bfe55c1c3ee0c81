//! The laws of invariants, on generated states and all of a set of requests, each of which is traced: no invariant is proven
//! that a request breaks, and each counterexample is one.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;

use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};

use super::now;
use crate::model::kind::invariant::Invariant;
use crate::model::{HttpsEdge, HttpsEdgeRoute, Id, Key, Kind, Snapshot};
use crate::routing::invariant::change::breaches;
use crate::routing::invariant::{Breach, ProofAnswer, is_refused, prove};
use crate::routing::tests::{GeneratedEstate, changed, estates, specs_of, state_of, with};
use crate::routing::{TracedRequest, rank_host, trace};

const HOSTPORTS: [&str; 7] = [
    "a.example.com:443",
    "a.example.com:80",
    "*.example.com:443",
    "*.example.com:8443",
    "*.eu.example.com:443",
    "x.eu.example.com:443",
    "b.example.org:443",
];
/// A match starts with `=` if it is exact.
const MATCHES: [&str; 10] = [
    "/",
    "/a",
    "/a/",
    "=/a",
    "=/a/b",
    "*.example.com/a",
    "*.eu.example.com:8443/",
    "=a.example.com/a",
    "x.eu.example.com/a",
    "*u.example.com/b",
];
const HOSTS: [&str; 7] = [
    "a.example.com",
    "z.example.com",
    "eu.example.com",
    "x.eu.example.com",
    "y.eu.example.com",
    "neu.example.com",
    "b.example.org",
];
const PATHS: [&str; 8] = ["/", "/a", "/ab", "/a/", "/a/b", "/a/bc", "/b", "/c"];
const METHODS: [&str; 2] = ["GET", "OPTIONS"];

/// The fate of a request by a requirement, as brute force finds it; later ones are worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FoundAnswer {
    Met,
    Unknown,
    Unmet,
}

fn estate() -> impl Strategy<Value = GeneratedEstate> {
    let mutual = || json!({"mutual_tls": {"certificate_authority_ids": ["ca_1"]}});
    let edges = vec![
        json!({}),
        json!({"tls_termination": {}}),
        json!({"tls_termination": {"min_version": "1.1"}}),
        json!({"tls_termination": {"terminate_at": "upstream"}}),
        json!({"tls_termination": {"enabled": false}}),
        mutual(),
        with(mutual(), json!({"tls_termination": {"enabled": false}})),
    ];
    let login = |more: Value| json!({"oidc": {"options_passthrough": more}});
    let modules = vec![
        json!({}),
        login(json!(false)),
        login(json!(true)),
        json!({"ip_restriction": {"ip_policy_ids": ["ipp_1"]}, "oidc": {}}),
        json!({"ip_restriction": {"ip_policy_ids": ["ipp_1", "ipp_2"]}}),
        json!({"ip_restriction": {}}),
        json!({"policies": {"inbound": [{"actions": [{"type": "deny"}]}]}}),
        json!({"policies": {"inbound": [{"expressions": ["a"], "actions": [{"type": "deny"}]}]}}),
        json!({"policies": {"inbound": [{"actions": [{"type": "add-headers"}, {"type": "rate-limit"}]}]}}),
        json!({"backend": {"enabled": false, "backend_id": "bkd_1"}}),
        json!({"backend": {"backend_id": "bkd_2"}, "oidc": {"enabled": false}}),
    ];
    estates(&HOSTPORTS, edges, &MATCHES, modules)
}

fn invariant() -> impl Strategy<Value = Invariant> {
    let hosts = vec![json!([]), json!(["*.example.com"]), json!(["x.eu.example.com", "*.EU.example.com"])];
    let hosts = select([hosts, vec![json!(["a.example.com"]), json!(["z.example.com"])]].concat());
    let prefixes = || select(vec![json!([]), json!(["/a"]), json!(["/a/b", "/c"])]);
    let required = select(vec![
        json!({"requires_any": ["oidc"]}),
        json!({"requires_any": ["oidc", "mutual_tls"]}),
        json!({"requires_any": ["tls_termination"]}),
        json!({"only_from": ["ipp_1"]}),
        json!({"requires_any": ["oidc"], "only_from": ["ipp_1", "ipp_2"]}),
        json!({"backends": ["bkd_1"]}),
        json!({"min_tls_version": "1.2"}),
    ]);
    let exempt = select(vec![None, Some("2026-12-31"), Some("2027-12-31")]);
    (hosts, prefixes(), required, prefixes(), exempt).prop_map(|(hosts, prefixes, required, exempted, expires)| {
        let exemptions: Vec<Value> = expires
            .map(|day| json!({"hosts": ["*.eu.example.com"], "path_prefixes": exempted, "expires": day}))
            .into_iter()
            .collect();
        let scope = json!({"hosts": hosts, "path_prefixes": prefixes});
        let spec = json!({"description": "d", "scope": scope, "exemptions": exemptions});
        serde_json::from_value(with(spec, required)).unwrap()
    })
}

fn state(estate: &GeneratedEstate, invariant: &Invariant) -> Snapshot {
    let mut specs = specs_of(estate);
    specs.insert(Key::new(Kind::Invariant, Id::new("inv_1")), Arc::new(invariant.clone()));
    state_of(specs)
}

fn requests() -> Vec<TracedRequest> {
    let mut requests = Vec::new();
    for host in HOSTS {
        for port in [443, 8443, 80] {
            for path in PATHS {
                let url = format!("https://{host}:{port}{path}");
                requests.extend(METHODS.map(|method| TracedRequest::new(method, &url).unwrap()));
            }
        }
    }
    requests
}

/// Whether patterns and prefixes select a request, in the words of the documentation.
fn selects(hosts: &[String], prefixes: &[String], request: &TracedRequest) -> bool {
    let has_host = hosts.is_empty() || hosts.iter().any(|host| rank_host(&request.host, host).is_some());
    has_host && (prefixes.is_empty() || prefixes.iter().any(|prefix| request.path.starts_with(prefix)))
}

/// The answer for one request, from its trace and the Specs of its edge and route.
fn brute_force(state: &Snapshot, invariant: &Invariant, request: &TracedRequest) -> FoundAnswer {
    let exemptions = invariant.exemptions.iter().filter(|it| it.expires.as_str() > "2027-01-14");
    let is_exempt = exemptions.into_iter().any(|it| selects(&it.hosts, &it.path_prefixes, request));
    if is_exempt || !selects(&invariant.scope.hosts, &invariant.scope.path_prefixes, request) {
        return FoundAnswer::Met;
    }
    let traced = trace(state, request);
    let Some(edge) = traced.edge.as_ref().and_then(|it| state.get(&it.edge.key)) else { return FoundAnswer::Met };
    let edge: &HttpsEdge = edge.spec_as().unwrap();
    let mut answer = FoundAnswer::Met;
    let mut add = |found: FoundAnswer| answer = answer.max(found);
    let tls = edge.tls_termination.as_ref().map(|tls| serde_json::to_value(tls.as_ref()).unwrap());
    let tls = tls.unwrap_or_else(|| json!({"enabled": true, "terminate_at": "edge"}));
    let terminates = tls["enabled"] == json!(true) && tls["terminate_at"] == json!("edge");
    if invariant.min_tls_version.is_some() {
        add(match tls["min_version"].as_str() {
            _ if request.port == 80 => FoundAnswer::Unmet,
            _ if !terminates => FoundAnswer::Unknown,
            Some("1.0" | "1.1") => FoundAnswer::Unmet,
            _ => FoundAnswer::Met,
        });
    }
    let route = traced.route().map(|it| state.get(&it.route.key).unwrap().spec_as::<HttpsEdgeRoute>().unwrap());
    let backend = route.and_then(|route| route.backend.as_ref()).filter(|backend| backend.enabled);
    let (Some(route), Some(backend)) = (route, backend) else { return answer };
    let restriction = route.ip_restriction.as_ref().map(|it| it.ip_policy_ids.clone());
    let mut policies = route.policies.iter().flat_map(|it| &it.inbound);
    let denial = policies.find(|policy| policy.actions.iter().any(|action| action.r#type == "deny"));
    if denial.is_some_and(|policy| policy.expressions.is_empty()) {
        return answer;
    }
    let is_unknown = denial.is_some() || restriction.as_ref().is_some_and(Vec::is_empty);
    let unmet = if is_unknown { FoundAnswer::Unknown } else { FoundAnswer::Unmet };
    let login = route.oidc.as_ref().filter(|it| it.enabled);
    let is_checked = login.is_some_and(|it| request.method != "OPTIONS" || !it.options_passthrough);
    let of_module = |name: &String| match name.as_str() {
        "oidc" if is_checked && !terminates => FoundAnswer::Unknown,
        "oidc" if is_checked => FoundAnswer::Met,
        "mutual_tls" if edge.mutual_tls.is_some() && (!terminates || request.port == 80) => FoundAnswer::Unknown,
        "mutual_tls" if edge.mutual_tls.is_some() => FoundAnswer::Met,
        "tls_termination" if edge.tls_termination.as_ref().is_some_and(|it| it.enabled) => FoundAnswer::Met,
        _ => unmet,
    };
    if let Some(best) = invariant.requires_any.iter().map(of_module).min() {
        add(best);
    }
    let only = &invariant.only_from;
    let is_within = restriction.is_some_and(|ids| !ids.is_empty() && ids.iter().all(|id| only.contains(id)));
    if !only.is_empty() && !is_within {
        add(unmet);
    }
    if !invariant.backends.is_empty() && !invariant.backends.contains(&backend.backend_id) {
        add(unmet);
    }
    answer
}

/// Whether the counterexample of a breach is one. A doubt can be beside what is certainly wrong by another requirement.
fn is_real(state: &Snapshot, invariant: &Invariant, breach: &Breach<'_>) -> bool {
    let found = brute_force(state, invariant, &breach.request);
    found >= if breach.flaw.is_certain { FoundAnswer::Unmet } else { FoundAnswer::Unknown }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn nothing_is_proven_that_a_request_breaks((edges, invariant) in (estate(), invariant())) {
        let state = state(&edges, &invariant);
        let proofs = prove(&state, now());
        let proof = &proofs[0];
        for breach in &proof.breaches {
            prop_assert!(is_real(&state, &invariant, breach), "{breach:?}");
        }
        let worst = requests().iter().map(|request| brute_force(&state, &invariant, request)).max();
        let least = match worst.unwrap() {
            FoundAnswer::Met => ProofAnswer::Proven,
            FoundAnswer::Unknown => ProofAnswer::Depends,
            FoundAnswer::Unmet => ProofAnswer::Refuted,
        };
        prop_assert!(proof.answer() >= least, "{:?} although {least:?}", proof.answer());
    }

    #[test]
    fn a_change_that_breaks_a_request_is_found((before, after, invariant) in (estate(), estate(), invariant())) {
        // Half of the edges stay as they are.
        let after: Vec<_> = before.iter().take(before.len() / 2).cloned().chain(after).collect();
        let (before, after) = (state(&before, &invariant), state(&after, &invariant));
        let found = breaches(&before, &after, &changed(&before, &after), now());
        for breach in &found {
            prop_assert!(is_real(&after, &invariant, breach), "{breach:?}");
        }
        if !found.iter().any(is_refused) {
            for request in requests() {
                let then = brute_force(&before, &invariant, &request);
                let now = brute_force(&after, &invariant, &request);
                prop_assert!(now < FoundAnswer::Unmet || then >= now, "{request}: {then:?}, then {now:?}");
            }
        }
    }
}
