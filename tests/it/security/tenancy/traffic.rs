//! What requests meet: hosts, routes, the modules that an edge requires, and certificates.

use serde_json::{Value, json};

use super::gateway::{
    Gateway, SHOP_CHAIN, SHOP_KEY, WILDCARD_CHAIN, WILDCARD_KEY, document, edge, pem, reconciliation, shop,
};
use crate::security::scoped_keys::{key, refused};
use crate::support::{manifests::edge_with, server::Server};

/// The warning about the edge `shop`.
const WITHOUT_CERTIFICATE: &str =
    "this leaves HttpsEdge shop of source `team-a` without a certificate for `shop.example.com`";

pub(super) fn hostport(gateway: &Gateway) {
    let words = ["NOT_DELEGATED", "HttpsEdge `shop` of source `team-a`"];
    // Cookies and certificates know no ports, so another port of a host is the same host.
    for theirs in [
        "shop.example.com:443",
        "SHOP.example.com:443",
        "shop.example.com:8443",
        "*.shop.example.com:80",
        "admin.shop.example.com:443",
        "*.a.shop.example.com:443",
        "*.example.com:443",
        // Browsers try port 80 first.
        "admin.shop.example.com:80",
        "*.a.shop.example.com:80",
        "*.example.com:80",
    ] {
        refused(&gateway.b_applies(&[edge("mine", theirs)]), 409, &words);
    }
    let said = "`*.example.com:80` overlaps with `*.shop.example.com:443` of HttpsEdge `shop` of source `team-a`, because hosts \
                belong to one source on all ports";
    refused(&gateway.b_applies(&[edge("mine", "*.example.com:80")]), 409, &[said]);
    // Clients that connect by the mapped form of an IPv4 address send that as the host.
    gateway.apply("team-c", &[edge("address", "192.0.2.1:443")]);
    for theirs in ["[::ffff:192.0.2.1]:443", "[::ffff:c000:201]:8443"] {
        refused(&gateway.b_applies(&[edge("mine", theirs)]), 409, &["NOT_DELEGATED", "of source `team-c`"]);
    }
    gateway.apply("team-a", &[shop(""), edge("plain", "*.shop.example.com:80")]);
    gateway.apply("team-a", &[shop("")]);
    let made = gateway.b_applies(&[edge("mine", "b.example.com:443")]);
    assert_eq!(made.status, 201, "another host: {}", made.text);
    // The same over the API, for an edge of the source and for one without.
    let own = format!("/edges/https/{}", gateway.id("HttpsEdge", "team-b"));
    let taken = json!({"hostports": ["b.example.com:443", "x.shop.example.com:443"]});
    refused(&gateway.server.call_as(&gateway.b, "PATCH", &own, Some(taken)), 409, &words);
    let kinds = gateway.key(json!({"kinds": ["HttpsEdge"]}));
    for taken in ["x.shop.example.com:443", "x.shop.example.com:80"] {
        let taken = json!({"hostports": [taken]});
        refused(&gateway.server.call_as(&kinds, "POST", "/edges/https", Some(taken)), 409, &words);
    }
    // With consent.
    gateway.apply("team-a", &[shop(", delegates_to: [{source: team-b, path_prefix: /}]")]);
    let made = gateway.b_applies(&[edge("mine", "admin.shop.example.com:443")]);
    assert_eq!(made.status, 201, "{}", made.text);
    // From then on, the closer wildcard or host is theirs.
    let back = shop(", delegates_to: [{source: team-b, path_prefix: /}]").to_string();
    let back: Value = serde_json::from_str(&back.replace("'*.shop", "'admin.shop.example.com:443', '*.shop")).unwrap();
    let plain = [shop(", delegates_to: [{source: team-b, path_prefix: /}]"), edge("plain", "*.shop.example.com:80")];
    for files in [&[back][..], &plain] {
        let answer = gateway.server.call("POST", "/reconciliations", reconciliation("team-a", files));
        refused(&answer, 409, &["NOT_DELEGATED", "`admin.shop.example.com:443`", "source `team-b`"]);
    }
}

