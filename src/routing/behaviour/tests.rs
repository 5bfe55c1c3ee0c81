//! What classes are, by example: estates in a few lines, and the requests that are treated differently.

mod property;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{ClassScope, each_class, each_difference, url_of};
use crate::model::{Key, Snapshot};
use crate::routing::tests::{edge_key, route, route_key, state_of_json, with};
use crate::routing::{TracedRequest, trace};

/// An edge of an example: its name, hostports and routes. Each route is a match, a backend and modules.
type ExampleEdge<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, &'a str, Value)]);

/// A match starts with `=` if it is exact.
fn state(edges: &[ExampleEdge<'_>]) -> Snapshot {
    let mut resources = Vec::new();
    for (edge, hostports, routes) in edges {
        resources.push((edge_key(edge), json!({"hostports": hostports})));
        for (matched, backend, modules) in *routes {
            let modules = with(json!({"backend": {"backend_id": backend}}), modules.clone());
            resources.push((route_key(edge, &format!("{edge} {matched}")), route(matched, modules)));
        }
    }
    state_of_json(resources)
}

/// The classes of a state with their backends, and an example that a trace confirms.
fn classes(state: &Snapshot) -> Vec<String> {
    let mut told = Vec::new();
    each_class(state, |class, fate| {
        let request = class.example().unwrap_or_default();
        assert!(class.contains(&request), "{request}");
        let traced = trace(state, &request);
        assert_eq!(traced.edge.as_ref().map(|it| &it.edge.key), fate.edge.map(|it| &it.key), "{request}");
        assert_eq!(traced.route().map(|it| &it.route.key), fate.route.map(|it| &it.key), "{request}");
        let hosts: Vec<String> = class.hosts().map(ToString::to_string).collect();
        told.push(format!("{}{} → {}", hosts.join(","), class.path, fate.backend().unwrap_or("404")));
    });
    told
}

/// The changed classes with their backends before and after, by an example of each.
fn differences(before: &[ExampleEdge<'_>], after: &[ExampleEdge<'_>], changed: &[&str]) -> Vec<String> {
    let (before, after) = (state(before), state(after));
    let keys = |state: &Snapshot| state.iter().map(|entry| entry.key.clone()).collect::<Vec<_>>();
    let all = keys(&before).into_iter().chain(keys(&after));
    let changed: BTreeSet<Key> = all.filter(|key| changed.contains(&key.id.as_str())).collect();
    let told = |scope: ClassScope<'_>| {
        let mut told = Vec::new();
        each_difference(&before, &after, scope, |class, then, now| {
            let example = class.example().map_or_else(|| class.pattern(), |request| url_of(&request));
            let backend = |fate: &super::Fate<'_>| match (fate.edge, fate.route) {
                (None, _) => "none".to_owned(),
                (_, None) => "404".to_owned(),
                _ => fate.backend().unwrap_or("refused").to_owned(),
            };
            told.push(format!("{example}: {} → {}", backend(&then), backend(&now)));
        });
        told.sort_unstable();
        told
    };
    let found = told(ClassScope::Changed(&changed));
    assert_eq!(found, told(ClassScope::Everything), "what is not looked at is as before");
    found
}

#[test]
fn hosts_and_paths_split_into_classes_and_each_has_an_example() {
    let none = || Value::Null;
    let state = state(&[
        ("a", &["*.example.com:443"], &[("/", "all", none()), ("/api/", "api", none()), ("=/api/", "root", none())]),
        ("b", &["shop.example.com:443", "*.eu.example.com:443"], &[("shop.example.com/x", "shop", none())]),
    ]);
    let expected = [
        "https://*.example.com/* → all",
        "https://*.example.com/api/* → api",
        "https://*.example.com/api/ → root",
        "https://*.eu.example.com/* → 404",
        "https://shop.example.com/* → 404",
        "https://shop.example.com/x* → shop",
    ];
    assert_eq!(classes(&state), expected);
}

#[test]
fn what_no_url_names_is_a_difference_by_its_pattern() {
    let hosts: &[&str] = &["a.example.com:443"];
    let found = |matched: &str| {
        let (before, after) = ([(matched, "one", Value::Null)], [(matched, "other", Value::Null)]);
        differences(&[("a", hosts, &before)], &[("a", hosts, &after)], &[&format!("a {matched}")])
    };
    for path in ["/<", "/a>b", "/`", "/a b"] {
        assert_eq!(found(path), [format!("https://a.example.com{path}*: one → other")]);
        assert_eq!(found(&format!("={path}")), [format!("https://a.example.com{path}: one → other")]);
    }
    for path in ["/a?b", "=/a?b", "/a#b"] {
        assert!(found(path).is_empty(), "no path of a request has a query or fragment: {path}");
    }
}

