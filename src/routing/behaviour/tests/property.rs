//! The law of differences, on generated pairs of states and all of a set of requests: a request is treated differently if and
//! only if it is in a listed class, and the fates of that class are those that traces show.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::model::{Key, Secrets, Snapshot};
use crate::routing::behaviour::{ClassScope, Fate, ModuleLikeness, each_class, each_difference};
use crate::routing::tests::{GeneratedEstate, changed, estates, spec_of, specs_of, state_of};
use crate::routing::{PipelineStep, Trace, TracedRequest, trace};

const HOSTPORTS: [&str; 9] = [
    "a.example.com:443",
    "b.example.com:443",
    "*.example.com:443",
    "*.example.com:8443",
    "*.eu.example.com:443",
    "x.eu.example.com:443",
    "x.eu.example.com:8443",
    "[2001:DB8::1]:443",
    "a.example.com:80",
];
/// A match starts with `=` if it is exact.
const MATCHES: [&str; 17] = [
    "/",
    "/a",
    "/a/",
    "=/a",
    "=/a/b",
    "=/",
    "a.example.com",
    "*.example.com/a",
    "*.eu.example.com:8443/",
    "=b.example.com/a",
    "x.eu.example.com/a",
    "*u.example.com/b",
    "a.example.com../a",
    "[a.example.com]/a",
    "[2001:db8:0::1]./a",
    "=/a\0",
    "\0.eu.example.com/",
];
const HOSTS: [&str; 9] = [
    "a.example.com",
    "b.example.com",
    "z.example.com",
    "eu.example.com",
    "x.eu.example.com",
    "y.eu.example.com",
    "neu.example.com",
    "example.com",
    "[2001:db8::1]",
];
const PATHS: [&str; 7] = ["/", "/a", "/ab", "/a/", "/a/b", "/a/bc", "/b"];

fn estate() -> impl Strategy<Value = GeneratedEstate> {
    let edges = vec![
        json!({}),
        json!({"tls_termination": {}}),
        json!({"tls_termination": {"min_version": "1.3"}}),
        json!({"tls_termination": {"terminate_at": "upstream"}}),
        json!({"tls_termination": {"enabled": false}, "mutual_tls": {"certificate_authority_ids": ["ca_1"]}}),
        json!({"mutual_tls": {"certificate_authority_ids": ["ca_1"]}}),
    ];
    let modules = vec![
        json!({}),
        json!({}),
        json!({"ip_restriction": {"ip_policy_ids": ["ipp_1"]}}),
        json!({"ip_restriction": {"ip_policy_ids": ["ipp_2"]}}),
        json!({"compression": {}, "backend": {"backend_id": "bkd_2"}}),
        json!({"backend": {"enabled": false, "backend_id": "bkd_1"}}),
        json!({"webhook_verification": {"provider": "github", "secret": "s"}}),
        json!({"webhook_verification": {"provider": "gitlab", "secret": "s"}}),
    ];
    estates(&HOSTPORTS, edges, &MATCHES, modules)
}

fn state(estate: &GeneratedEstate) -> Snapshot {
    state_of(specs_of(estate))
}

/// The state of an estate in which each route has its own secret.
fn state_with_own_secrets(estate: &GeneratedEstate) -> Snapshot {
    state_of(specs_of(estate).into_iter().map(|(key, spec)| {
        let mut fields = Value::Object(spec.to_json(Secrets::Revealed).unwrap());
        if let Some(secret) = fields.pointer_mut("/webhook_verification/secret") {
            *secret = format!("{key:?}").into();
        }
        let spec = spec_of(key.kind, &fields);
        (key, spec)
    }))
}

/// The classes that are treated differently, with their fates and what comparing the modules of these tells.
fn told(before: &Snapshot, after: &Snapshot) -> Vec<(String, String, Vec<ModuleLikeness>)> {
    let mut told = Vec::new();
    each_difference(before, after, ClassScope::Everything, |class, then, now| {
        let (had, has) = (then.modules(), now.modules());
        let pairs = had.iter().flat_map(|one| has.iter().map(move |other| one.compare(other)));
        told.push((class.pattern(), format!("{:?} {:?}", keys(&then), keys(&now)), pairs.collect()));
    });
    told
}