pub(super) fn hostport_without_source(gateway: &Gateway) {
    let body = json!({"hostports": ["free.example.com:443", "*.free.example.com:443"]});
    let made = gateway.server.call("POST", "/edges/https", Some(body));
    let id = made.str("/id").to_owned();
    for hostport in ["free.example.com:443", "x.free.example.com:443"] {
        let words = ["NOT_DELEGATED", id.as_str(), "which no source owns"];
        refused(&gateway.b_applies(&[edge("mine", hostport)]), 409, &words);
        let answer =
            gateway.server.call("POST", "/reconciliations", reconciliation("team-b", &[edge("mine", hostport)]));
        refused(&answer, 409, &words);
    }
    // An admin adopts it.
    let text = edge_with(&format!("mine, id: {id}"), "{hostports: ['free.example.com:443']}");
    gateway.apply("team-b", &[json!({"name": "mine.yaml", "text": text})]);
}

pub(super) fn new_host(gateway: &Gateway) {
    let hosts = ["docs.example.com", "*.docs.example.com"];
    let docs = gateway.key(json!({"apply": ["docs"], "kinds": ["HttpsEdge", "HttpsEdgeRoute"], "hosts": hosts}));
    let call = |method: &str, path: &str, body: Value| gateway.server.call_as(&docs, method, path, Some(body));
    let apply = |hostport: &str| {
        gateway.server.call_as(&docs, "POST", "/reconciliations", reconciliation("docs", &[edge("mine", hostport)]))
    };
    refused(&apply("billing.example.com:443"), 403, &["serve `billing.example.com`", "`hosts`"]);
    refused(&apply("*.example.org:443"), 403, &["serve `*.example.org`"]);
    for own in ["docs.example.com:443", "eu.docs.example.com:8443", "*.docs.example.com:443"] {
        let answer = apply(own);
        assert!(matches!(answer.status, 200 | 201), "{own}: {}", answer.text);
    }
    let billing = json!({"hostports": ["billing.example.com:443"]});
    refused(&call("POST", "/edges/https", billing.clone()), 403, &["serve `billing.example.com`"]);
    let path = format!("/edges/https/{}", gateway.id("HttpsEdge", "docs"));
    refused(&call("PATCH", &path, billing), 403, &["serve `billing.example.com`"]);
    // What an edge without a source has stays, and is not for routes of the key.
    let made = gateway.server.call("POST", "/edges/https", Some(json!({"hostports": ["free.example.com:443"]})));
    let free = format!("/edges/https/{}", made.str("/id"));
    let more = json!({"hostports": ["free.example.com:443", "new.docs.example.com:443"]});
    assert_eq!(call("PATCH", &free, more).status, 409, "it is of `docs`");
    // It changes for its other hosts, too.
    let ports = json!({"hostports": ["free.example.com:443", "free.example.com:80"]});
    for body in [ports, json!({"hostports": []}), json!({"description": "theirs"})] {
        refused(&call("PATCH", &free, body), 403, &["serve `free.example.com`"]);
    }
    let passing = call("PUT", &format!("{free}/tls_termination"), json!({"terminate_at": "upstream"}));
    refused(&passing, 403, &["serve `free.example.com`"]);
    refused(&gateway.server.call_as(&docs, "DELETE", &free, None), 403, &["serve `free.example.com`"]);
    let route = json!({"match_type": "path_prefix", "match": "/login/"});
    refused(&call("POST", &format!("{free}/routes"), route.clone()), 403, &["serve `free.example.com`"]);
    let made_route = gateway.server.call("POST", &format!("{free}/routes"), Some(route));
    let route = format!("{free}/routes/{}", made_route.str("/id"));
    refused(&call("PATCH", &route, json!({"match": "/other/"})), 403, &["serve `free.example.com`"]);
    refused(
        &call("PUT", &format!("{route}/backend"), json!({"backend_id": "bkd_b"})),
        403,
        &["serve `free.example.com`"],
    );
    refused(&gateway.server.call_as(&docs, "DELETE", &route, None), 403, &["serve `free.example.com`"]);
    let text = format!("{{edge: {}, match_type: path_prefix, match: /login/}}", made.str("/id"));
    let text = document("HttpsEdgeRoute", "login", &text)["text"].as_str().unwrap().to_owned();
    let text = text.replace("name: login", &format!("name: login, id: {}", made_route.str("/id")));
    let adopting = [edge("mine", "docs.example.com:443"), json!({"name": "login.yaml", "text": text})];
    let adopted = gateway.server.call_as(&docs, "POST", "/reconciliations", reconciliation("docs", &adopting));
    refused(&adopted, 403, &["serve `free.example.com`"]);
    let text = format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: free, id: {}}}\nspec: {{hostports: []}}\n",
        made.str("/id")
    );
    let adopting =
        reconciliation("docs", &[edge("mine", "docs.example.com:443"), json!({"name": "free.yaml", "text": text})]);
    let adopted = gateway.server.call_as(&docs, "POST", "/reconciliations", adopting);
    refused(&adopted, 403, &["serve `free.example.com`"]);
    // Nor does another source give it a host that is not listed.
    let moving = |to: &str| {
        let text = edge_with(&format!("shop, {to}"), "{hostports: ['shop.example.com:443', '*.shop.example.com:443']}");
        json!({"name": "shop.yaml", "text": text})
    };
    gateway.apply("team-a", &[moving("transfer_to: docs")]);
    let taking = reconciliation("docs", &[edge("mine", "docs.example.com:443"), moving("transfer_from: team-a")]);
    let taken = gateway.server.call_as(&docs, "POST", "/reconciliations", taking.clone());
    refused(&taken, 403, &["serve `shop.example.com`"]);
    let taken = gateway.server.call("POST", "/reconciliations", taking);
    assert_eq!(taken.status, 201, "{}", taken.text);
}

