//! Proofs and tests from files alone use as certain only what files tell: which ID, source, edge or modules a resource has is a guess
//! otherwise (D107, D118, D120).

use serde_json::{Value, json};

use super::surrounding_proofs::answers;
use crate::support::program::{Folder, has};

pub(super) const PEM: &str = include_str!("../../../examples/storefront/certs/staff-devices.pem");
const ID: &str = "edghts_6U2onPIxc8W2vkFZqNaMucAdGt5";
/// The ID that is derived from the name `shop`.
pub(super) const DERIVED: &str = "edghts_BUBuisvU7zFbKwFzuxofa7yCEMP";
const TO_OWN: &str = "  delegates_to: [{source: own, path_prefix: /}]\n";
const TO_OTHER: &str = "  delegates_to: [{source: other, path_prefix: /}]\n";

/// A document of an edge with a hostport; `more` is the rest of its spec.
pub(super) fn edge(metadata: &str, hostport: &str, more: &str) -> String {
    let spec = format!("spec:\n  hostports: ['{hostport}']\n{more}");
    format!("---\napiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{{metadata}}}\n{spec}")
}

/// A document of a route by itself.
pub(super) fn route(metadata: &str, edge: &str, matched: &str, backend: &str) -> String {
    let spec = format!("edge: {edge}, match_type: path_prefix, match: '{matched}', backend: {{backend_id: {backend}}}");
    format!("---\napiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {{{metadata}}}\nspec: {{{spec}}}\n")
}

/// A route in the document of an edge.
pub(super) fn inline(backend: &str) -> String {
    format!("  routes: [{{name: all, match_type: path_prefix, match: /, backend: {{backend_id: {backend}}}}}]\n")
}

/// Folders of a source `own` with an invariant: only `bkd_ok` is behind these hosts.
fn folder(hosts: &str, own: &str, others: &[(&str, String)]) -> Folder {
    let folder = Folder::new();
    let spec = format!("{{description: only one backend, scope: {{hosts: [{hosts}]}}, backends: [bkd_ok]}}");
    folder.write(
        "own/invariant.yaml",
        &format!("apiVersion: edgewright/v1\nkind: Invariant\nmetadata: {{name: only-ok}}\nspec: {spec}\n"),
    );
    folder.write("own/own.yaml", own);
    for (name, text) in others {
        folder.write(&format!("{name}/{name}.yaml"), text);
    }
    folder
}

/// The answer about the invariant beside other folders, and what was not seen.
fn answer(folder: &Folder, others: &[&str]) -> (String, String) {
    let with: String = others.iter().map(|name| format!(" --with {name}")).collect();
    let found = answers(folder, &format!("own --source own{with}"));
    let (_, answer, unseen) = found.into_iter().next().unwrap_or_default();
    (answer, unseen)
}

#[track_caller]
fn assert_depends(folder: &Folder, others: &[&str], on: &str) {
    let (answer, unseen) = answer(folder, others);
    assert!(answer == "depends" && unseen.contains(on), "{answer}: {unseen}");
}

#[test]
fn an_id_is_that_of_an_edge_only_if_a_manifest_states_it() {
    let own =
        |metadata: &str, id: &str| edge(metadata, "z.example.com:443", "") + &route("name: r", id, "/x", "bkd_bad");
    let others = [("other", edge("name: shop", "a.example.com:443", TO_OWN))];
    let derived = folder("z.example.com", &own("name: shop", DERIVED), &others);
    assert_depends(&derived, &["other"], &format!("which edge has the ID `{DERIVED}`, which no manifest states"));
    let stated = folder("z.example.com", &own(&format!("name: own, id: {ID}"), ID), &others);
    assert_eq!(answer(&stated, &["other"]).0, "refuted");
    // So it is for a surrounding route.
    let own = edge("name: shop", "z.example.com:443", TO_OTHER);
    let guest = folder("z.example.com", &own, &[("other", route("name: r", DERIVED, "/x", "bkd_bad"))]);
    assert_depends(&guest, &["other"], DERIVED);
}

#[test]
fn a_surrounding_route_names_one_edge_only_if_no_other_has_the_name() {
    let own = edge("name: shop", "a.example.com:443", TO_OTHER);
    let guest = route("name: r", "shop", "/x", "bkd_bad");
    let others = [("other", guest), ("platform", edge("name: shop", "b.example.com:443", ""))];
    let folder = folder("a.example.com", &own, &others);
    assert_eq!(answer(&folder, &["other"]).0, "refuted");
    assert_depends(&folder, &["other", "platform"], "which of the edges with the name `shop` has the route `r`");
}

#[test]
fn the_routes_of_a_second_edge_of_one_name_break_nothing_on_the_first() {
    let own = edge("name: own", "z.example.com:443", "");
    let others = [
        ("first", edge("name: shop", "a.example.com:443", "")),
        ("second", edge("name: shop", "b.example.com:443", &inline("bkd_bad"))),
    ];
    for (host, on) in [
        ("a.example.com", "which of the edges with the name `shop` has the route `all`"),
        ("b.example.com", "HttpsEdge `shop`, which the surrounding manifests declare more"),
    ] {
        let folder = folder(&format!("{host}, z.example.com"), &own, &others);
        assert_depends(&folder, &["first", "second"], on);
    }
    let alone = folder("b.example.com", &own, &others);
    assert_eq!(answer(&alone, &["second"]).0, "refuted");
}

