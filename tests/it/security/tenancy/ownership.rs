//! Whose a resource is: names and IDs, and how it changes hands, is deleted or comes back.

use serde_json::{Value, json};

use super::gateway::{
    AUTHORITY, Gateway, SHOP_CHAIN, SHOP_KEY, WILDCARD_CHAIN, WILDCARD_KEY, document, edge, pem, reconciliation, shop,
};
use crate::security::scoped_keys::refused;
use crate::support::manifests::edge_with;

pub(super) fn name(gateway: &Gateway) {
    let authority = pem("CertificateAuthority", "staff", &[("ca_pem", AUTHORITY)]);
    gateway.apply("platform", std::slice::from_ref(&authority));
    let shop = |name: &str| shop(&format!(", mutual_tls: {{certificate_authority_ids: ['{name}']}}"));
    gateway.apply("team-a", &[shop("staff")]);
    let trusted = |gateway: &Gateway| {
        let edge = format!("/edges/https/{}", gateway.id("HttpsEdge", "team-a"));
        gateway.server.call("GET", &edge, None).str("/mutual_tls/certificate_authorities/0/id").to_owned()
    };
    let before = trusted(gateway);
    assert_eq!(before, gateway.id("CertificateAuthority", "platform"));
    // Its own resource of the name, which no reference of others turns to.
    let other = pem("CertificateAuthority", "staff", &[("ca_pem", AUTHORITY), ("description", "of team-b")]);
    assert_eq!(gateway.b_applies(&[other]).status, 201);
    let again = gateway.server.call("POST", "/reconciliations", reconciliation("team-a", &[shop("staff")]));
    assert_eq!((again.status, trusted(gateway)), (200, before.clone()), "{}", again.text);
    let new = document(
        "HttpsEdge",
        "new",
        "{hostports: ['new.example.com:443'], mutual_tls: {certificate_authority_ids: [staff]}}",
    );
    let answer = gateway.server.call("POST", "/reconciliations", reconciliation("team-a", &[shop("staff"), new]));
    refused(&answer, 409, &["AMBIGUOUS_REFERENCE", "source `platform`", "source `team-b`", "`platform/staff`"]);
    gateway.apply("team-a", &[shop("platform/staff")]);
    assert_eq!(trusted(gateway), before);
    // The platform gives the name up, so that only `team-b` has it.
    let text = authority["text"].as_str().unwrap().replace("name: staff", "name: people, renamed_from: staff");
    gateway.apply("platform", &[json!({"name": "people.yaml", "text": text})]);
    let answer = gateway.server.call("POST", "/reconciliations", reconciliation("team-a", &[shop("staff")]));
    refused(&answer, 409, &["AMBIGUOUS_REFERENCE", "`platform/people` or `team-b/staff`"]);
    gateway.apply("team-a", &[shop("platform/people")]);
    assert_eq!(trusted(gateway), before);

    // An edge of the same name does not move routes, and does not stop the source that had the name first.
    gateway.apply(
        "platform",
        &[json!({"name": "people.yaml", "text": text}), {
            let spec = "{hostports: ['p.example.com:443'], delegates_to: [{source: team-c, path_prefix: /}]}";
            document("HttpsEdge", "shared", spec)
        }],
    );
    let login = [document("HttpsEdgeRoute", "login", "{edge: shared, match_type: path_prefix, match: /login}")];
    gateway.apply("team-c", &login);
    let spec = "{hostports: ['b.example.com:443'], delegates_to: [{source: team-c, path_prefix: /}]}";
    assert_eq!(gateway.b_applies(&[document("HttpsEdge", "shared", spec)]).status, 201);
    let again = gateway.server.call("POST", "/reconciliations", reconciliation("team-c", &login));
    assert_eq!(again.status, 200, "{}", again.text);
    assert_eq!(gateway.b_applies(&[edge("shop", "b.example.com:443")]).status, 201, "a name of `team-a`");
}