pub(super) fn route_without_source(gateway: &Gateway) {
    let made = gateway.server.call("POST", "/edges/https", Some(json!({"hostports": ["free.example.com:443"]})));
    let spec = format!("{{edge: {}, match_type: path_prefix, match: /login/}}", made.str("/id"));
    refused(&gateway.b_applies(&[document("HttpsEdgeRoute", "login", &spec)]), 403, &["HttpsEdge", "no source owns"]);
}

pub(super) fn route(gateway: &Gateway) {
    let route = document("HttpsEdgeRoute", "login", "{edge: shop, match_type: path_prefix, match: /login/}");
    refused(&gateway.b_applies(std::slice::from_ref(&route)), 409, &["NOT_DELEGATED", "`team-a`"]);
    let path = format!("/edges/https/{}/routes", gateway.id("HttpsEdge", "team-a"));
    let body = json!({"match_type": "path_prefix", "match": "/login/"});
    refused(&gateway.server.call_as(&gateway.b, "POST", &path, Some(body)), 403, &["`team-a`"]);
    gateway.apply("team-a", &[shop(", delegates_to: [{source: team-b, path_prefix: /login/}]")]);
    assert_eq!(gateway.b_applies(&[route]).status, 201);
}

pub(super) fn longer_prefix(gateway: &Gateway) {
    let delegates = |more: &str| {
        let guides = "{source: team-c, path_prefix: /docs/guides/}";
        shop(&format!(", delegates_to: [{{source: team-b, path_prefix: /docs/}}, {guides}{more}]"))
    };
    let route = |matched: &str| {
        let spec = format!("{{edge: shop, match_type: path_prefix, match: {matched}}}");
        [document("HttpsEdgeRoute", "docs", &spec)]
    };
    gateway.apply("team-a", &[delegates("")]);
    let guides = document("HttpsEdgeRoute", "guides", "{edge: shop, match_type: path_prefix, match: /docs/guides/}");
    gateway.apply("team-c", &[guides]);
    // What `team-c` leaves.
    for matched in ["/docs/", "/docs/guides-old/", "shop.example.com/docs/api/"] {
        let answer = gateway.b_applies(&route(matched));
        assert!(matches!(answer.status, 200 | 201), "{matched}: {}", answer.text);
    }
    let words = ["NOT_DELEGATED", "`/docs/guides/` of HttpsEdge `shop` is delegated to source `team-c`"];
    let cure = "ask for `{source: team-b, path_prefix: /docs/guides/}` in `delegates_to` of `shop`";
    let with_host = [words[0], words[1], "match `/docs/` without a host, or", cure];
    refused(&gateway.b_applies(&route("shop.example.com/docs/")), 409, &with_host);
    let below = [words[0], words[1], "match paths outside `/docs/guides/`, or", cure];
    refused(&gateway.b_applies(&route("/docs/guides/new/")), 409, &below);
    let path = format!("/edges/https/{}/routes", gateway.id("HttpsEdge", "team-a"));
    let routes = gateway.server.call("GET", &path, None);
    let own = routes.json["routes"].as_array().unwrap().iter().find(|it| it["match"] == "shop.example.com/docs/api/");
    let own = format!("{path}/{}", own.unwrap()["id"].as_str().unwrap());
    let moved = json!({"match": "*.shop.example.com/docs/"});
    refused(&gateway.server.call_as(&gateway.b, "PATCH", &own, Some(moved)), 409, &words);
    // With consent.
    gateway.apply("team-a", &[delegates(", {source: team-b, path_prefix: /docs/guides/}")]);
    assert_eq!(gateway.b_applies(&route("shop.example.com/docs/")).status, 201);
    // What is there stays, and both are told.
    let plan = gateway.server.call("POST", "/reconciliations", reconciliation("team-a", &[delegates("")]));
    assert!(plan.status == 201 && plan.text.contains("does not allow existing routes"), "{}", plan.text);
    let kept = gateway.b_applies(&route("shop.example.com/docs/"));
    assert!(kept.status == 200 && kept.text.contains("the route stays as long as"), "{}", kept.text);
}

