//! Consent to a host, port by port and over time.

use serde_json::{Value, json};

use super::gateway::{Gateway, document, edge, reconciliation, shop};
use crate::security::scoped_keys::refused;
use crate::support::{manifests::edge_with, server::Answer};

/// The consent of an edge to all of `team-b`.
const CONSENT: &str = ", delegates_to: [{source: team-b, path_prefix: /}]";

/// A manifest of an edge with two hostports.
fn edge_of(one: &str, other: &str) -> Value {
    document("HttpsEdge", "mine", &format!("{{hostports: ['{one}', '{other}']}}"))
}

#[test]
fn a_host_needs_the_consent_of_all_edges_that_have_the_wildcard() {
    let gateway = Gateway::new();
    let plain = document("HttpsEdge", "plain", &format!("{{hostports: ['*.shop.example.com:80']{CONSENT}}}"));
    gateway.apply("team-a", &[shop(""), plain.clone()]);
    let words = ["NOT_DELEGATED", "`*.shop.example.com:443` of HttpsEdge `shop` of source `team-a`"];
    for port in [80, 443] {
        refused(&gateway.b_applies(&[edge("mine", &format!("x.shop.example.com:{port}"))]), 409, &words);
    }
    gateway.apply("team-a", &[shop(CONSENT), plain]);
    for port in [80, 443] {
        let answer = gateway.b_applies(&[edge("mine", &format!("x.shop.example.com:{port}"))]);
        assert_eq!(answer.status, 201, "{}", answer.text);
    }
}

#[test]
fn consent_to_one_port_of_a_host_is_none_to_another_one() {
    let set = document("ModuleSet", "zip", "{compression: {enabled: true}}");
    let withdrawn = vec![shop("")];
    let required = vec![set, shop(&format!("{CONSENT}, required_modules: [zip]"))];
    for files in [withdrawn, required] {
        let gateway = Gateway::new();
        gateway.apply("team-a", &[shop(CONSENT)]);
        let first = "x.shop.example.com:80";
        assert_eq!(gateway.b_applies(&[edge("mine", first)]).status, 201);
        let revision = gateway.revision();
        // Whoever takes the consent back is told who has a host by it.
        let answer = gateway.server.call("POST", "/reconciliations", reconciliation("team-a", &files));
        refused(&answer, 201, &["no longer leaves hosts", "`x.shop.example.com:80` of source `team-b`"]);
        let path = format!("/edges/https/{}", gateway.id("HttpsEdge", "team-b"));
        let words = ["NOT_DELEGATED", "`*.shop.example.com:443` of HttpsEdge `shop` of source `team-a`"];
        for more in ["x.shop.example.com:443", "x.shop.example.com:8443", "*.x.shop.example.com:443"] {
            refused(&gateway.b_applies(&[edge_of(first, more)]), 409, &words);
            let patch = json!({"hostports": [first, more]});
            refused(&gateway.server.call_as(&gateway.b, "PATCH", &path, Some(patch)), 409, &words);
        }
        // What it has stays, and it does not come back once it is gone.
        assert_eq!(gateway.b_applies(&[edge("mine", first)]).status, 200);
        assert_eq!(gateway.b_applies(&[edge("mine", "b.example.com:443")]).status, 201);
        let back = json!({"to": revision, "source": "team-b", "max_deletes": "100%"});
        refused(&gateway.server.call_as(&gateway.b, "POST", "/rollbacks", Some(back)), 409, &words);
    }
}

