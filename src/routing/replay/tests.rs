//! Tests of what a worker finds.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::tally::{LinePlace, ReplayTally};
use super::worker::{LoggedRequest, ReplayWorker, ShownDetails};
use crate::model::traffic::RequestVerdict::{Blocked, Depends, Forwarded};
use crate::model::{Id, Key, Kind, Snapshot};
use crate::routing::edge_table::{EdgeTable, RoutedTo};
use crate::routing::tests::{edge_key, route, route_key, state_of_json, with};

/// A state with edges of hostports and routes.
fn state(edges: &[(&[&str], Vec<Value>)]) -> Snapshot {
    restricted_state(edges, &[])
}

/// A state with edges, and a restriction of all endpoints for each IP policy.
fn restricted_state(edges: &[(&[&str], Vec<Value>)], policies: &[&str]) -> Snapshot {
    let mut resources = Vec::new();
    for policy in policies {
        let spec = json!({"type": "endpoints", "enforced": true, "ip_policy_ids": [policy]});
        resources.push((Key::new(Kind::IpRestriction, Id::new(&format!("ipx_{policy}"))), spec));
    }
    for (number, (hostports, routes)) in edges.iter().enumerate() {
        let id = format!("edghts_{number}");
        resources.push((edge_key(&id), json!({"hostports": hostports})));
        for (at, route) in routes.iter().enumerate() {
            resources.push((route_key(&id, &format!("edghtsrt_{number}_{at}")), route.clone()));
        }
    }
    state_of_json(resources)
}

fn request<'l>(method: &'l str, host: &'l str, path: &'l str, client: &'l str, agent: &'l str) -> LoggedRequest<'l> {
    LoggedRequest {
        method: Cow::Borrowed(method),
        host: Cow::Borrowed(host),
        port: 443,
        path: Cow::Borrowed(path),
        client: Cow::Borrowed(client.as_bytes()),
        user_agent: Some(Cow::Borrowed(agent)),
        bytes: 10,
    }
}