pub(super) fn id(gateway: &Gateway) {
    let id = gateway.id("HttpsEdge", "team-a");
    let text = edge_with(&format!("mine, id: {id}"), "{hostports: []}");
    let answer = gateway.b_applies(&[json!({"name": "mine.yaml", "text": text})]);
    refused(&answer, 409, &["OWNER_CONFLICT", "`team-a`"]);
    let path = format!("/edges/https/{id}");
    refused(&gateway.server.call_as(&gateway.b, "PATCH", &path, Some(json!({"hostports": []}))), 403, &["`team-a`"]);
    refused(&gateway.server.call_as(&gateway.b, "DELETE", &path, None), 403, &["`team-a`"]);
    // Whatever else the resource of the ID is.
    let theirs = [("certificate_pem", SHOP_CHAIN), ("private_key_pem", SHOP_KEY)];
    gateway.apply("team-a", &[shop(""), pem("TlsCertificate", "shop", &theirs)]);
    let id = gateway.id("TlsCertificate", "team-a");
    let other =
        pem("TlsCertificate", "mine", &[("certificate_pem", WILDCARD_CHAIN), ("private_key_pem", WILDCARD_KEY)]);
    let text = other["text"].as_str().unwrap().replace("{name: mine}", &format!("{{name: mine, id: {id}}}"));
    let answer = gateway.b_applies(&[json!({"name": "mine.yaml", "text": text})]);
    refused(&answer, 409, &["OWNER_CONFLICT", "`team-a`"]);
}

pub(super) fn transfer(gateway: &Gateway) {
    let body = json!({"from": "team-a", "to": "team-b", "all": true});
    refused(&gateway.server.call_as(&gateway.b, "POST", "/transfers", Some(body)), 403, &["`team-a`"]);
    let text = shop("")["text"].as_str().unwrap().replace("name: shop", "name: shop, transfer_from: team-a");
    let answer = gateway.b_applies(&[json!({"name": "shop.yaml", "text": text})]);
    assert_eq!(answer.status, 200, "it waits: {}", answer.text);
    assert!(answer.text.contains("TRANSFER_PENDING"), "{}", answer.text);
    assert!(gateway.id("HttpsEdge", "team-a").starts_with("edghts_"));
}

pub(super) fn adoption(gateway: &Gateway) {
    let made = gateway.server.call("POST", "/edges/https", Some(json!({"hostports": ["free.example.com:443"]})));
    let text = format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: mine, id: {}}}\nspec: {{hostports: []}}\n",
        made.str("/id")
    );
    let answer = gateway.b_applies(&[json!({"name": "mine.yaml", "text": text})]);
    refused(&answer, 403, &["no source owns"]);
    adopted_route(gateway);
}

/// A route without a source belongs to its edge: a team takes over one whose path is delegated to it, and no other one, whatever
/// path it would have from then on.
fn adopted_route(gateway: &Gateway) {
    gateway.apply("team-a", &[shop(", delegates_to: [{source: team-b, path_prefix: /docs/}]")]);
    let b = gateway.key(json!({"apply": ["team-b"], "kinds": ["HttpsEdgeRoute"]}));
    let routes = format!("/edges/https/{}/routes", gateway.id("HttpsEdge", "team-a"));
    let words = ["update resources of source `team-a`"];
    let present = ["NOT_DELEGATED", "the present match `/admin/`", "ask for `{source: team-b, path_prefix: /admin/}`"];
    for (matched, is_delegated) in [("/admin/", false), ("/docs/old/", true)] {
        let made = gateway.server.call("POST", &routes, Some(json!({"match_type": "path_prefix", "match": matched})));
        let (id, before) = (made.str("/id").to_owned(), gateway.revision());
        let spec = "{edge: shop, match_type: path_prefix, match: /docs/new/}";
        let manifest = document("HttpsEdgeRoute", "mine", spec).to_string();
        let adopting = manifest.replace("{name: mine}", &format!("{{name: mine, id: {id}}}"));
        let adopting = reconciliation("team-b", &[serde_json::from_str(&adopting).unwrap()]);
        let moved = json!({"match": "/docs/new/"});
        let patched = gateway.server.call_as(&b, "PATCH", &format!("{routes}/{id}"), Some(moved));
        refused(&patched, 403, &words);
        let adopted = gateway.server.call_as(&b, "POST", "/reconciliations", adopting.clone());
        if is_delegated {
            assert_eq!(adopted.status, 201, "{}", adopted.text);
            continue;
        }
        refused(&adopted, 409, &present);
        // Whoever applies the source.
        refused(&gateway.server.call("POST", "/reconciliations", adopting.clone()), 409, &present);
        // Nor by a rollback, after its source had it by a consent that is withdrawn, and an admin has given it up.
        let delegating = |more: &str| {
            let docs = "{source: team-b, path_prefix: /docs/}";
            gateway.apply("team-a", &[shop(&format!(", delegates_to: [{docs}{more}]"))]);
        };
        let back = |revision: u64| Some(json!({"to": revision, "source": "team-b", "max_deletes": "100%"}));
        delegating(", {source: team-b, path_prefix: /admin/}");
        let adopted = gateway.server.call_as(&b, "POST", "/reconciliations", adopting);
        assert_eq!(adopted.status, 201, "{}", adopted.text);
        let taken = gateway.revision();
        delegating("");
        let given_up = gateway.server.call("POST", "/rollbacks", back(before));
        assert_eq!(given_up.status, 201, "{}", given_up.text);
        refused(&gateway.server.call_as(&b, "POST", "/rollbacks", back(taken)), 403, &words);
    }
}