#[test]
fn whoever_takes_consent_back_with_another_edge_is_told_who_has_hosts_by_it() {
    let hosts = |name: &str, hosts: &str| document("HttpsEdge", name, &format!("{{hostports: [{hosts}]}}"));
    let kept = document("HttpsEdge", "shop", &format!("{{hostports: ['shop.example.com:443']{CONSENT}}}"));
    // The edge has another name, or its wildcard is one of another edge from then on.
    let renamed = vec![hosts("store", "'shop.example.com:443', '*.shop.example.com:443'")];
    let moved = vec![kept.clone(), hosts("store", "'*.shop.example.com:443'")];
    for files in [renamed, moved] {
        let gateway = Gateway::new();
        gateway.apply("team-a", &[shop(CONSENT)]);
        assert_eq!(gateway.b_applies(&[edge("mine", "x.shop.example.com:80")]).status, 201);
        let applies = || gateway.server.call("POST", "/reconciliations", reconciliation("team-a", &files));
        let told =
            ["NOT_DELEGATED", "HttpsEdge `store` no longer leaves hosts", "`x.shop.example.com:80` of source `team-b`"];
        refused(&applies(), 201, &told);
        let again = applies();
        assert!(again.status == 200 && !again.text.contains("leaves hosts"), "{}", again.text);
    }
    let gateway = Gateway::new();
    gateway.apply("team-a", &[shop(CONSENT)]);
    assert_eq!(gateway.b_applies(&[edge("mine", "x.shop.example.com:80")]).status, 201);
    let wildcard = "{hostports: ['*.shop.example.com:443'], delegates_to: [{source: team-b, path_prefix: /}]}";
    let files = [kept, document("HttpsEdge", "store", wildcard)];
    let answer = gateway.server.call("POST", "/reconciliations", reconciliation("team-a", &files));
    assert!(answer.status == 201 && !answer.text.contains("leaves hosts"), "it consents, too: {}", answer.text);
}

#[test]
fn whoever_adds_a_wildcard_is_told_which_hosts_below_it_get_no_more_ports() {
    let wildcard = |more: &str| {
        let plain = document("HttpsEdge", "plain", &format!("{{hostports: ['*.example.com:80']{more}}}"));
        reconciliation("team-a", &[shop(CONSENT), plain])
    };
    let mine = |ports: &str| {
        let delegates = "delegates_to: [{source: team-a, path_prefix: /}]";
        [document("HttpsEdge", "mine", &format!("{{hostports: ['x.shop.example.com:80'{ports}], {delegates}}}"))]
    };
    let more = ", 'x.shop.example.com:8443'";
    for (consent, is_closed) in [("", true), (CONSENT, false)] {
        let gateway = Gateway::new();
        gateway.apply("team-a", &[shop(CONSENT)]);
        assert_eq!(gateway.b_applies(&mine("")).status, 201);
        let answer = gateway.server.call("POST", "/reconciliations", wildcard(consent));
        assert_eq!(answer.status, 201, "the edge below consents: {}", answer.text);
        let told = answer.text.contains("HttpsEdge `plain` adds hosts of other edges, or a wildcard above them")
            && answer.text.contains("`x.shop.example.com:80` of source `team-b`");
        assert_eq!(told, is_closed, "{}", answer.text);
        let again = gateway.server.call("POST", "/reconciliations", wildcard(consent));
        assert!(again.status == 200 && !again.text.contains("adds hosts"), "{}", again.text);
        let added = gateway.b_applies(&mine(more));
        match is_closed {
            true => refused(&added, 409, &["NOT_DELEGATED", "of HttpsEdge `plain` of source `team-a`"]),
            false => assert_eq!(added.status, 201, "{}", added.text),
        }
    }
}

#[test]
fn whoever_adds_another_port_of_a_host_is_told_that_its_first_source_gets_no_more() {
    for (consent, is_told) in [("", true), (CONSENT, false)] {
        let gateway = Gateway::new();
        let spec = |ports: &str| {
            let delegates = "delegates_to: [{source: team-a, path_prefix: /}]";
            [document("HttpsEdge", "mine", &format!("{{hostports: ['b.example.com:443'{ports}], {delegates}}}"))]
        };
        assert_eq!(gateway.b_applies(&spec("")).status, 201);
        let plain = document("HttpsEdge", "plain", &format!("{{hostports: ['b.example.com:80']{consent}}}"));
        let answer = gateway.server.call("POST", "/reconciliations", reconciliation("team-a", &[shop(""), plain]));
        let told = answer.text.contains("get no more ports: `b.example.com:443` of source `team-b`");
        assert_eq!((answer.status, told), (201, is_told), "{}", answer.text);
        let more = gateway.b_applies(&spec(", 'b.example.com:8443'"));
        assert_eq!(more.status, if is_told { 409 } else { 201 }, "{}", more.text);
    }
}