#[test]
fn of_two_surrounding_resources_with_one_id_neither_is_certain() {
    let own = edge("name: own", "z.example.com:443", "");
    let other = |name: &str, host: &str, more: &str| edge(&format!("name: {name}, id: {ID}"), host, more);
    let others = [
        ("first", other("s1", "a.example.com:443", "")),
        ("second", other("s2", "b.example.com:443", &inline("bkd_bad"))),
    ];
    let edges = folder("b.example.com, z.example.com", &own, &others);
    let id = "edghtsrt_BUBuisvU7zFbKwFzuxofa7yCEMP";
    let other =
        |name: &str, path: &str, backend: &str| route(&format!("name: {name}, id: {id}"), "shop", path, backend);
    let others = [
        ("shop", edge("name: shop", "a.example.com:443", "")),
        ("first", other("r1", "/x", "bkd_ok")),
        ("second", other("r2", "/y", "bkd_bad")),
    ];
    let routes = folder("a.example.com", &own, &others);
    for order in [["shop", "first", "second"], ["second", "first", "shop"]] {
        let of_edges: Vec<&str> = order.into_iter().filter(|name| *name != "shop").collect();
        assert_depends(&edges, &of_edges, "whose ID is stated by several surrounding manifests");
        assert_depends(&routes, &order, "whose ID is stated by several surrounding manifests");
    }
}

#[test]
fn an_edge_may_not_be_that_of_the_source_before_its_name() {
    let own = route("name: r", "platform/shop", "/x", "bkd_bad");
    let folder = folder("a.example.com", &own, &[("other", edge("name: shop", "a.example.com:443", TO_OWN))]);
    assert_depends(&folder, &["other"], "whether the surrounding edge `shop` is of source `platform`");
}

#[test]
fn of_two_edges_with_one_hostport_either_may_serve_it() {
    let of = |more: &str, backend: &str| edge("name: shop", "a.example.com:443", &format!("{more}{}", inline(backend)));
    for (backend, others) in [("bkd_bad", "bkd_ok"), ("bkd_ok", "bkd_bad")] {
        let folder = folder("a.example.com", &of(TO_OTHER, backend), &[("other", of(TO_OWN, others))]);
        folder.write("edgewright.config.yaml", "{lints: {duplicate-hostport: allow}}\n");
        assert_depends(&folder, &["other"], "serves `a.example.com:443`");
    }
}

/// An edge with two ports, and two routes for the same paths: one for a port, and one for each.
fn rivals(port: u16, [first, second]: [&str; 2], [at_port, at_each]: [&str; 2]) -> String {
    edge("name: own", "a.example.com:443', 'a.example.com:8443", "")
        + &route(first, "own", &format!("a.example.com:{port}/x"), at_port)
        + &route(second, "own", "a.example.com/x", at_each)
}

#[test]
fn of_two_routes_with_one_match_either_may_have_the_lower_id() {
    let names = ["name: p", "name: r"];
    let guessed = folder("a.example.com", &rivals(443, names, ["bkd_bad", "bkd_ok"]), &[]);
    assert_depends(&guessed, &[], "has the lower ID");
    // With the same effect, it does not matter.
    let alike = folder("a.example.com", &rivals(443, names, ["bkd_ok", "bkd_ok"]), &[]);
    assert_eq!(answer(&alike, &[]), ("proven".to_owned(), String::new()));
    let ids = ["name: p, id: edghtsrt_1", "name: r, id: edghtsrt_2"];
    let stated = folder("a.example.com", &rivals(443, ids, ["bkd_bad", "bkd_ok"]), &[]);
    assert_eq!(answer(&stated, &[]).0, "refuted");
}

#[test]
fn two_routes_with_one_match_are_rivals_only_at_a_port_of_both() {
    let names = ["name: p", "name: r"];
    let alone_at_8443 = folder("a.example.com", &rivals(443, names, ["bkd_ok", "bkd_bad"]), &[]);
    assert_eq!(answer(&alone_at_8443, &[]).0, "refuted");
    let unserved = folder("a.example.com", &rivals(9443, names, ["bkd_bad", "bkd_ok"]), &[]);
    assert_eq!(answer(&unserved, &[]), ("proven".to_owned(), String::new()));
}

/// A document of a module set with a backend.
fn set(backend: &str) -> String {
    let spec = format!("spec: {{backend: {{backend_id: {backend}}}}}\n");
    format!("---\napiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {{name: base}}\n{spec}")
}