pub(super) fn required_module(gateway: &Gateway) {
    let set = document("ModuleSet", "zip", "{compression: {enabled: true}}");
    let shop = shop(", delegates_to: [{source: team-b, path_prefix: /b/}], required_modules: [zip]");
    gateway.apply("team-a", &[set, shop]);
    let route = |more: &str| {
        let spec = format!("{{edge: shop, match_type: path_prefix, match: /b/{more}}}");
        [document("HttpsEdgeRoute", "page", &spec)]
    };
    let answer = gateway.b_applies(&route(", compression: {enabled: false}"));
    refused(&answer, 409, &["REQUIRED_MODULE"]);
    assert_eq!(gateway.b_applies(&route("")).status, 201);
    let edge = gateway.id("HttpsEdge", "team-a");
    let routes = gateway.server.call("GET", &format!("/edges/https/{edge}/routes"), None);
    let path = format!("/edges/https/{edge}/routes/{}/compression", routes.str("/routes/0/id"));
    refused(&gateway.server.call_as(&gateway.b, "DELETE", &path, None), 409, &["REQUIRED_MODULE"]);
    required_by_rollback(gateway);
    required_on_hosts(gateway);
}

/// An edge with required modules leaves no host to another edge, which would serve it without them: not with `/` delegated, and
/// whatever the lints of the request allow.
fn required_on_hosts(gateway: &Gateway) {
    let apps = |more: &str| {
        let hosts = "hostports: ['apps.example.com:443', '*.apps.example.com:443']";
        let delegates = "delegates_to: [{source: team-b, path_prefix: /}]";
        document("HttpsEdge", "apps", &format!("{{{hosts}, {delegates}{more}}}"))
    };
    let applies = |hostport: &str| {
        let mut body = reconciliation("team-b", &[edge("mine", hostport)]).unwrap();
        body["lints"] = json!({"duplicate-hostport": "allow"});
        gateway.server.call_as(&gateway.b, "POST", "/reconciliations", Some(body))
    };
    let said = "`apps.example.com:443` belongs to HttpsEdge `apps` of source `team-d`";
    let patch = |hostports: &[&str]| {
        let path = format!("/edges/https/{}", gateway.id("HttpsEdge", "team-b"));
        gateway.server.call_as(&gateway.b, "PATCH", &path, Some(json!({"hostports": hostports})))
    };
    let set = document("ModuleSet", "zip", "{compression: {enabled: true}}");
    let required = [set, apps(", required_modules: [zip]")];
    let own = "own.apps.example.com:443";
    for (manifests, is_shared) in [(&[apps("")][..], true), (&required[..], false)] {
        gateway.apply("team-d", manifests);
        refused(&applies("apps.example.com:443"), 409, &["NOT_DELEGATED", said]);
        for hostport in ["eu.apps.example.com:443", "apps.example.com:80", "*.eu.apps.example.com:443", own] {
            let answer = applies(hostport);
            // What the source has stays.
            if is_shared || hostport == own {
                assert!(matches!(answer.status, 200 | 201), "{hostport}: {}", answer.text);
            } else {
                refused(&answer, 409, &["NOT_DELEGATED", "an edge with `required_modules` leaves no host to others"]);
            }
        }
        refused(&patch(&[own, "apps.example.com:443"]), 409, &["NOT_DELEGATED", said]);
        let added = patch(&[own, "us.apps.example.com:443"]);
        assert_eq!(added.status, if is_shared { 200 } else { 409 }, "{}", added.text);
        assert_eq!(applies(own).status, if is_shared { 201 } else { 200 });
    }
}