#[test]
fn a_warning_names_a_host_once_and_at_most_ten() {
    let gateway = Gateway::new();
    let ports = |host: &str| format!("'{host}.example.com:443', '{host}.example.com:8443'");
    let hosts: Vec<String> = (10..22).map(|number| ports(&format!("h{number}"))).collect();
    let delegates = "delegates_to: [{source: team-a, path_prefix: /}]";
    let spec = format!("{{hostports: [{}], {delegates}}}", hosts.join(", "));
    assert_eq!(gateway.b_applies(&[document("HttpsEdge", "mine", &spec)]).status, 201);
    let files = [shop(""), edge("plain", "*.example.com:80")];
    let answer = gateway.server.call("POST", "/reconciliations", reconciliation("team-a", &files));
    refused(&answer, 201, &["`h10.example.com:443` of source `team-b`", "`h19.example.com:443`", "and 2 more"]);
    assert!(!answer.text.contains("8443` of source") && !answer.text.contains("`h20."), "{}", answer.text);
}

#[test]
fn a_source_adds_hosts_below_its_own_wildcard_without_consent() {
    let gateway = Gateway::new();
    gateway.apply("team-a", &[shop(CONSENT)]);
    let own = "*.b.shop.example.com:443";
    assert_eq!(gateway.b_applies(&[edge("mine", own)]).status, 201);
    gateway.apply("team-a", &[shop("")]);
    // It has these requests already.
    let answer = gateway.b_applies(&[edge_of(own, "x.b.shop.example.com:443")]);
    assert_eq!(answer.status, 201, "{}", answer.text);
    refused(&gateway.b_applies(&[edge_of(own, "x.b.shop.example.com:80")]), 409, &["NOT_DELEGATED", "`team-a`"]);
}

#[test]
fn who_has_a_wildcard_by_consent_gives_no_host_below_it_to_others() {
    let wildcard = document("HttpsEdge", "team", &format!("{{hostports: ['*.c.shop.example.com:443']{CONSENT}}}"));
    let gateway = Gateway::new();
    gateway.apply("team-a", &[shop(", delegates_to: [{source: team-c, path_prefix: /}]")]);
    gateway.apply("team-c", &[wildcard]);
    let words = ["NOT_DELEGATED", "`*.shop.example.com:443` of HttpsEdge `shop` of source `team-a`"];
    for port in [443, 80] {
        refused(&gateway.b_applies(&[edge("mine", &format!("x.c.shop.example.com:{port}"))]), 409, &words);
    }
    let both = "{source: team-c, path_prefix: /}, {source: team-b, path_prefix: /}";
    gateway.apply("team-a", &[shop(&format!(", delegates_to: [{both}]"))]);
    let answer = gateway.b_applies(&[edge("mine", "x.c.shop.example.com:443")]);
    assert_eq!(answer.status, 201, "both consent: {}", answer.text);
}

/// Adds an edge that no source owns. Returns its ID.
fn create(gateway: &Gateway, hostport: &str) -> String {
    let answer = gateway.server.call("POST", "/edges/https", Some(json!({"hostports": [hostport]})));
    assert_eq!(answer.status, 201, "{}", answer.text);
    answer.json["id"].as_str().unwrap().to_owned()
}

/// A manifest of the edge `mine` with more metadata, hostports and more fields.
fn mine(metadata: &str, hostports: &[&str], more: &str) -> Value {
    let text = edge_with(&format!("mine, {metadata}"), &format!("{{hostports: {hostports:?}{more}}}"));
    json!({"name": "mine.yaml", "text": text})
}

/// A manifest of the edge `mine` that adopts an edge.
fn adopted(id: &str, hostports: &[&str], more: &str) -> Value {
    mine(&format!("id: {id}"), hostports, more)
}

