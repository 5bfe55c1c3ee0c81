//! Lists: newest first, a page at a time, and a walk that survives what others do meanwhile (D12).

use std::sync::Arc;

use edgewright::{
    resources::{AnyResource, IpRestriction, Kind, Traffic},
    server::{Action, endpoints},
};
use serde_json::{Value, json};

use crate::api::conformance::support::{
    row::{Row, row},
    run::hold,
};
use crate::support::server::{Answer, BASE_URL, Server};

#[test]
fn parameters_of_lists() {
    hold(rows());
}

pub(super) fn rows() -> Vec<Row> {
    let bad = [
        ("limit=0", "/limit"),
        ("limit=1001", "/limit"),
        ("limit=-1", "/limit"),
        ("limit=1.5", "/limit"),
        ("limit=ten", "/limit"),
        ("limit=", "/limit"),
        ("limit", "/limit"),
        ("limit=99999999999999999999999", "/limit"),
        ("limit=1&limit=1", "/limit"),
        ("limit=1&limit=2", "/limit"),
        ("limt=1", "/limt"),
        ("limit=1&order=name", "/order"),
        ("limit=1&before_id=x&limit=1", "/limit"),
        ("before_id=edghts_unknown", "/before_id"),
        ("before_id=", "/before_id"),
        ("before_id={edge}&before_id={edge}", "/before_id"),
        ("limit=1&before_id={route}", "/before_id"),
        ("limit=1&beforeId={route}", "/before_id"),
        ("before_id={edge}&beforeId={edge}", "/before_id"),
    ];
    let mut rows = Vec::from(bad.map(|(query, field)| {
        row(format!("`?{query}` is refused")).route().call(&format!("GET /edges/https?{query}")).fails(
            400,
            "PARAMETER",
            field,
        )
    }));
    rows.push(
        row("1 and 1000 are limits, and an id of the list is a place to go on from")
            .given("old", "POST /edges/https", json!({}))
            .given("new", "POST /edges/https", json!({}))
            .call("GET /edges/https?limit=1")
            .succeeds(200)
            .shows("/https_edges/0/id", json!("{new}"))
            .call("GET /edges/https?limit=1000")
            .succeeds(200)
            .shows("/next_page_uri", Value::Null)
            .call("GET /edges/https?before_id={new}&limit=1")
            .succeeds(200)
            .shows("/https_edges/0/id", json!("{old}"))
            .shows("/uri", json!("{base}/edges/https"))
            .call("GET /edges/https?beforeId={new}&limit=1")
            .succeeds(200)
            .shows("/https_edges/0/id", json!("{old}")),
    );
    rows
}