pub(super) fn release(gateway: &Gateway) {
    let made = gateway.server.call("POST", "/edges/https", Some(json!({"hostports": ["free.example.com:443"]})));
    let revision = gateway.revision();
    let text = format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: mine, id: {}}}\nspec: {{hostports: ['free.example.com:443']}}\n",
        made.str("/id")
    );
    gateway.apply("team-b", &[json!({"name": "mine.yaml", "text": text})]);
    let back = json!({"to": revision, "source": "team-b", "max_deletes": "100%"});
    refused(&gateway.server.call_as(&gateway.b, "POST", "/rollbacks", Some(back)), 403, &["no source owns"]);
}

/// On an edge that no source owns, whoever can adopt a route can release it where it is, and nowhere else.
#[test]
fn a_rollback_releases_a_route_where_it_was_adopted() {
    let gateway = Gateway::new();
    let made = gateway.server.call("POST", "/edges/https", Some(json!({"hostports": ["free.example.com:443"]})));
    let edge = made.str("/id").to_owned();
    let body = json!({"match_type": "path_prefix", "match": "/docs/"});
    let made = gateway.server.call("POST", &format!("/edges/https/{edge}/routes"), Some(body));
    let revision = gateway.revision();
    let adopting = |matched: &str| {
        let spec = format!("{{edge: {edge}, match_type: path_prefix, match: {matched}}}");
        let text = document("HttpsEdgeRoute", "mine", &spec)["text"].as_str().unwrap().to_owned();
        let text = text.replace("{name: mine}", &format!("{{name: mine, id: {}}}", made.str("/id")));
        reconciliation("team-b", &[json!({"name": "mine.yaml", "text": text})])
    };
    let b = gateway.key(json!({"apply": ["team-b"], "kinds": ["HttpsEdgeRoute"]}));
    let back = |token: &str| {
        let back = json!({"to": revision, "source": "team-b", "max_deletes": "100%"});
        gateway.server.call_as(token, "POST", "/rollbacks", Some(back))
    };
    let adopted = gateway.server.call_as(&b, "POST", "/reconciliations", adopting("/docs/"));
    assert_eq!(adopted.status, 201, "{}", adopted.text);
    refused(&back(&gateway.b), 403, &["resources of kind HttpsEdgeRoute that no source owns"]);
    let released = back(&b);
    assert_eq!(released.status, 201, "{}", released.text);
    // With another match, it takes other requests of the edge.
    for matched in ["/docs/", "/docs/new/"] {
        let adopted = gateway.server.call("POST", "/reconciliations", adopting(matched));
        assert_eq!(adopted.status, 201, "{}", adopted.text);
    }
    refused(&back(&b), 403, &["resources of kind HttpsEdge that no source owns"]);
}

/// A route without a source belongs to its edge, so that nobody gives one up on the edge of another source: neither where that no
/// longer consents, nor without its modules.
#[test]
fn a_rollback_releases_no_route_on_the_edge_of_another_source() {
    let gateway = Gateway::new();
    let consent = ", delegates_to: [{source: team-b, path_prefix: /docs/}]";
    gateway.apply("team-a", &[shop(consent)]);
    let routes = format!("/edges/https/{}/routes", gateway.id("HttpsEdge", "team-a"));
    let made = gateway.server.call("POST", &routes, Some(json!({"match_type": "path_prefix", "match": "/docs/"})));
    let revision = gateway.revision();
    let spec = "{edge: shop, match_type: path_prefix, match: /docs/new/}";
    let text = document("HttpsEdgeRoute", "mine", spec)["text"].as_str().unwrap().to_owned();
    let text = text.replace("{name: mine}", &format!("{{name: mine, id: {}}}", made.str("/id")));
    let adopting = reconciliation("team-b", &[json!({"name": "mine.yaml", "text": text})]);
    let b = gateway.key(json!({"apply": ["team-b"], "kinds": ["HttpsEdgeRoute"]}));
    let adopted = gateway.server.call_as(&b, "POST", "/reconciliations", adopting.clone());
    assert_eq!(adopted.status, 201, "{}", adopted.text);
    let back = || Some(json!({"to": revision, "source": "team-b", "max_deletes": "100%"}));
    refused(&gateway.server.call_as(&b, "POST", "/rollbacks", back()), 403, &["update resources of source `team-a`"]);
    // Whoever may change both leaves no module out.
    let set = document("ModuleSet", "zip", "{compression: {enabled: true}}");
    gateway.apply("team-a", &[set, shop(&format!("{consent}, required_modules: [zip]"))]);
    let synced = gateway.server.call_as(&b, "POST", "/reconciliations", adopting);
    assert_eq!(synced.status, 201, "{}", synced.text);
    let both = gateway.key(json!({"apply": ["team-a", "team-b"], "kinds": ["HttpsEdgeRoute"]}));
    refused(&gateway.server.call_as(&both, "POST", "/rollbacks", back()), 409, &["REQUIRED_MODULE"]);
    gateway.apply("team-a", &[shop(consent)]);
    let released = gateway.server.call_as(&both, "POST", "/rollbacks", back());
    assert_eq!(released.status, 201, "{}", released.text);
}