#[test]
fn a_wildcard_of_a_long_name_has_an_example() {
    let (most, label) = ("l".repeat(63), "l".repeat(60));
    let name = format!("a.{most}.{most}.{label}.{label}");
    let (hostport, matched) = (format!("*.{name}:443"), format!("*{most}.example.com/x"));
    let hosts: &[&str] = &[&hostport, "*.example.com:443"];
    let routes = |one: &'static str, other: &'static str| [("/", one, Value::Null), (&*matched, other, Value::Null)];
    let (before, after) = (routes("a", "b"), routes("c", "d"));
    let changed = format!("a {matched}");
    let found = differences(&[("a", hosts, &before)], &[("a", hosts, &after)], &["a /", &changed]);
    let expected = [
        format!("https://x.{name}/: a → c"),
        format!("https://x.{most}.example.com/: a → c"),
        format!("https://x.{most}.example.com/x: b → d"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_match_with_a_control_character_hides_nothing() {
    let hosts: &[&str] = &["*.example.com:443"];
    let open =
        [("/admin", "open", Value::Null), ("=/admin\0", "login", Value::Null), ("\0.example.com/", "x", Value::Null)];
    let found = differences(&[("a", hosts, &[])], &[("a", hosts, &open)], &["a /admin"]);
    assert_eq!(found, ["https://any.example.com/admin: 404 → open"]);
}

#[test]
fn a_deleted_route_leaves_its_requests_to_a_shorter_prefix() {
    let (all, admin) = (("/", "all", Value::Null), ("/admin/", "admin", Value::Null));
    let hosts: &[&str] = &["a.example.com:443"];
    let (before, after) = ([all.clone(), admin.clone()], [all]);
    let found = differences(&[("a", hosts, &before)], &[("a", hosts, &after)], &["a /admin/"]);
    assert_eq!(found, ["https://a.example.com/admin/: admin → all"]);
    let found = differences(&[("a", hosts, &[admin])], &[("a", hosts, &[])], &["a /admin/"]);
    assert_eq!(found, ["https://a.example.com/admin/: admin → 404"]);
}

#[test]
fn another_name_of_a_route_changes_nothing() {
    let hosts: &[&str] = &["a.example.com:443"];
    let (one, other) = ([("a.example.com/x", "b", Value::Null)], [("/x", "b", Value::Null)]);
    let found = differences(&[("a", hosts, &one)], &[("a", hosts, &other)], &["a a.example.com/x", "a /x"]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn an_edge_with_a_closer_hostport_takes_requests_from_a_wildcard() {
    let wide = ("wide", &["*.example.com:443"] as &[&str], &[("/", "wide", Value::Null)] as &[(&str, &str, Value)]);
    let shop = ("shop", &["shop.example.com:443"] as &[&str], &[("/", "shop", Value::Null)] as &[(&str, &str, Value)]);
    let other = ("other", &["x.example.com:443"] as &[&str], &[] as &[(&str, &str, Value)]);
    let before = [wide, other];
    let found = differences(&before, &[wide, other, shop], &["shop", "shop /"]);
    assert_eq!(found, ["https://shop.example.com/: wide → shop"]);
    let found = differences(&[wide, shop, other], &[shop, other], &["wide", "wide /"]);
    assert_eq!(found, ["https://any.example.com/: wide → none"]);
}

#[test]
fn of_two_edges_with_a_hostport_the_lower_id_has_the_requests() {
    let hosts: &[&str] = &["a.example.com:443"];
    let (a, b) = ([("/", "a", Value::Null)], [("/", "b", Value::Null)]);
    let found = differences(&[("a", hosts, &a), ("b", hosts, &b)], &[("b", hosts, &b)], &["a", "a /"]);
    assert_eq!(found, ["https://a.example.com/: a → b"]);
    let found = differences(&[("a", hosts, &a)], &[("a", hosts, &a), ("b", hosts, &b)], &["b", "b /"]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_match_with_a_host_splits_the_hosts_of_a_wildcard() {
    let hosts: &[&str] = &["*.example.com:443", "*.example.com:8443"];
    let all = ("/", "all", Value::Null);
    let before = [all.clone(), ("*.eu.example.com:8443/x", "eu", Value::Null)];
    let after = [all, ("*.eu.example.com:8443/x", "new", Value::Null)];
    let found = differences(&[("a", hosts, &before)], &[("a", hosts, &after)], &["a *.eu.example.com:8443/x"]);
    assert_eq!(found, ["https://any.eu.example.com:8443/x: eu → new"]);
}

#[test]
fn requests_without_a_route_differ_by_the_tls_of_their_edge() {
    let of = |version: &str| {
        let tls = json!({"min_version": version});
        state_of_json([(edge_key("a"), json!({"hostports": ["a.example.com:443"], "tls_termination": tls}))])
    };
    let (before, after, changed) = (of("1.3"), of("1.0"), BTreeSet::from([edge_key("a")]));
    for scope in [ClassScope::Everything, ClassScope::Changed(&changed)] {
        let mut found = Vec::new();
        each_difference(&before, &after, scope, |class, then, now| {
            found.push((class.pattern(), then.route.is_some() || now.route.is_some()));
        });
        assert_eq!(found, [("https://a.example.com/*".to_owned(), false)]);
    }
}

#[test]
fn an_edge_that_passes_tls_through_has_one_class_of_paths() {
    let edge = json!({"hostports": ["a.example.com:443"], "tls_termination": {"terminate_at": "upstream"}});
    let to = |backend: &str| json!({"backend": {"backend_id": backend}});
    let state = state_of_json([
        (edge_key("a"), edge),
        (route_key("a", "all"), route("/", to("all"))),
        (route_key("a", "unread"), route("/x", to("unread"))),
    ]);
    assert_eq!(classes(&state), ["https://a.example.com/* → all"]);
}

#[test]
fn a_class_has_the_requests_that_its_example_stands_for() {
    let state = state(&[("a", &["*.example.com:443", "b.example.com:443"], &[("/a", "a", Value::Null)])]);
    let request = |url: &str| TracedRequest::new("GET", url).unwrap_or_default();
    let mut backends = Vec::new();
    each_class(&state, |class, fate| {
        if class.contains(&request("https://b.example.com/ab")) {
            backends.push(fate.backend().map(str::to_owned));
        }
    });
    assert_eq!(backends, [Some("a".to_owned())]);
}

#[test]
fn a_host_with_a_route_for_every_path_is_not_split_by_the_paths_of_others() {
    let hosts: Vec<String> = (0..20).map(|n| format!("t{n}.example.com/")).collect();
    let paths: Vec<String> = (0..20).map(|n| format!("/p{n}/")).collect();
    let routes: Vec<_> = hosts.iter().chain(&paths).map(|matched| (matched.as_str(), "b", Value::Null)).collect();
    let classes = classes(&state(&[("a", &["*.example.com:443"], &routes)]));
    // One for each host, one for each path of the others, and one for their other paths.
    assert_eq!(classes.len(), 41);
    assert_eq!(classes.iter().filter(|class| class.contains("/p7/")).count(), 1);
    let before = [("t.example.com/x", "x", Value::Null), ("/p/", "p", Value::Null)];
    let after = [&before[..], &[("t.example.com", "all", Value::Null)]].concat();
    let hosts: &[&str] = &["*.example.com:443"];
    let found = differences(&[("a", hosts, &before)], &[("a", hosts, &after)], &["a t.example.com"]);
    assert_eq!(found, ["https://t.example.com/: 404 → all", "https://t.example.com/p/: p → all"]);
}

#[test]
fn there_are_about_as_many_classes_as_hosts_and_paths() {
    let hosts: Vec<String> = (0..50).map(|n| format!("h{n}.example.com:443")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let matches = |own: &str, of_all: fn(usize) -> String| {
        let of_hosts = (0..50).map(|n| format!("h{n}.example.com{own}"));
        of_hosts.chain((0..50).map(of_all)).collect::<Vec<String>>()
    };
    let count = |matches: &[String]| {
        let routes: Vec<_> = matches.iter().map(|matched| (matched.as_str(), "b", Value::Null)).collect();
        classes(&state(&[("a", &hosts, &routes)])).len()
    };
    // Each path of all hosts, and the own one of each host and what else it has.
    assert_eq!(count(&matches("/admin/", |n| format!("/p{n}/"))), 50 + 50 * 2);
    // The own prefix of each host takes what the paths of all hosts would.
    assert_eq!(count(&matches("/p", |n| format!("/p{n}/"))), 50 * 2);
    // A request below each path of all hosts has another way on each host.
    assert_eq!(count(&matches("/p7/x", |n| format!("/p{n}/"))), 49 + 50 * 3);
}

#[test]
fn an_edge_with_too_many_classes_is_not_visited() {
    let hosts: &[&str] = &["*.example.com:443"];
    let paths: Vec<String> = (0..200).map(|n| format!("/a{n}")).collect();
    let own: Vec<String> = (0..200).map(|n| format!("h{n}.example.com/a")).collect();
    let route = |matched: &'_ String| (matched.clone(), "b", Value::Null);
    let (then, now): (Vec<_>, Vec<_>) =
        (paths.iter().map(route).collect(), paths.iter().chain(&own).map(route).collect());
    let state_of = |routes: &[(String, &'static str, Value)]| {
        let routes: Vec<_> = routes.iter().map(|it| (it.0.as_str(), it.1, it.2.clone())).collect();
        state(&[("a", hosts, &routes)])
    };
    let (before, after) = (state_of(&then), state_of(&now));
    let mut visited = 0;
    let unvisited = each_difference(&before, &after, ClassScope::Everything, |_, _, _| visited += 1);
    let told: Vec<String> = unvisited.iter().map(ToString::to_string).collect();
    assert_eq!((visited, told), (0, vec!["too many different matches (201 hosts × 600 matches)".to_owned()]));
    let mut classes = 0;
    each_class(&after, |_, _| classes += 1);
    assert_eq!(classes, 1 + 200 + 200 * 2, "each of the two states has few");
}