#[test]
fn an_empty_list_has_all_keys_and_every_list_its_own_array() {
    let server = Server::start();
    let mut wrong = Vec::new();
    for endpoint in endpoints().into_iter().filter(|endpoint| endpoint.action == Action::List) {
        let edge = server.call("POST", "/edges/https", Some(json!({}))).str("/id").to_owned();
        let path = endpoint.path.replace("{edge_id}", &edge).replace("{subscription_id}", "esb_1");
        let answer = server.call("GET", &path, None);
        let array = match endpoint.path.as_str() {
            "/api_keys" => "keys",
            "/ip_restrictions" => "ip_restrictions",
            "/certificate_authorities" => "certificate_authorities",
            "/tls_certificates" => "tls_certificates",
            "/edges/https" => "https_edges",
            "/edges/https/{edge_id}/routes" => "routes",
            "/edges/tls" => "tls_edges",
            "/event_subscriptions" => "event_subscriptions",
            "/invariants" => "invariants",
            "/event_subscriptions/{subscription_id}/sources" => "sources",
            other => panic!("the list {other} is new: say here what its array is called"),
        };
        let items = answer.json[array].clone();
        let mut wanted = json!({array: items, "uri": format!("{BASE_URL}{path}"), "next_page_uri": null});
        if array == "sources" {
            wanted.as_object_mut().unwrap().remove("next_page_uri");
        }
        if answer.status != 200 || !items.is_array() || answer.json != wanted {
            wrong.push(format!("GET {path}: {} {}", answer.status, answer.text));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Makes so many restrictions; their ids, newest first.
fn restrictions(server: &Server, count: usize) -> Vec<String> {
    let spec = |number| IpRestriction {
        r#type: Some(Traffic::Api),
        description: format!("number {number}"),
        ..IpRestriction::default()
    };
    let specs = (0..count).map(|number| Arc::new(spec(number)) as Arc<dyn AnyResource>);
    let mut ids = server.create(Kind::IpRestriction, specs);
    ids.reverse();
    ids
}

fn page(server: &Server, address: &str) -> Answer {
    let path = address.strip_prefix(BASE_URL).unwrap_or_else(|| panic!("{address} is not an absolute address"));
    let answer = server.call("GET", path, None);
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer
}

fn ids(answer: &Answer) -> Vec<String> {
    let items = answer.json["ip_restrictions"].as_array().unwrap();
    items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

const LIST: &str = "http://gateway.test/ip_restrictions";

/// Follows `next_page_uri` to the end; between two pages `meanwhile` happens, with what was seen so far.
fn walk(server: &Server, first: &str, mut meanwhile: impl FnMut(&[String])) -> Vec<Vec<String>> {
    let (mut pages, mut next) = (Vec::new(), Some(first.to_owned()));
    while let Some(address) = next {
        let answer = page(server, &address);
        assert_eq!(answer.str("/uri"), LIST);
        pages.push(ids(&answer));
        next = answer.json["next_page_uri"].as_str().map(str::to_owned);
        meanwhile(&pages.concat());
        assert!(pages.len() < 100, "the walk does not end");
    }
    pages
}

#[test]
fn a_page_has_100_items_and_the_walk_sees_each_once() {
    let server = Server::start();
    let all = restrictions(&server, 250);
    let pages = walk(&server, LIST, |_| {});
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [100, 100, 50]);
    assert_eq!(pages.concat(), all);
}

#[test]
fn the_last_page_is_known_to_be_the_last() {
    let server = Server::start();
    let all = restrictions(&server, 20);
    for limit in [1, 3, 10, 19, 20, 21, 1000] {
        let pages = walk(&server, &format!("{LIST}?limit={limit}"), |_| {});
        assert_eq!(pages.len(), 20_usize.div_ceil(limit), "limit {limit}");
        assert_eq!(pages.concat(), all, "limit {limit}");
    }
}

#[test]
fn an_item_of_a_list_is_what_get_answers() {
    let server = Server::start();
    let all = restrictions(&server, 3);
    let answer = page(&server, LIST);
    for (index, id) in all.iter().enumerate() {
        let one = server.call("GET", &format!("/ip_restrictions/{id}"), None);
        assert_eq!(answer.json["ip_restrictions"][index], one.json);
    }
}

#[test]
fn a_walk_survives_the_deletion_of_the_item_it_stopped_at() {
    let server = Server::start();
    let all = restrictions(&server, 10);
    let delete = |id: &str| assert_eq!(server.call("DELETE", &format!("/ip_restrictions/{id}"), None).status, 204);
    let pages = walk(&server, &format!("{LIST}?limit=3"), |seen| delete(seen.last().unwrap()));
    assert_eq!(pages.concat(), all);
    assert_eq!(ids(&page(&server, LIST)).len(), 6);
}

#[test]
fn a_walk_survives_everything_else_that_happens() {
    let server = Server::start();
    let all = restrictions(&server, 12);
    let mut round = 0;
    let pages = walk(&server, &format!("{LIST}?limit=4"), |seen| {
        round += 1;
        // Everything that was seen goes, and something new comes, which is newer than the walk.
        for id in &seen[(round - 1) * 4..] {
            server.call("DELETE", &format!("/ip_restrictions/{id}"), None);
        }
        restrictions(&server, 5);
    });
    assert_eq!(pages.concat(), all);
}

#[test]
fn a_walk_leaves_out_what_was_deleted_before_it_came_there() {
    let server = Server::start();
    let all = restrictions(&server, 6);
    let pages = walk(&server, &format!("{LIST}?limit=2"), |seen| {
        if seen.len() == 2 {
            server.call("DELETE", &format!("/ip_restrictions/{}", all[3]), None);
        }
    });
    assert_eq!(
        pages,
        [vec![all[0].clone(), all[1].clone()], vec![all[2].clone(), all[4].clone()], vec![all[5].clone()]]
    );
}

#[test]
fn routes_of_one_edge_are_a_list_of_their_own() {
    let server = Server::start();
    let edges = [(); 2].map(|()| server.call("POST", "/edges/https", Some(json!({}))).str("/id").to_owned());
    let mut made = [Vec::new(), Vec::new()];
    for number in 0..6 {
        let path = format!("/edges/https/{}/routes", edges[number % 2]);
        let body = json!({"match_type": "exact_path", "match": format!("/{number}")});
        made[number % 2].insert(0, server.call("POST", &path, Some(body)).str("/id").to_owned());
    }
    for (edge, wanted) in edges.iter().zip(made) {
        let mut seen = Vec::new();
        let mut next = Some(format!("/edges/https/{edge}/routes?limit=2"));
        while let Some(path) = next {
            let answer = server.call("GET", &path, None);
            seen.extend(
                answer.json["routes"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()),
            );
            next = answer.json["next_page_uri"].as_str().map(|uri| uri.strip_prefix(BASE_URL).unwrap().to_owned());
        }
        assert_eq!(seen, wanted);
    }
}