/// A state from before an edge required a module brings back no route without it.
fn required_by_rollback(gateway: &Gateway) {
    let edge = |more: &str| {
        let delegates = "delegates_to: [{source: team-b, path_prefix: /}]";
        document("HttpsEdge", "late", &format!("{{hostports: ['late.example.com:443'], {delegates}{more}}}"))
    };
    gateway.apply("team-c", &[edge("")]);
    let route = [document("HttpsEdgeRoute", "late", "{edge: late, match_type: path_prefix, match: /}")];
    assert_eq!(gateway.b_applies(&route).status, 201);
    let before = gateway.revision();
    let set = document("ModuleSet", "zip", "{compression: {enabled: true}}");
    gateway.apply("team-c", &[set, edge(", required_modules: [zip]")]);
    assert_eq!(gateway.b_applies(&route).status, 201, "the module is added");
    for dry_run in [true, false] {
        let back = json!({"to": before, "source": "team-b", "max_deletes": "100%", "dry_run": dry_run});
        let answer = gateway.server.call_as(&gateway.b, "POST", "/rollbacks", Some(back));
        refused(&answer, 409, &["REQUIRED_MODULE"]);
    }
}

#[test]
fn only_who_may_apply_the_source_of_an_edge_lifts_its_requirement_while_it_is_suspended() {
    let set = "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {name: zip}\nspec: {compression: {enabled: true}}\n---\n";
    let consent = "delegates_to: [{source: docs, path_prefix: /docs/}], required_modules: [zip]";
    let edge = edge_with("shop", &format!("{{hostports: ['shop.example.com:443'], {consent}}}"));
    let server = Server::following("shop", &format!("{set}{edge}"));
    let page = document("HttpsEdgeRoute", "page", "{edge: shop, match_type: path_prefix, match: /docs/}");
    assert_eq!(server.call("POST", "/reconciliations", reconciliation("docs", &[page])).status, 201);
    let edge = server.call("GET", "/edges/https?source=shop", None).str("/https_edges/0/id").to_owned();
    let routes = server.call("GET", &format!("/edges/https/{edge}/routes"), None);
    let path = format!("/edges/https/{edge}/routes/{}/compression", routes.str("/routes/0/id"));
    let [docs, both] = [json!(["docs"]), json!(["docs", "shop"])].map(|apply| key(&server, json!({"apply": apply})).1);
    let delete = |token: &str| server.call_as(token, "DELETE", &path, None);
    refused(&delete(&both), 409, &["REQUIRED_MODULE"]);
    let suspended = server.call("POST", "/sources/shop/suspend", Some(json!({"reason": "an incident"})));
    assert_eq!(suspended.status, 200, "{}", suspended.text);
    refused(&delete(&docs), 409, &["REQUIRED_MODULE"]);
    assert_eq!(delete(&both).status, 204);
}