#[test]
fn a_surrounding_route_may_have_the_module_set_of_the_source() {
    let own = |backend: &str| edge("name: own", "z.example.com:443", "") + &set(backend);
    let routes = "  routes: [{name: all, match_type: path_prefix, match: /, modules_from: [base]}]\n";
    let user = || edge("name: shop", "b.example.com:443", routes);
    let other = |backend: &str| folder("b.example.com", &own(backend), &[("other", user()), ("sets", set("bkd_ok"))]);
    let with = ["other", "sets"];
    assert_depends(&other("bkd_bad"), &with, "which of the module sets with the name `base` the surrounding");
    assert_eq!(answer(&other("bkd_ok"), &with), ("proven".to_owned(), String::new()), "the sets are alike");
    // A file is of one source.
    let together = folder("b.example.com", &own("bkd_bad"), &[("other", user() + &set("bkd_ok"))]);
    assert_eq!(answer(&together, &["other"]), ("proven".to_owned(), String::new()));
}

#[test]
fn no_answer_depends_on_which_certificate_authority_a_name_means() {
    let own = edge("name: own", "a.example.com:443", "  mutual_tls: {certificate_authority_ids: [corp]}\n");
    let spec = format!("spec: {{ca_pem: {PEM:?}}}\n");
    let authority = format!("apiVersion: edgewright/v1\nkind: CertificateAuthority\nmetadata: {{name: corp}}\n{spec}");
    let others = [("first", authority.clone()), ("second", authority)];
    let folder = folder("a.example.com", &(own + &inline("bkd_ok")), &others);
    folder.edit("own/invariant.yaml", "backends: [bkd_ok]", "requires_any: [mutual_tls]");
    for others in [&["first"][..], &["first", "second"]] {
        assert_eq!(answer(&folder, others), ("proven".to_owned(), String::new()), "{others:?}");
    }
}

/// A route test of a request, which must reach a backend.
pub(super) fn expecting(url: &str, backend: &str) -> String {
    let request = format!("{{url: '{url}', expect: {{backend: {backend}}}}}");
    format!("apiVersion: edgewright/v1\nkind: RouteTest\nmetadata: {{name: guess}}\nspec: {{requests: [{request}]}}\n")
}

#[test]
fn a_request_that_a_guess_takes_neither_passes_nor_fails_its_test() {
    let own = edge("name: shop", "a.example.com:443", TO_OTHER) + &inline("bkd_own");
    let guest = route("name: r", "shop", "/x", "bkd_guest");
    let others = [("other", guest), ("platform", edge("name: shop", "b.example.com:443", ""))];
    let folder = folder("z.example.com", &own, &others);
    let run = |url: &str, backend: &str, with: &str| {
        folder.write("own/test.yaml", &expecting(url, backend));
        folder.run(&format!("test own --source own --with other{with}"))
    };
    let (taken, sure) = ("https://a.example.com/x/1", "https://a.example.com/");
    for backend in ["bkd_own", "bkd_guest"] {
        let tested = run(taken, backend, " --with platform");
        assert_eq!(tested.code, 0, "{}", tested.all());
        has(
            &tested,
            &["skipped own/test.yaml:4", "depends on which of the edges with the name `shop` has the route `r`"],
        );
        has(&tested, &["1 request tested: 0 passed, 1 skipped"]);
    }
    let report = folder.run("test own --source own --with other --with platform --format json");
    let report: Value = serde_json::from_str(&report.out).unwrap_or_else(|_| panic!("{}", report.all()));
    let result = &report["tests"]["results"][0];
    assert_eq!((&result["result"], &result["verdict"]), (&json!("skipped"), &Value::Null), "{result}");
    assert!(result["unseen"][0].as_str().is_some_and(|it| it.starts_with("which of the edges")), "{result}");
    // A request that this is not about is judged, and so is each where one edge has the name.
    for (url, with, backend) in [(sure, " --with platform", "bkd_own"), (taken, "", "bkd_guest")] {
        assert_eq!(run(url, backend, with).code, 0, "{url}");
        let failed = run(url, "bkd_other", with);
        assert_eq!(failed.code, 3, "{}", failed.all());
        has(&failed, &["failed  own/test.yaml:4"]);
    }
}

#[test]
fn an_edge_that_no_manifest_declares_may_take_the_tested_request_of_a_wildcard() {
    let own = |hosts: &str| edge("name: shop", hosts, &inline("bkd_own")) + &route("name: r", ID, "/x", "bkd_own");
    let folder = folder("z.example.com", &own("*.example.com:443"), &[]);
    folder.write("own/test.yaml", &expecting("https://a.example.com/", "bkd_own"));
    let run = folder.ok("test own --source own");
    has(&run, &["skipped", &format!("depends on the edge `{ID}`, which no manifest declares")]);
    folder.write("own/own.yaml", &own("a.example.com:443"));
    has(&folder.ok("test own --source own"), &["1 passed"]);
}

#[test]
fn a_surrounding_route_that_an_edge_of_the_source_delegates_is_seen() {
    let own = |more: &str| edge("name: own", "a.example.com:443", more);
    for named in ["own", "own/own"] {
        let others = [("other", route("name: r", named, "/x", "bkd_ok"))];
        let folder = folder("a.example.com", &own(TO_OTHER), &others);
        assert_eq!(answer(&folder, &["other"]), ("proven".to_owned(), String::new()), "{named}");
        folder.write("own/own.yaml", &own(""));
        assert_depends(&folder, &["other"], "the surrounding route `r`, which the edge");
    }
}
