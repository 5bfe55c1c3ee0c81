//! The law of the table, on generated states: it finds the edge and route that a trace finds by a look at all of them.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};

use super::{EdgeTable, RoutedState, RoutedTo};
use crate::model::traffic::host_name;
use crate::model::{Claim, Desired, Kind, Snapshot};
use crate::routing::tests::{edge_key, route, route_key, spec_of, state_of_json};
use crate::routing::{TracedRequest, trace};

const HOSTPORTS: [&str; 12] = [
    "a.example.com:443",
    "A.Example.com:443",
    "a.example.com:8443",
    "*.example.com:443",
    "*.Example.com:443",
    "*.example.com:8443",
    "*.eu.example.com:443",
    "x.eu.example.com:443",
    "[2001:DB8::1]:443",
    "[2001:db8:0::1]:443",
    "192.0.2.1:443",
    "no hostport",
];
const MATCHES: [&str; 13] = [
    "/",
    "/a",
    "/a/b",
    "a.example.com/a",
    "*.example.com",
    "*.eu.example.com:8443/",
    "[2001:DB8::1]:443/a",
    "A.example.com./a/b",
    "a.example.com../a",
    "*.example.com../",
    "[a.example.com]/a",
    "[2001:db8::1]./a",
    "/a\0",
];
const HOSTS: [&str; 9] = [
    "a.example.com",
    "b.example.com",
    "x.eu.example.com",
    "y.eu.example.com",
    "eu.example.com",
    "example.com",
    "[2001:db8:0:0::1]",
    "192.0.2.1",
    "other.test",
];

/// The hostports of an edge, and the matches of its routes.
type GeneratedEdge = (Vec<&'static str>, Vec<&'static str>);

fn edges() -> impl Strategy<Value = Vec<GeneratedEdge>> {
    vec((vec(select(HOSTPORTS.to_vec()), 0..4), vec(select(MATCHES.to_vec()), 0..4)), 0..5)
}

fn state(edges: &[GeneratedEdge]) -> Snapshot {
    let mut resources = Vec::new();
    for (number, (hostports, matches)) in edges.iter().enumerate() {
        // The order of creation is not that of the IDs.
        let id = format!("edghts_{}", number * 7 % 5);
        resources.push((edge_key(&id), json!({"hostports": hostports})));
        for (place, text) in matches.iter().enumerate() {
            resources.push((route_key(&id, &format!("edghtsrt_{place}")), route(text, Value::Null)));
        }
    }
    state_of_json(resources)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn the_table_finds_what_a_trace_finds(edges in edges()) {
        let snapshot = state(&edges);
        let table = EdgeTable::of_store(&snapshot);
        for address in HOSTS.iter().flat_map(|host| [443, 8443].map(|port| format!("https://{host}:{port}"))) {
            for path in ["/", "/a", "/a/b", "/ab", "/b"] {
                let request = TracedRequest::new("GET", &format!("{address}{path}")).unwrap();
                let traced = trace(&snapshot, &request);
                let host = host_name(&request.host);
                let to = table.route(&host, request.port, path);
                let edge = traced.edge.as_ref();
                let found = [edge.map(|it| &it.edge.key), traced.route().map(|it| &it.route.key)];
                prop_assert_eq!(table.keys(to), found, "{}", request);
                prop_assert_eq!(to == RoutedTo::Nowhere, edge.is_none());
                let hostport = table.hostport(&host, request.port);
                prop_assert_eq!(hostport, edge.map(|it| it.hostport.as_str()), "{}", request);
            }
        }
    }
}

#[test]
fn a_wildcard_serves_what_no_literal_host_and_no_longer_wildcard_does() {
    let snapshot = state(&[(vec!["*.example.com:443"], vec!["/"]), (vec!["a.example.com:443"], vec!["/a"])]);
    let table = EdgeTable::of_store(&snapshot);
    let places = ["a.example.com", "b.example.com", "example.com"].map(|host| table.route(host, 443, "/"));
    assert_eq!(places, [RoutedTo::Edge(1), RoutedTo::Route(0, 0), RoutedTo::Nowhere]);
}

#[test]
fn what_a_source_declares_takes_the_place_of_what_it_has() {
    let key = edge_key("edghts_0");
    let stored = state(&[(vec!["a.example.com:443"], vec![])]);
    let claim = Arc::new(Claim::new("shop", "shop"));
    let spec = spec_of(Kind::HttpsEdge, &json!({"hostports": ["b.example.com:443"]}));
    let wanted = Desired::new(key.clone(), spec, claim);
    let desired = BTreeMap::from([(key.clone(), wanted)]);
    let state = RoutedState { desired: Some(&desired), ..RoutedState::stored(&stored, "shop") };
    let table = EdgeTable::new(state);
    assert!(table.hostport("a.example.com", 443).is_none() && table.hostport("b.example.com", 443).is_some());
    assert_eq!(state.name(&key), "shop");
}