fn replayed(before: &Snapshot, after: Option<&Snapshot>, requests: &[LoggedRequest<'_>]) -> ReplayTally {
    let (before, after) = (EdgeTable::of_store(before), after.map(EdgeTable::of_store));
    let shown = ShownDetails { urls: true, clients: false };
    // Every other request is that of another worker.
    let counted = |part: usize| {
        let mut worker = ReplayWorker::new(&before, after.as_ref(), shown);
        for (request, line) in requests.iter().zip(1_u64..).skip(part).step_by(2) {
            worker.count(request, LinePlace { file: 0, line });
        }
        worker.finish()
    };
    counted(0).merged(counted(1))
}

#[test]
fn requests_are_classes_of_what_changes_for_them() {
    let oidc = json!({"oidc": {"enabled": true, "issuer": "https://id.example.com", "client_id": "a", "client_secret": "s",
        "options_passthrough": true}});
    let before = state(&[(
        &["a.example.com:443"],
        vec![route("/", json!({})), route("/admin", oidc), route("/old", json!({}))],
    )]);
    let after = state(&[(&["a.example.com:443"], vec![route("/", json!({})), route("/admin", json!({}))])]);
    let host = "a.example.com";
    let tally = replayed(
        &before,
        Some(&after),
        &[
            request("GET", host, "/", "192.0.2.1", "a"),
            request("GET", host, "/admin/1", "192.0.2.1", "a"),
            request("GET", host, "/admin/1", "192.0.2.2", "a"),
            request("GET", host, "/admin/2", "192.0.2.2", "b"),
            request("GET", host, "/old/x", "192.0.2.3", "a"),
            request("GET", "elsewhere.example", "/", "192.0.2.3", "a"),
            request("OPTIONS", host, "/admin/2", "192.0.2.3", "a"),
        ],
    );
    assert_eq!((tally.all.requests, tally.all.bytes, tally.all.clients.count()), (7, 70, 3));
    assert_eq!((tally.differing.requests, tally.differing.clients.count()), (5, 3));
    let classes = tally.classes();
    let told: Vec<_> = classes
        .iter()
        .map(|class| (class.before.outcome.verdict(), class.after.outcome.verdict(), class.opens, class.count.requests))
        .collect();
    assert_eq!(
        told,
        [
            (Depends, Forwarded, true, 3),
            // A preflight passed without a login, and the module is gone, too.
            (Forwarded, Forwarded, true, 1),
            (Forwarded, Forwarded, false, 1),
        ]
    );
    let [admin, _, old] = classes.as_slice() else { unreachable!("{classes:?}") };
    assert_eq!((admin.lost.as_slice(), admin.gained.len(), admin.changed.len()), (["oidc"].as_slice(), 0, 0));
    assert_eq!((admin.before.outcome.decided_by(), admin.after.outcome.decided_by()), (vec!["oidc"], vec![]));
    assert_eq!(admin.before.outcome.backend_id.as_deref(), Some("bkd_1"));
    assert_ne!(old.before.to, old.after.to);
    let examples: Vec<_> =
        admin.examples.iter().map(|it| (it.place.line, it.url.clone().unwrap_or_default())).collect();
    let url = |path: &str| format!("GET https://a.example.com{path}");
    assert_eq!(examples, [(2, url("/admin/1")), (4, url("/admin/2"))]);
    assert!(admin.examples.iter().all(|example| example.client.is_none()));
}

#[test]
fn an_agent_matters_where_a_module_looks_at_it() {
    let filter = |deny: &str| json!({"user_agent_filter": {"enabled": true, "deny": [deny]}});
    let before = state(&[(&["a.example.com:443"], vec![route("/", filter("^curl/"))])]);
    let after = state(&[(&["a.example.com:443"], vec![route("/", filter("^(curl|wget)/"))])]);
    let agents = ["curl/8", "wget/1", "wget/2", "firefox", "curl/9"];
    let requests: Vec<_> =
        agents.iter().map(|agent| request("GET", "a.example.com", "/", "192.0.2.1", agent)).collect();
    let tally = replayed(&before, Some(&after), &requests);
    let classes = tally.classes();
    let told: Vec<_> = classes.iter().map(|class| (&class.after.outcome, class.count.requests)).collect();
    let told: Vec<_> = told.into_iter().map(|(is, count)| (is.verdict(), is.decided_by(), count)).collect();
    assert_eq!(told, [(Blocked, vec!["user_agent_filter"], 2)]);
}

#[test]
fn a_log_does_not_tell_whether_there_was_a_token() {
    let tokens = json!({"tokens": [{"type": "jwt", "method": "header", "name": "Authorization", "prefix": "Bearer "}]});
    let jwt = json!({"jwt_validation": {"enabled": true, "http": tokens}});
    let before = state(&[(&["a.example.com:443"], vec![route("/", json!({}))])]);
    let after = state(&[(&["a.example.com:443"], vec![route("/", jwt)])]);
    let tally = replayed(&before, Some(&after), &[request("GET", "a.example.com", "/", "", "a")]);
    let verdicts: Vec<_> = tally.classes().into_iter().map(|class| class.after.outcome.clone()).collect();
    let verdicts: Vec<_> = verdicts.iter().map(|is| (is.verdict(), is.decided_by())).collect();
    assert_eq!(verdicts, [(Depends, vec!["jwt_validation"])]);
    // Nothing differs in the same state.
    assert_eq!(replayed(&after, Some(&after), &[request("GET", "a.example.com", "/", "", "a")]).differing.requests, 0);
}

#[test]
fn a_module_that_is_configured_differently_is_a_change_unless_it_lets_the_request_pass() {
    let changed = |method: &str, modules: [Value; 2]| {
        let [before, after] = modules.map(|modules| state(&[(&["a.example.com:443"], vec![route("/", modules)])]));
        let tally = replayed(&before, Some(&after), &[request(method, "a.example.com", "/", "", "a")]);
        tally.classes().into_iter().map(|class| class.changed.clone()).collect::<Vec<_>>()
    };
    let header = |value: &str| json!({"request_headers": {"add": {"X-Edge": value}}});
    assert_eq!(changed("GET", ["a", "b"].map(header)), [vec!["request_headers"]]);
    let oidc = |client: &str| {
        let login = json!({"issuer": "https://id.example.com", "client_id": client, "options_passthrough": true});
        json!({"oidc": login})
    };
    assert_eq!(changed("GET", ["a", "b"].map(oidc)), [vec!["oidc"]]);
    assert!(changed("OPTIONS", ["a", "b"].map(oidc)).is_empty());
    assert!(changed("GET", ["a", "a"].map(oidc)).is_empty());
}

#[test]
fn one_state_is_counted_by_route() {
    let one = state(&[(&["a.example.com:443"], vec![route("/a", json!({})), route("/b", json!({}))])]);
    let paths = ["/a", "/a/1", "/c", "/a"];
    let mut requests: Vec<_> =
        paths.iter().map(|path| request("GET", "a.example.com", path, "192.0.2.1", "a")).collect();
    requests.push(request("GET", "b.example.com", "/", "192.0.2.1", "a"));
    let tally = replayed(&one, None, &requests);
    let count = |to: RoutedTo| tally.counts.get(&to).map_or(0, |count| count.requests);
    let places = [RoutedTo::Route(0, 0), RoutedTo::Route(0, 1), RoutedTo::Edge(0), RoutedTo::Nowhere];
    assert_eq!(places.map(count), [3, 0, 1, 1]);
}

#[test]
fn a_login_that_replaces_another_one_may_admit_others() {
    let oidc =
        json!({"oidc": {"enabled": true, "issuer": "https://id.example.com", "client_id": "a", "client_secret": "s"}});
    let saml = json!({"saml": {"enabled": true, "authorized_groups": ["finance"]}});
    let before = state(&[(&["a.example.com:443"], vec![route("/", oidc)])]);
    let after = state(&[(&["a.example.com:443"], vec![route("/", saml)])]);
    let tally = replayed(&before, Some(&after), &[request("GET", "a.example.com", "/", "", "a")]);
    let told: Vec<_> =
        tally.classes().into_iter().map(|class| (class.opens, class.lost.clone(), class.gained.clone())).collect();
    assert_eq!(told, [(true, vec!["oidc"], vec!["saml"])]);
}

#[test]
fn mutual_tls_restricts_nothing_on_the_port_of_plain_http() {
    let of = |edge: Value| {
        let edge = with(json!({"hostports": ["a.example.com:443", "a.example.com:80"]}), edge);
        state_of_json([(edge_key("edghts_0"), edge), (route_key("edghts_0", "edghtsrt_0"), route("/", json!({})))])
    };
    let before = of(json!({"mutual_tls": {"certificate_authority_ids": ["ca_1"]}}));
    let requests = [80, 80, 443, 443].map(|port| {
        let request = request("GET", "a.example.com", "/", "192.0.2.1", "a");
        LoggedRequest { port, ..request }
    });
    let tally = replayed(&before, Some(&of(json!({}))), &requests);
    let told: Vec<_> = tally.classes().into_iter().map(|it| (it.opens, it.lost.clone(), it.count.requests)).collect();
    assert_eq!(told, [(true, vec!["mutual_tls"], 2), (false, vec!["mutual_tls"], 2)]);
}

#[test]
fn a_restriction_of_all_endpoints_is_on_the_way_of_every_request_that_a_route_takes() {
    let edges: [(&[&str], Vec<Value>); 1] = [(&["a.example.com:443"], vec![route("/a", json!({}))])];
    let requests = [("a.example.com", "/a"), ("a.example.com", "/b"), ("b.example.com", "/")];
    let requests = requests.map(|(host, path)| request("GET", host, path, "192.0.2.1", "a"));
    let told = |before: &[&str], after: &[&str]| {
        let [before, after] = [before, after].map(|policies| restricted_state(&edges, policies));
        let tally = replayed(&before, Some(&after), &requests);
        let told = tally.classes().into_iter().map(|class| {
            let modules = [&class.lost, &class.gained, &class.changed].map(|names| names.join(", "));
            (class.count.requests, class.opens, class.after.outcome.decided_by(), modules)
        });
        told.collect::<Vec<_>>()
    };
    let (of_endpoints, none) = ("ip_restriction endpoints", String::new);
    let name = || of_endpoints.to_owned();
    assert_eq!(told(&["ipp_1"], &[]), [(1, true, vec![], [name(), none(), none()])]);
    assert_eq!(told(&[], &["ipp_1"]), [(1, false, vec![of_endpoints], [none(), name(), none()])]);
    assert_eq!(told(&["ipp_1"], &["ipp_2"]), [(1, true, vec![of_endpoints], [none(), none(), name()])]);
    assert_eq!(told(&["ipp_1", "ipp_2"], &["ipp_2"]), [(1, true, vec![of_endpoints], [none(), none(), name()])]);
    assert!(told(&["ipp_1", "ipp_2"], &["ipp_2", "ipp_1"]).is_empty());
}
