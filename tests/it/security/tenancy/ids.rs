//! Whose an ID is before and after its resource exists: the SAML key and the entity ID of a route derive from it (D36).

use std::collections::{BTreeMap, BTreeSet};

use edgewright::resources::{Id, Role};
use serde_json::{Value, json};

use super::gateway::{Gateway, document, edge, reconciliation, shop};
use crate::security::scoped_keys::refused;
use crate::support::server::Answer;

const IDP: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/storefront/saml/idp.xml"));

/// A manifest of a route with SAML.
fn route(edge: &str, name: &str) -> Value {
    let saml = json!({"idp_metadata": IDP});
    document(
        "HttpsEdgeRoute",
        name,
        &format!(
            "{{edge: {edge}, match_type: path_prefix, match: /{name}/, backend: {{backend_id: bkd_1}}, saml: {saml}}}"
        ),
    )
}

/// A manifest that states an ID.
fn stated(document: &Value, id: &str) -> Value {
    let text = document["text"].as_str().unwrap().replacen("}\nspec:", &format!(", id: {id}}}\nspec:"), 1);
    json!({"name": document["name"], "text": text})
}

/// Applies manifests of `team-b`, and asks for IDs that do not exist.
fn recreate(gateway: &Gateway, token: &str, files: &[Value]) -> Answer {
    let mut body = reconciliation("team-b", files).unwrap();
    body["recreate_ids"] = json!(true);
    gateway.server.call_as(token, "POST", "/reconciliations", Some(body))
}

/// The SAML keys that a gateway gets, by the ID of the route.
fn saml_keys(gateway: &Gateway) -> BTreeMap<String, String> {
    let token = gateway.server.key_of("bot_gateway", Role::Gateway);
    let answer = gateway.server.call_as(&token, "GET", "/gateway/configuration", None);
    let edges = answer.json["edges"].as_array().unwrap().iter();
    let routes = edges.flat_map(|edge| edge["routes"].as_array().unwrap());
    let key = |route: &Value| {
        let modules = route["modules"].as_array().unwrap();
        let saml = modules.iter().find(|module| module["module"] == "saml")?;
        let key = saml["config"]["request_signing_private_key_pem"].as_str()?;
        Some((route["id"].as_str()?.to_owned(), key.to_owned()))
    };
    routes.filter_map(key).collect()
}

/// Whether routes have an ID or a key in common.
fn share(some: &BTreeMap<String, String>, others: &BTreeMap<String, String>) -> bool {
    let keys: BTreeSet<&String> = some.values().collect();
    others.iter().any(|(id, key)| some.contains_key(id) || keys.contains(key))
}

#[test]
fn no_source_takes_an_id_that_another_one_will_have() {
    let gateway = Gateway::new();
    let parent = gateway.id("HttpsEdge", "team-a");
    let next = Id::derived("edghtsrt_", ["HttpsEdgeRoute", &parent, "hr"].map(str::as_bytes)).to_string();
    let mine = edge("mine", "b.example.com:443");
    let squat = [mine.clone(), stated(&route("mine", "squat"), &next)];
    refused(&recreate(&gateway, &gateway.b, &squat), 403, &[&next, "by its ID", "`HttpsEdgeRoute` in `kinds`"]);
    let invented = [stated(&mine, "edghts_0")];
    refused(&recreate(&gateway, &gateway.b, &invented), 403, &["HttpsEdge edghts_0", "`HttpsEdge` in `kinds`"]);

    // An admin may recreate it there. Then the route that has it by its name elsewhere gets another one.
    let made = recreate(&gateway, &gateway.server.admin, &squat);
    assert_eq!(made.status, 201, "{}", made.text);
    let theirs = saml_keys(&gateway);
    assert!(theirs.contains_key(&next), "{:?}", theirs.keys());
    gateway.apply("team-a", &[shop(""), route("shop", "hr")]);
    let mut ours = saml_keys(&gateway);
    ours.retain(|id, _| !theirs.contains_key(id));
    assert!(ours.len() == 1 && !share(&ours, &theirs));

    // Whatever becomes of the other one, it is found by its ID.
    assert_eq!(gateway.b_applies(&[mine]).status, 201);
    assert_eq!(saml_keys(&gateway), ours);
    let id = ours.keys().next().unwrap();
    for path in [format!("/saml/{id}"), format!("/resources/{id}")] {
        let found = gateway.server.call("GET", &path, None);
        assert_eq!(found.status, 200, "{path}: {}", found.text);
    }
    assert_eq!(gateway.server.call("GET", &format!("/saml/{next}"), None).status, 404);
}