pub(super) fn certificate(gateway: &Gateway) {
    let theirs = [pem("TlsCertificate", "theirs", &[("certificate_pem", SHOP_CHAIN), ("private_key_pem", SHOP_KEY)])];
    assert_eq!(gateway.b_applies(&theirs).status, 201);
    assert!(gateway.presented().is_empty(), "nobody has named the source");
    let plan = gateway.server.call("POST", "/reconciliations", reconciliation("team-a", &[shop("")]));
    assert!(plan.text.contains("`certificates_from: [team-b]`"), "{}", plan.text);
    // What no source owns counts where there is nothing else.
    let body = json!({"certificate_pem": WILDCARD_CHAIN, "private_key_pem": WILDCARD_KEY});
    let free = gateway.server.call("POST", "/tls_certificates", Some(body)).str("/id").to_owned();
    assert_eq!(gateway.presented(), [free.as_str()]);
    gateway.apply("team-a", &[shop(", certificates_from: [team-b]")]);
    assert_eq!(gateway.presented(), [gateway.id("TlsCertificate", "team-b")]);
    let own = [("certificate_pem", SHOP_CHAIN), ("private_key_pem", SHOP_KEY)];
    gateway.apply("team-a", &[shop(""), pem("TlsCertificate", "own", &own)]);
    assert_eq!(gateway.presented(), [gateway.id("TlsCertificate", "team-a")]);
    // Whoever takes the last one away is told.
    gateway.apply("team-a", &[shop(", certificates_from: [team-b]")]);
    let deleted = gateway.server.call("DELETE", &format!("/tls_certificates/{free}"), None);
    assert_eq!(deleted.status, 204, "{}", deleted.text);
    let taken = gateway.b_applies(&[edge("docs", "docs.example.com:443")]);
    assert!(taken.status == 201 && taken.text.contains(WITHOUT_CERTIFICATE), "{}", taken.text);
    assert!(gateway.presented().is_empty());
}