fn requests() -> Vec<TracedRequest> {
    let hosts = HOSTS.iter().flat_map(|host| [443_u16, 8443, 80].map(|port| format!("{host}:{port}")));
    let urls = hosts.flat_map(|host| PATHS.map(|path| format!("https://{host}{path}")));
    urls.map(|url| TracedRequest::new("GET", &url).unwrap()).collect()
}

/// The keys of a fate.
fn keys<'s>(fate: &Fate<'s>) -> (Option<&'s Key>, Option<&'s Key>) {
    (fate.edge.map(|it| &it.key), fate.route.map(|it| &it.key))
}

/// The treatment of a request in a trace, without the names of the edge and route.
fn treatment(traced: &Trace) -> (bool, Option<bool>, Vec<PipelineStep>) {
    let passes_through = traced.edge.as_ref().filter(|_| traced.route().is_some()).map(|it| it.passes_through);
    (traced.edge.is_some(), passes_through, traced.modules.clone())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn a_request_is_treated_differently_if_and_only_if_its_class_is_listed((before, after) in (estate(), estate())) {
        // Half of the edges stay as they are.
        let after: Vec<_> = before.iter().take(before.len() / 2).cloned().chain(after).collect();
        let (before, after) = (state(&before), state(&after));
        let (requests, changed) = (requests(), changed(&before, &after));
        for scope in [ClassScope::Everything, ClassScope::Changed(&changed)] {
            let mut listed = vec![None; requests.len()];
            let mut faults = Vec::new();
            each_difference(&before, &after, scope, |class, then, now| {
                let example = class.example().unwrap();
                for (state, told) in [(&before, &then), (&after, &now)] {
                    if !class.contains(&example) || keys(&trace(state, &example).fate(state)) != keys(told) {
                        faults.push(format!("{example} is no example of {class:?}"));
                    }
                }
                for (request, place) in requests.iter().zip(&mut listed).filter(|(it, _)| class.contains(it)) {
                    if place.replace((keys(&then), keys(&now))).is_some() {
                        faults.push(format!("{request} is in two classes"));
                    }
                }
            });
            prop_assert!(faults.is_empty(), "{faults:?}");
            for (request, listed) in requests.iter().zip(listed) {
                let (was, is) = (trace(&before, request), trace(&after, request));
                let (then, now) = (was.fate(&before), is.fate(&after));
                let differs = !then.is_like_at(&now, request.port);
                prop_assert_eq!(listed, differs.then(|| (keys(&then), keys(&now))), "{}", request);
                prop_assert!(differs || treatment(&was) == treatment(&is), "{}: {:?} and {:?}", request, was, is);
            }
        }
    }

    #[test]
    fn a_comparison_does_not_tell_whether_two_routes_have_the_same_secret((before, after) in (estate(), estate())) {
        let with_one_secret = told(&state(&before), &state(&after));
        prop_assert_eq!(with_one_secret, told(&state_with_own_secrets(&before), &state_with_own_secrets(&after)));
    }

    #[test]
    fn each_served_request_is_in_one_class_with_its_fate(edges in estate()) {
        let state = state(&edges);
        let requests = requests();
        let mut found = vec![Vec::new(); requests.len()];
        each_class(&state, |class, fate| {
            for (request, place) in requests.iter().zip(&mut found).filter(|(it, _)| class.contains(it)) {
                place.push((request.to_string(), keys(&fate)));
            }
        });
        for (request, found) in requests.iter().zip(found) {
            let fate = trace(&state, request).fate(&state);
            let expected: Vec<_> = fate.edge.map(|_| (request.to_string(), keys(&fate))).into_iter().collect();
            prop_assert_eq!(found, expected);
        }
    }
}