#[test]
fn a_wildcard_without_a_source_hides_no_wildcard_of_another_source() {
    // Another port of that wildcard, and one below it. The oldest edge stays without a source.
    for (oldest, wildcard) in
        [("*.w.example.org:8080", "*.w.example.org:443"), ("*.w.example.org:443", "*.example.org:443")]
    {
        let gateway = Gateway::new();
        create(&gateway, oldest);
        let host = "x.w.example.org:80";
        let [above, below] = [wildcard, host].map(|hostport| create(&gateway, hostport));
        gateway.apply("team-a", &[shop(""), adopted(&above, &[wildcard], "")]);
        gateway.apply("team-b", &[adopted(&below, &[host], "")]);
        for more in ["x.w.example.org:443", "x.w.example.org:8443"] {
            let words = ["NOT_DELEGATED", "of HttpsEdge `mine` of source `team-a`"];
            refused(&gateway.b_applies(&[adopted(&below, &[host, more], "")]), 409, &words);
        }
    }
}

#[test]
fn whoever_takes_an_edge_over_is_told_what_it_closes_and_nothing_of_that_edge() {
    let gateway = Gateway::new();
    let wildcard = "*.c.example.com:443";
    let hosts = ["c.example.com:443", wildcard];
    // What nobody has yet is not moved.
    gateway.apply("team-a", &[document("HttpsEdge", "mine", &format!("{{hostports: {hosts:?}{CONSENT}}}"))]);
    gateway.apply("team-a", &[mine("transfer_to: team-c", &hosts, CONSENT)]);
    assert_eq!(gateway.b_applies(&[edge("theirs", "x.c.example.com:80")]).status, 201);
    let files = [mine("transfer_from: team-a", &["c.example.com:443"], ""), edge("store", wildcard)];
    let answer = gateway.server.call("POST", "/reconciliations", reconciliation("team-c", &files));
    refused(&answer, 201, &["HttpsEdge `store` no longer leaves hosts", "`x.c.example.com:80` of source `team-b`"]);
    assert!(!answer.text.contains("443` of source `team-a`"), "{}", answer.text);
}

/// What `team-c` gets for taking the edge `mine` of `team-b` over, which offers it, and for other edges.
fn c_takes(gateway: &Gateway, host: &str, more: &[Value]) -> Answer {
    // What does not exist yet is not offered.
    for manifest in [edge("mine", host), mine("transfer_to: team-c", &[host], "")] {
        let offered = gateway.b_applies(&[edge("kept", "*.kept.example.com:443"), manifest]);
        assert!(matches!(offered.status, 200 | 201), "{}", offered.text);
    }
    let files = [&[mine("transfer_from: team-b", &[host], "")][..], more].concat();
    gateway.server.call("POST", "/reconciliations", reconciliation("team-c", &files))
}

#[test]
fn an_edge_that_is_taken_over_needs_the_consent_of_the_wildcards_above_it_for_its_new_source() {
    let set = || document("ModuleSet", "zip", "{compression: {enabled: true}}");
    let both = "{source: team-b, path_prefix: /}, {source: team-c, path_prefix: /}";
    let both = format!(", delegates_to: [{both}]");
    let required = [set(), shop(&format!("{both}, required_modules: [zip]"))];
    let words = ["NOT_DELEGATED", "`*.shop.example.com:443` of HttpsEdge `shop` of source `team-a`"];
    for (host, files) in [
        ("x.shop.example.com:443", &[shop(CONSENT)][..]),
        ("x.shop.example.com:80", &[shop("")][..]),
        ("*.d.shop.example.com:443", &[shop(CONSENT)][..]),
        ("x.shop.example.com:443", &required[..]),
    ] {
        let gateway = Gateway::new();
        gateway.apply("team-a", &[shop(CONSENT)]);
        assert_eq!(gateway.b_applies(&[edge("mine", host)]).status, 201);
        gateway.apply("team-a", files);
        refused(&c_takes(&gateway, host, &[]), 409, &words);
        gateway.apply("team-a", &[shop(&both)]);
        let taken = c_takes(&gateway, host, &[]);
        assert_eq!(taken.status, 201, "{host}: {}", taken.text);
    }
}