pub(super) fn shared_certificate(gateway: &Gateway) {
    let theirs = |shared: &[(&str, Value)]| {
        let mut spec = json!({"certificate_pem": SHOP_CHAIN, "private_key_pem": SHOP_KEY});
        spec.as_object_mut().unwrap().extend(shared.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        document("TlsCertificate", "theirs", &spec.to_string())
    };
    let shared_with = |sources: Value| theirs(&[("shared_with", sources)]);
    gateway.apply("team-b", &[theirs(&[])]);
    let from_b = shop(", certificates_from: [team-b]");
    gateway.apply("team-a", std::slice::from_ref(&from_b));
    let id = gateway.id("TlsCertificate", "team-b");
    assert_eq!(gateway.presented(), [id.as_str()], "without the field, every source may");
    for (sources, is_presented) in
        [(json!(["team-c"]), false), (json!(["team-c", "team-a"]), true), (json!([]), false), (Value::Null, false)]
    {
        let answer = gateway.b_applies(&[shared_with(sources.clone())]);
        assert!(matches!(answer.status, 200 | 201), "{}", answer.text);
        assert_eq!(gateway.id("TlsCertificate", "team-b"), id, "it is no new certificate");
        assert_eq!(!gateway.presented().is_empty(), is_presented, "{sources}");
        // Who takes it away is told, and so is who does not get it.
        assert_eq!(answer.text.contains(WITHOUT_CERTIFICATE), sources == json!(["team-c"]) || sources == json!([]));
        let plan = reconciliation("team-a", std::slice::from_ref(&from_b));
        let told = gateway.server.call("POST", "/reconciliations", plan).text;
        let help = "ask the owner of source `team-b` to add `team-a` to `shared_with` of it";
        assert_eq!(told.contains(help), !is_presented, "{sources}: {told}");
    }
    // Over the API, nobody shares it.
    let path = format!("/tls_certificates/{id}");
    let shared = gateway.server.call("PATCH", &path, Some(json!({"shared_with": ["team-a"]})));
    refused(&shared, 400, &["shared_with"]);
    let described = gateway.server.call("PATCH", &path, Some(json!({"description": "of team-b"})));
    assert!(described.status == 200 && !described.text.contains("shared_with"), "{}", described.text);
    assert!(gateway.presented().is_empty());
}

pub(super) fn certificate_without_source(gateway: &Gateway) {
    let post = |scope: Value| {
        let body = json!({"certificate_pem": SHOP_CHAIN, "private_key_pem": SHOP_KEY});
        gateway.server.call_as(&gateway.key(scope), "POST", "/tls_certificates", Some(body))
    };
    for scope in [json!({"kinds": ["TlsCertificate"]}), json!({"kinds": ["TlsCertificate"], "apply": ["team-b"]})] {
        refused(&post(scope), 403, &["no source owns", "`global`"]);
    }
    let made = post(json!({"kinds": ["TlsCertificate"], "global": true}));
    assert_eq!(made.status, 201, "{}", made.text);
    let narrow = gateway.key(json!({"kinds": ["TlsCertificate"]}));
    let path = format!("/tls_certificates/{}", made.str("/id"));
    refused(&gateway.server.call_as(&narrow, "DELETE", &path, None), 403, &["`global`"]);
    // Neither does a source take it away from others, nor give it to them.
    let text = format!(
        "apiVersion: edgewright/v1\nkind: TlsCertificate\nmetadata: {{name: mine, id: {}}}\nspec: {}\n",
        made.str("/id"),
        json!({"certificate_pem": SHOP_CHAIN, "private_key_pem": SHOP_KEY})
    );
    let mine = [json!({"name": "mine.yaml", "text": text})];
    let adopting = gateway.key(json!({"apply": ["team-b"], "kinds": ["TlsCertificate"], "secrets": true}));
    let adopted = gateway.server.call_as(&adopting, "POST", "/reconciliations", reconciliation("team-b", &mine));
    refused(&adopted, 403, &["no source owns", "`global`"]);
    let revision = gateway.revision();
    let adopted = gateway.server.call("POST", "/reconciliations", reconciliation("team-b", &mine));
    assert!(adopted.status == 201 && adopted.text.contains(WITHOUT_CERTIFICATE), "{}", adopted.text);
    assert!(gateway.presented().is_empty());
    let back = json!({"to": revision, "source": "team-b", "max_deletes": "100%"});
    refused(&gateway.server.call_as(&gateway.b, "POST", "/rollbacks", Some(back)), 403, &["no source owns"]);
    assert!(gateway.presented().is_empty());
}

pub(super) fn route_test(gateway: &Gateway) {
    let delegating = || shop(", delegates_to: [{source: team-b, path_prefix: /docs/}]");
    let home = || {
        let spec = "{edge: shop, match_type: path_prefix, match: /, backend: {backend_id: bkd_a}}";
        document("HttpsEdgeRoute", "home", spec)
    };
    let test = |more: &str| {
        let request = "{url: 'https://shop.example.com/docs/a', expect: {route: home}}";
        document("RouteTest", "docs", &format!("{{requests: [{request}]{more}}}"))
    };
    gateway.apply("team-a", &[delegating(), home(), test("")]);
    let docs = document("HttpsEdgeRoute", "docs", "{edge: shop, match_type: path_prefix, match: /docs/}");
    assert_eq!(gateway.b_applies(&[docs]).status, 201, "no test of others refuses it");
    let files = |more: &str| [delegating(), home(), test(more), edge("new", "new.example.com:443")];
    let answer = gateway.server.call("POST", "/reconciliations", reconciliation("team-a", &files("")));
    refused(&answer, 400, &["ROUTE_TEST_FAILED", "the route `docs` of source `team-b` takes it, not `home`"]);
    gateway.apply("team-a", &files(", informing_only: true"));
}

pub(super) fn invariant(gateway: &Gateway) {
    let delegates =
        "delegates_to: [{source: team-b, path_prefix: /docs/}, {source: team-c, path_prefix: /docs/guides/}]";
    let scope = "scope: {path_prefixes: [/docs/guides/]}, requires_any: [oidc]";
    let login = document("Invariant", "login", &format!("{{description: Guides have a login, {scope}}}"));
    gateway.apply("team-a", &[shop(&format!(", {delegates}")), login]);
    let route = |name: &str, matched: &str, more: &str| {
        let backend = "backend: {backend_id: bkd_1}";
        let spec = format!("{{edge: shop, match_type: path_prefix, match: {matched}, {backend}{more}}}");
        [document("HttpsEdgeRoute", name, &spec)]
    };
    let oidc = ", oidc: {issuer: 'https://id.example.com', client_id: guides, client_secret: hidden-secret-0123}";
    gateway.apply("team-c", &route("guides", "/docs/guides/", oidc));
    // Whoever adds what is next is told.
    let added = gateway.b_applies(&route("docs", "/docs/", ""));
    let told = "without route `shop/guides` of source `team-c`, this breaks the invariant `login` of";
    assert!(added.status == 201 && added.text.contains("INVARIANT_BROKEN"), "{}", added.text);
    assert!(added.text.contains(told) && added.text.contains("`login` of source `team-a`"), "{}", added.text);
    // From then on, it is known who has to correct what.
    let c_applies = |matched: &str| {
        let body = reconciliation("team-c", &route("guides", matched, oidc));
        gateway.server.call("POST", "/reconciliations", body)
    };
    let words = [
        "INVARIANT_BROKEN",
        "ask the owner of source `team-b` to correct its route",
        "route `shop/guides` of source `team-c`",
        "or ask the owner of source `team-a` for an exemption",
    ];
    refused(&c_applies("/docs/guides/intro/"), 409, &words);
    let gone =
        gateway.server.call("POST", "/reconciliations", reconciliation("team-c", &[edge("own", "c.example.com:443")]));
    refused(&gone, 409, &words);
    let corrected = gateway.b_applies(&route("docs", "/docs/", oidc));
    assert!(corrected.status == 201 && !corrected.text.contains("INVARIANT_BROKEN"), "{}", corrected.text);
    assert_eq!(c_applies("/docs/guides/intro/").status, 201);
}

#[test]
fn a_declaration_that_is_not_applied_gives_no_right_to_a_host() {
    let gateway = Gateway::new();
    let id = gateway.id("HttpsEdge", "team-a");
    let decoy = edge_with(&format!("decoy, id: {id}"), "{hostports: ['d.example.com:443']}");
    for hostport in ["shop.example.com:443", "pay.shop.example.com:443", "*.shop.example.com:8443"] {
        let files = [json!({"name": "decoy.yaml", "text": decoy}), edge("mine", hostport)];
        let body = json!({"source": "team-b", "files": files, "isolate": true, "max_deletes": "100%"});
        let answer = gateway.server.call_as(&gateway.b, "POST", "/reconciliations", Some(body));
        assert!(answer.text.contains("NOT_DELEGATED") && answer.text.contains("OWNER_CONFLICT"), "{}", answer.text);
    }
    let edges = gateway.server.call("GET", "/edges/https?source=team-b", None);
    assert_eq!(edges.json["https_edges"], json!([]), "{}", edges.text);
}

#[test]
fn a_wildcard_below_a_delegated_one_has_no_host_of_a_third_source() {
    let gateway = Gateway::new();
    let delegates = "delegates_to: [{source: team-b, path_prefix: /}, {source: team-c, path_prefix: /}]";
    let spec = format!("{{hostports: ['*.apps.example.com:443'], {delegates}}}");
    gateway.apply("platform", &[document("HttpsEdge", "apps", &spec)]);
    gateway.apply("team-c", &[edge("pay", "pay.c.apps.example.com:443")]);
    refused(&gateway.b_applies(&[edge("mine", "*.c.apps.example.com:443")]), 409, &["NOT_DELEGATED", "team-c"]);
    assert_eq!(gateway.b_applies(&[edge("mine", "*.b.apps.example.com:443")]).status, 201);
    // A hostport that the source has moves between its edges, whoever has another port of the host.
    assert_eq!(gateway.b_applies(&[edge("other", "*.b.apps.example.com:443")]).status, 201);
}
