//! Kinds that concern everybody, and what a source has for itself alone.

use serde_json::{Value, json};

use super::gateway::{Gateway, TLS_EDGE, document, reconciliation, shop};
use crate::security::scoped_keys::refused;

pub(super) fn global_kind(gateway: &Gateway) {
    let locked = document("IpRestriction", "all", "{type: endpoints, enforced: true, ip_policy_ids: [ipp_1]}");
    refused(&gateway.b_applies(&[locked]), 403, &["IpRestriction", "`global`"]);
    // What may not be declared is not proven first: neither its answer nor its time tells anything.
    let tls = "{description: d, scope: {hosts: [shop.example.com]}, min_tls_version: '1.3'}";
    refused(&gateway.b_applies(&[document("Invariant", "tls", tls)]), 403, &["Invariant", "`global`"]);
    let body = json!({"type": "endpoints", "enforced": true, "ip_policy_ids": ["ipp_1"]});
    let post =
        |scope: Value| gateway.server.call_as(&gateway.key(scope), "POST", "/ip_restrictions", Some(body.clone()));
    refused(&post(json!({"kinds": ["IpRestriction"]})), 403, &["`global`"]);
    assert_eq!(post(json!({"kinds": ["IpRestriction"], "global": true})).status, 201);
}

pub(super) fn api_key(gateway: &Gateway) {
    let stolen = document("ApiKey", "stolen", "{owner_id: usr_admin, token_file: /tmp/stolen.txt}");
    let answer = gateway.b_applies(&[stolen]);
    refused(&answer, 403, &["`ApiKey` in `kinds`"]);
    let own = gateway.key(json!({"kinds": ["ApiKey"], "apply": ["team-b"]}));
    let wider = json!({"owner_id": "bot_team", "scope": {"apply": ["team-a"]}});
    assert_eq!(gateway.server.call_as(&own, "POST", "/api_keys", Some(wider)).status, 403);
    let global = json!({"owner_id": "bot_team", "scope": {"kinds": ["ApiKey"], "global": true}});
    assert_eq!(gateway.server.call_as(&own, "POST", "/api_keys", Some(global)).status, 403);
}

pub(super) fn event_source(gateway: &Gateway) {
    // Each source has its own subscription of a name, so one that is shared has an ID.
    let named = |event: &str| document("EventSubscription", "audit", &format!("{{sources: [{{type: {event}}}]}}"));
    assert_eq!(gateway.b_applies(&[named("ip_policy_created.v0")]).status, 201);
    gateway.apply("team-a", &[shop(""), named("ip_policy_created.v0")]);
    let answer = gateway.b_applies(&[named("ip_policy_created.v0")]);
    assert_eq!(answer.status, 200, "{}", answer.text);
    let subscription = |event: &str| {
        let text = named(event)["text"].as_str().unwrap().replace("name: audit", "name: shared, id: esb_1");
        json!({"name": "shared.yaml", "text": text})
    };
    gateway.apply("team-a", &[shop(""), subscription("ip_policy_created.v0")]);
    refused(&gateway.b_applies(&[subscription("ip_policy_updated.v0")]), 403, &["`team-a`"]);
    refused(&gateway.b_applies(&[subscription("ip_policy_created.v0")]), 409, &["OWNER_CONFLICT"]);
}

pub(super) fn event_subscription(gateway: &Gateway) {
    let stated = |event: &str| {
        let text = format!(
            "apiVersion: edgewright/v1\nkind: EventSubscription\nmetadata: {{name: audit, id: esb_1}}\nspec: {{sources: [{{type: {event}}}]}}\n"
        );
        json!({"name": "audit.yaml", "text": text})
    };
    let created = stated("ip_policy_created.v0");
    let words = ["EventSubscription esb_1 by its ID", "`EventSubscription` in `kinds`"];
    refused(&gateway.b_applies(std::slice::from_ref(&created)), 403, &words);
    let a_applies = |scope: Value, subscription: Value| {
        let body = reconciliation("team-a", &[shop(""), subscription]);
        gateway.server.call_as(&gateway.key(scope), "POST", "/reconciliations", body)
    };
    let made = a_applies(json!({"apply": ["team-a"], "kinds": ["EventSubscription"]}), created.clone());
    assert_eq!(made.status, 201, "{}", made.text);
    refused(&gateway.b_applies(&[created]), 409, &["OWNER_CONFLICT"]);
    // From then on, its types are those of the source.
    let changed = a_applies(json!({"apply": ["team-a"]}), stated("ip_policy_updated.v0"));
    assert_eq!(changed.status, 201, "{}", changed.text);
}

pub(super) fn tls_edge(gateway: &Gateway) {
    let stated = json!({"name": "mail.yaml", "text": TLS_EDGE});
    refused(&gateway.b_applies(std::slice::from_ref(&stated)), 403, &["edgtls_0001", "`TlsEdge` in `kinds`"]);
    let own = document("TlsEdge", "mail", "{backend: {backend_id: bkd_b}}");
    assert_eq!(gateway.b_applies(&[own]).status, 201, "one with an ID of its own");
    gateway.apply("team-a", &[shop(""), stated.clone()]);
    refused(&gateway.b_applies(std::slice::from_ref(&stated)), 409, &["OWNER_CONFLICT"]);
    // After its deletion, whoever had it declares it again, and nobody else.
    let delete = || gateway.server.call("DELETE", "/edges/tls/edgtls_0001/backend", None).status;
    assert_eq!(delete(), 204);
    let words = ["edgtls_0001", "the right to apply source `team-a`"];
    refused(&gateway.b_applies(std::slice::from_ref(&stated)), 403, &words);
    gateway.apply("team-b", std::slice::from_ref(&stated));
    assert_eq!(delete(), 204);
    let again = gateway.b_applies(&[stated]);
    assert_eq!(again.status, 201, "{}", again.text);
}

pub(super) fn module_set(gateway: &Gateway) {
    let set = document("ModuleSet", "login", "{compression: {enabled: false}}");
    assert_eq!(gateway.b_applies(std::slice::from_ref(&set)).status, 200, "it is for `team-b` alone");
    let route = ", routes: [{match_type: path_prefix, match: /, modules_from: [login]}]";
    let answer = gateway.server.call("POST", "/reconciliations", reconciliation("team-a", &[shop(route)]));
    refused(&answer, 400, &["UNKNOWN_REFERENCE", "`login`"]);
}