pub(super) fn deletion(gateway: &Gateway) {
    let authority = pem("CertificateAuthority", "staff", &[("ca_pem", AUTHORITY)]);
    let empty = edge("mine", "b.example.com:443");
    assert_eq!(gateway.b_applies(&[authority, empty.clone()]).status, 201);
    gateway.apply("team-a", &[shop(", mutual_tls: {certificate_authority_ids: [staff]}")]);
    let authorities = || gateway.server.call("GET", "/certificate_authorities?source=team-b", None);
    let count = || authorities().json["certificate_authorities"].as_array().unwrap().len();
    // It stays, and does not hold back what else its source changes.
    let changed = document("HttpsEdge", "mine", "{hostports: ['b.example.com:443'], description: changed}");
    let answer = gateway.b_applies(std::slice::from_ref(&changed));
    assert_eq!(answer.status, 201, "{}", answer.text);
    for words in ["IN_USE", "CertificateAuthority staff", "is kept", "of source `team-a`", "HttpsEdge-shop.yaml:"] {
        assert!(answer.text.contains(words), "{words} in {}", answer.text);
    }
    let again = gateway.b_applies(std::slice::from_ref(&changed));
    assert!(again.status == 200 && again.text.contains("is kept"), "{}", again.text);
    assert_eq!(count(), 1);
    let path = format!("/certificate_authorities/{}", gateway.id("CertificateAuthority", "team-b"));
    assert_eq!(gateway.server.call("DELETE", &path, None).status, 409);
    // Once the other source has let go, it goes.
    gateway.apply("team-a", &[shop("")]);
    let last = gateway.b_applies(&[changed]);
    assert!(last.status == 201 && !last.text.contains("is kept"), "{}", last.text);
    assert_eq!(count(), 0);
    kept_edge(gateway);
}

/// An edge with routes of another source stays with what their requests meet: its hostports and its certificates.
fn kept_edge(gateway: &Gateway) {
    let pair = [("certificate_pem", SHOP_CHAIN), ("private_key_pem", SHOP_KEY)];
    let certificate = pem("TlsCertificate", "shop", &pair);
    let own = ", delegates_to: [{source: team-b, path_prefix: /b/}], routes: [{name: own, match_type: path_prefix, match: /a/}]";
    gateway.apply("team-a", &[shop(own), certificate]);
    let mine = edge("mine", "b.example.com:443");
    let page = document("HttpsEdgeRoute", "page", "{edge: shop, match_type: path_prefix, match: /b/}");
    assert_eq!(gateway.b_applies(&[mine.clone(), page.clone()]).status, 201);
    let presented = gateway.presented();
    let other = edge("other", "other.example.com:443");
    gateway.apply("team-a", std::slice::from_ref(&other));
    assert_eq!((gateway.presented(), presented.len()), (presented, 1));
    let shown = gateway.server.call("GET", "/edges/https?source=team-a&name=shop", None);
    assert_eq!(shown.str("/https_edges/0/routes/0/match"), "/b/", "{}", shown.text);
    assert_eq!(shown.json["https_edges"][0]["routes"].as_array().map(Vec::len), Some(1), "{}", shown.text);
    assert_eq!(gateway.b_applies(&[mine.clone(), page]).status, 200, "the other source has nothing to do");
    assert_eq!(gateway.b_applies(&[mine]).status, 201);
    gateway.apply("team-a", &[other]);
    let left = gateway.server.call("GET", "/tls_certificates?source=team-a", None);
    assert_eq!(left.json["tls_certificates"], json!([]), "{}", left.text);
}