#[test]
fn a_source_keeps_the_ids_of_what_it_has_deleted() {
    let gateway = Gateway::new();
    let office = edge("backoffice", "office.example.com:443");
    let hr = route("backoffice", "hr");
    let whole = [shop(""), office.clone(), hr.clone()];
    gateway.apply("team-a", &whole);
    let before = saml_keys(&gateway);
    gateway.apply("team-a", &[shop("")]);
    let taken = gateway.b_applies(&[office, hr]);
    assert_eq!(taken.status, 201, "{}", taken.text);
    let after = saml_keys(&gateway);
    assert!((before.len(), after.len()) == (1, 1) && !share(&before, &after));
    // Whoever had it has it again.
    let mine = edge("mine", "b.example.com:443");
    assert_eq!(gateway.b_applies(std::slice::from_ref(&mine)).status, 201);
    gateway.apply("team-a", &whole);
    assert_eq!(saml_keys(&gateway), before);

    // The same on an edge on which both have routes.
    gateway.apply("team-a", &[shop(""), route("shop", "hr")]);
    let before = saml_keys(&gateway);
    gateway.apply("team-a", &[shop(", delegates_to: [{source: team-b, path_prefix: /hr/}]")]);
    let taken = gateway.b_applies(&[mine, route("shop", "hr")]);
    assert_eq!(taken.status, 201, "{}", taken.text);
    let after = saml_keys(&gateway);
    assert!((before.len(), after.len()) == (1, 1) && !share(&before, &after));
}

#[test]
fn a_source_keeps_the_ids_of_what_others_have_deleted() {
    let gateway = Gateway::new();
    let (id, revision) = (gateway.id("HttpsEdge", "team-a"), gateway.revision());
    let delete = || gateway.server.call("DELETE", &format!("/edges/https/{id}"), None).status;
    assert_eq!(delete(), 204);
    let hold = [stated(&edge("hold", "b.example.com:443"), &id)];
    let words = [id.as_str(), "whose ID that source was the last to have", "the right to apply source `team-a`"];
    // Nor does whoever may take over what no source owns.
    for token in [&gateway.b, &gateway.key(json!({"apply": ["team-b"], "kinds": ["HttpsEdge"]}))] {
        let held = gateway.server.call_as(token, "POST", "/reconciliations", reconciliation("team-b", &hold));
        refused(&held, 403, &words);
        refused(&recreate(&gateway, token, &hold), 403, &words);
    }
    // Its source has it back, by its manifest or by a rollback, and needs no right for that.
    let a = gateway.key(json!({"apply": ["team-a"]}));
    let manifest = reconciliation("team-a", &[stated(&shop(""), &id)]);
    let rollback = json!({"to": revision, "source": "team-a"});
    for (path, body) in [("/reconciliations", manifest), ("/rollbacks", Some(rollback))] {
        let made = gateway.server.call_as(&a, "POST", path, body);
        assert_eq!(made.status, 201, "{path}: {}", made.text);
        assert_eq!(gateway.id("HttpsEdge", "team-a"), id);
        assert_eq!(delete(), 204);
    }
    // Whoever may change both may take it over.
    let both = gateway.key(json!({"apply": ["team-a", "team-b"]}));
    let taken = gateway.server.call_as(&both, "POST", "/reconciliations", reconciliation("team-b", &hold));
    assert_eq!(taken.status, 201, "{}", taken.text);
}

#[test]
fn no_source_has_the_id_of_a_route_of_another_one_on_its_own_edge() {
    let gateway = Gateway::new();
    gateway.apply("team-a", &[shop(""), route("shop", "hr")]);
    let keys = saml_keys(&gateway);
    let id = keys.keys().next().unwrap();
    gateway.apply("team-a", &[shop("")]);
    let adopting = gateway.key(json!({"apply": ["team-b"], "kinds": ["HttpsEdge", "HttpsEdgeRoute"]}));
    let taking = [edge("mine", "b.example.com:443"), stated(&route("mine", "hr"), id)];
    refused(&recreate(&gateway, &adopting, &taking), 403, &[id, "the right to apply source `team-a`"]);
    // Its source has it again, wherever.
    gateway.apply("team-a", &[shop(""), route("shop", "hr")]);
    assert_eq!(saml_keys(&gateway), keys);
}