#[test]
fn whoever_offers_an_edge_consents_with_all_of_its_own_edges_and_to_nothing_else() {
    let (host, words) = ("x.kept.example.com:443", ["NOT_DELEGATED", "of HttpsEdge `kept` of source `team-b`"]);
    let gateway = Gateway::new();
    for more in ["y.kept.example.com:443", "x.kept.example.com:80"] {
        refused(&c_takes(&gateway, host, &[edge("more", more)]), 409, &words);
    }
    // It has the requests for hosts below a wildcard that it receives.
    let (wildcard, below) = ("*.x.kept.example.com:443", edge("more", "y.x.kept.example.com:443"));
    for (host, more) in [(host, &[][..]), (wildcard, &[below][..])] {
        let gateway = Gateway::new();
        let taken = c_takes(&gateway, host, more);
        assert_eq!(taken.status, 201, "{host}: {}", taken.text);
    }
}

#[test]
fn a_transfer_warns_about_hosts_that_their_owners_have_not_left_to_the_new_source() {
    let transfer = || Some(json!({"from": "team-b", "to": "team-c", "resources": ["HttpsEdge/mine"]}));
    let (theirs, own) = ("*.d.shop.example.com:443", "x.kept.example.com:443");
    for (host, is_told) in [(theirs, true), (own, false)] {
        let gateway = Gateway::new();
        gateway.apply("team-a", &[shop(CONSENT)]);
        let files = [edge("kept", "*.kept.example.com:443"), edge("mine", host)];
        assert_eq!(gateway.b_applies(&files).status, 201);
        let moved = gateway.server.call("POST", "/transfers", transfer());
        let told = moved.text.contains("source `team-c` gets a host with HttpsEdge mine")
            && moved.text.contains("`*.shop.example.com:443` of HttpsEdge `shop` of source `team-a`");
        assert_eq!((moved.status, told), (201, is_told), "{}", moved.text);
    }
}

#[test]
fn whoever_adopts_a_wildcard_is_told_once_which_hosts_get_no_more_ports() {
    let gateway = Gateway::new();
    let (wildcard, host) = ("*.example.org:443", "x.a.example.org:443");
    let [above, below] = [wildcard, host].map(|hostport| create(&gateway, hostport));
    gateway.apply("team-b", &[adopted(&below, &[host], ", delegates_to: [{source: team-a, path_prefix: /}]")]);
    let files = [shop(""), adopted(&above, &[wildcard], ""), edge("narrow", "*.a.example.org:443")];
    for (count, status, is_told) in [(2, 201, true), (2, 200, false), (3, 201, false)] {
        let answer = gateway.server.call("POST", "/reconciliations", reconciliation("team-a", &files[..count]));
        assert_eq!(answer.status, status, "{}", answer.text);
        let told = answer.text.contains("get no more ports") && answer.text.contains(&format!("`{host}` of source"));
        assert_eq!(told, is_told, "{count} {status}: {}", answer.text);
    }
}

#[test]
fn whoever_rolls_back_or_transfers_is_told_which_hosts_get_no_more_ports() {
    let host = "x.shop.example.com:80";
    let gateway = Gateway::new();
    let before = gateway.revision();
    gateway.apply("team-a", &[shop(CONSENT)]);
    assert_eq!(gateway.b_applies(&[edge("mine", host)]).status, 201);
    let back = json!({"to": before, "source": "team-a", "max_deletes": "100%"});
    let told = gateway.server.call("POST", "/rollbacks", Some(back));
    refused(&told, 201, &["HttpsEdge `shop` no longer leaves hosts", "`x.shop.example.com:80` of source `team-b`"]);
    let gateway = Gateway::new();
    gateway.apply("team-a", &[shop(""), edge("below", host)]);
    let transfer = json!({"from": "team-a", "to": "team-c", "resources": ["HttpsEdge/shop"]});
    let told = gateway.server.call("POST", "/transfers", Some(transfer));
    refused(
        &told,
        201,
        &["HttpsEdge `shop` adds hosts", "get no more ports: `x.shop.example.com:80` of source `team-a`"],
    );
}