#[test]
fn whoever_may_not_delete_routes_of_others_with_an_edge_is_told_which() {
    let gateway = Gateway::new();
    let consent = "delegates_to: [{source: team-c, path_prefix: /c/}]";
    let mine = document("HttpsEdge", "mine", &format!("{{hostports: ['b.example.com:443'], {consent}}}"));
    assert_eq!(gateway.b_applies(&[mine]).status, 201);
    gateway.apply("team-c", &[document("HttpsEdgeRoute", "page", "{edge: mine, match_type: path_prefix, match: /c/}")]);
    let destroy = |body: Value| gateway.server.call_as(&gateway.b, "POST", "/sources/team-b/destroy", Some(body));
    let dry = destroy(json!({"dry_run": true}));
    let words = ["IN_USE", "HttpsEdgeRoute mine/page of source `team-c`"];
    refused(&dry, 200, &words);
    refused(&destroy(json!({"expect": dry.str("/outcome")})), 409, &words);
    let path = format!("/edges/https/{}", gateway.id("HttpsEdge", "team-b"));
    let deleted = gateway.server.call_as(&gateway.b, "DELETE", &path, None);
    refused(&deleted, 403, &["delete HttpsEdgeRoute edghtsrt_", "of source `team-c`"]);
}

pub(super) fn tls_termination(gateway: &Gateway) {
    gateway.apply("team-a", &[shop(", delegates_to: [{source: team-b, path_prefix: /b/}]")]);
    let page = |more: &str| {
        let spec = format!("{{edge: shop, match_type: path_prefix, match: /b/{more}}}");
        [document("HttpsEdgeRoute", "page", &spec)]
    };
    assert_eq!(gateway.b_applies(&page(", compression: {enabled: true}")).status, 201);
    let new = edge("new", "new.example.com:443");
    let passing = [shop(", tls_termination: {terminate_at: upstream}"), new.clone()];
    let answer = gateway.server.call("POST", "/reconciliations", reconciliation("team-a", &passing));
    refused(&answer, 400, &["NOT_ALLOWED", "shop/page of source `team-b`", "ask the owner of source `team-b`"]);
    // Everything else is applied, and the rest once the module is gone.
    gateway.apply("team-a", &[shop(""), new]);
    assert_eq!(gateway.b_applies(&page("")).status, 201);
    gateway.apply("team-a", &passing);
}

pub(super) fn rollback(gateway: &Gateway) {
    gateway.apply("team-a", &[shop(", description: second")]);
    let revision = gateway.server.call("GET", "/history", None);
    let to = revision.json["history"][1]["revision"].as_u64().unwrap_or(1);
    refused(&gateway.server.call_as(&gateway.b, "POST", "/rollbacks", Some(json!({"to": to}))), 403, &["team-a"]);
    let body = json!({"to": to, "source": "team-a"});
    refused(&gateway.server.call_as(&gateway.b, "POST", "/rollbacks", Some(body)), 403, &["team-a"]);
}

/// A share is filled in tests/it/store/history_shares.rs; here, each owner has its own.
pub(super) fn history(gateway: &Gateway) {
    let own = edge("mine", "b.example.com:443");
    assert_eq!(gateway.b_applies(&[own]).status, 201);
    let path = format!("/edges/https/{}", gateway.id("HttpsEdge", "team-b"));
    let patched = |number: usize| {
        let body = json!({"description": format!("{number}{}", "x".repeat(200))});
        gateway.server.call_as(&gateway.b, "PATCH", &path, Some(body)).status
    };
    assert_eq!([1, 2].map(patched), [200; 2]);
    gateway.apply("team-a", &[shop(", description: still recorded")]);
}

#[test]
fn what_a_source_offers_is_taken_over_with_a_key_of_the_receiver() {
    let gateway = Gateway::new();
    let marked = |marker: &str| {
        let text = edge("mine", "b.example.com:443")["text"].as_str().unwrap().to_owned();
        json!({"name": "mine.yaml", "text": text.replace("name: mine", &format!("name: mine, {marker}"))})
    };
    assert_eq!(gateway.b_applies(&[edge("mine", "b.example.com:443")]).status, 201);
    assert_eq!(gateway.b_applies(&[marked("transfer_to: team-d")]).status, 201);
    let d = gateway.key(json!({"apply": ["team-d"]}));
    let taken = gateway.server.call_as(
        &d,
        "POST",
        "/reconciliations",
        reconciliation("team-d", &[marked("transfer_from: team-b")]),
    );
    assert_eq!(taken.status, 201, "{}", taken.text);
    assert!(gateway.id("HttpsEdge", "team-d").starts_with("edghts_"));
}
