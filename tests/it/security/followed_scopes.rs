//! What a followed source may declare and take over: as much as its `scope` says, and nothing of others (D112).

use serde_json::{Value, json};

use super::tenancy::gateway::{TLS_EDGE, document, edge};
use crate::support::{
    git::git,
    program::{CONFIG, Folder, Serve, until},
    sources::{in_state, repository, status},
};

/// The scope of a repository that declares keys of editors.
const EDITORS: &str = ", scope: {kinds: [HttpsEdge, ApiKey], roles: [editor], token_folder: tokens}";

/// Commits a file of the repository, and waits for what a server says of it.
fn says_of_commit(folder: &Folder, file: &str, text: &str, words: &str) {
    folder.write(&format!("repo/edge/{file}"), text);
    git(folder, "-C repo add -A .");
    git(folder, "-C repo commit -q -m next");
    let serve = folder.serve("");
    serve.wait_for(words);
    serve.stop();
}

#[test]
fn a_followed_repository_declares_what_its_scope_says() {
    let folder = repository();
    let stolen = folder.path("stolen.txt");
    let admin = "{owner_id: usr_root, token_file: ../../stolen.txt}";
    let own = edge("one", "one.example.com:443")["text"].as_str().unwrap().to_owned();
    let applied = |scope: &str, kind: &str, spec: &str| {
        let manifest = document(kind, "more", spec);
        folder.write("repo/edge/one.yaml", &format!("{own}---\n{}", manifest["text"].as_str().unwrap()));
        git(&folder, "-C repo commit -q -a -m next");
        folder.write(CONFIG, &format!("sources:\n- {{name: shop, repository: repo, ref: main, path: edge{scope}}}\n"));
        folder.serve("")
    };
    folder.ok("keys create --owner usr_root --role admin");
    folder.write("tokens/readme.txt", "tokens\n");
    for (scope, kind, spec, words) in [
        ("", "ApiKey", admin, "may not declare resources of kind ApiKey"),
        ("", "IpRestriction", "{type: endpoints, enforced: true}", "may not declare resources of kind IpRestriction"),
        (EDITORS, "ApiKey", "{token_file: ../../tokens/a.token}", "API keys without a `scope`"),
        (", scope: {kinds: ['*'], token_folder: .}", "ApiKey", admin, "`usr_root`, which has the role `admin`"),
        (", scope: {hosts: [one.example.com]}", "HttpsEdge", "{hostports: ['two.example.com:443']}", "may not serve"),
        (
            ", scope: {kinds: [HttpsEdge, ApiKey], hosts: [one.example.com], roles: [editor], token_folder: tokens}",
            "ApiKey",
            "{scope: {apply: [shop]}, token_file: ../../tokens/a.token}",
            "more rights than its own: `hosts`",
        ),
    ] {
        let serve = applied(scope, kind, spec);
        serve.wait_for(words);
        serve.wait_for("edge/one.yaml");
        assert!(!stolen.exists());
        serve.stop();
    }
    // The token goes into the folder that the configuration names, and nowhere else.
    let own = "scope: {apply: [shop]}";
    let serve = applied(EDITORS, "ApiKey", &format!("{{{own}, token_file: ../../stolen.txt}}"));
    serve.wait_for("`token_file` must be inside");
    serve.stop();
    applied(EDITORS, "ApiKey", &format!("{{{own}, token_file: ../../tokens/shop.token}}")).stop();
    assert!(!stolen.exists() && folder.read("tokens/shop.token").starts_with("ew_ak_"));
    // A mistake in the scope is an error at its line.
    for (scope, words) in [
        ("{kinds: [HttpEdge]}", "did you mean `HttpsEdge`?"),
        ("{kinds: ['*']}", "`token_folder` is required"),
        ("{token_folder: nowhere}", "cannot use nowhere"),
        ("{hosts: ['one.example.com:443']}", "`one.example.com:443` is not a host"),
        ("{owners: [bot_docs, docs]}", "`docs` is not an owner ID"),
    ] {
        folder.write(CONFIG, &format!("sources:\n- {{name: shop, repository: repo, scope: {scope}}}\n"));
        let run = folder.run("validate repo/edge");
        assert_eq!(run.code, 1, "{}", run.all());
        assert!(run.err.contains(words) && run.err.contains("(line 2)"), "{}", run.err);
    }
}

#[test]
fn a_followed_repository_declares_no_key_of_an_owner_with_keys_of_others() {
    let folder = repository();
    folder.write("tokens/readme.txt", "tokens\n");
    let create = |owner: &str| folder.ok(&format!("keys create --owner {owner} --role editor --apply other"));
    let key = |name: &str, owner: &str, description: &str| {
        let token = format!("token_file: ../../tokens/{owner}-{name}.token");
        let spec = format!("{{owner_id: {owner}, description: {description}, scope: {{apply: [shop]}}, {token}}}");
        document("ApiKey", name, &spec)["text"].as_str().unwrap().to_owned()
    };
    let has_token = |name: &str| folder.path(&format!("tokens/{name}.token")).exists();
    let follow = |place: &str, text: &str| {
        folder.write("repo/edge/one.yaml", text);
        git(&folder, "-C repo commit -q -a --allow-empty -m next");
        folder.write(CONFIG, &format!("sources:\n- {{name: shop, {place}}}\n"));
        folder.serve("")
    };
    let applied = |scope: &str, text: &str| follow(&format!("repository: repo, ref: main, path: edge{scope}"), text);
    let refused = |scope: &str, text: &str, owner: &str| {
        let serve = applied(scope, text);
        serve.wait_for(&format!("may not declare API keys of `{owner}`"));
        serve.wait_for("edge/one.yaml");
        serve.stop();
    };
    create("bot_shop");
    refused(EDITORS, &key("ci", "bot_shop", "one"), "bot_shop");
    assert!(!has_token("bot_shop-ci"));
    // An owner without keys may be one that another team will need.
    refused(EDITORS, &key("ci", "bot_docs", "one"), "bot_docs");
    applied(&EDITORS.replace("roles:", "owners: [bot_docs], roles:"), &key("ci", "bot_docs", "one")).stop();
    assert!(has_token("bot_docs-ci"));
    // One whose keys are all of the source has more without a list.
    let two = format!("{}---\n{}", key("ci", "bot_docs", "one"), key("second", "bot_docs", "one"));
    applied(EDITORS, &two).stop();
    assert!(has_token("bot_docs-second"));
    // Once somebody else has one, the key stays what its manifest says, and there are no more.
    create("bot_docs");
    let serve = applied(EDITORS, &key("ci", "bot_docs", "two"));
    let keys = serve.get("/api_keys").json()["keys"].clone();
    assert!(keys.as_array().unwrap().iter().any(|key| key["description"] == "two"), "{keys:#}");
    let body = json!({"owner_id": "bot_shop", "scope": {"apply": ["shop"]}}).to_string();
    let free = serve.call("POST", "/api_keys", &body).json();
    serve.stop();
    let both = format!("{}---\n{}", key("ci", "bot_docs", "two"), key("more", "bot_docs", "two"));
    refused(EDITORS, &both, "bot_docs");
    // Another owner is another key, and an adopted key has the owner that it had.
    refused(EDITORS, &key("ci", "bot_shop", "two"), "bot_shop");
    let adopted = key("free", "bot_shop", "two").replace("owner_id: bot_shop, ", "");
    let adopted = adopted.replace("name: free", &format!("name: free, id: {}", free["id"].as_str().unwrap()));
    refused(&EDITORS.replace("roles:", "adopt: [ApiKey], roles:"), &adopted, "bot_shop");
    // A list says whose keys the source declares, and no others.
    let listed = EDITORS.replace("roles:", "owners: [bot_shop], roles:");
    refused(&listed, &key("ci", "bot_docs", "two"), "bot_docs");
    applied(&listed, &key("ci", "bot_shop", "two")).stop();
    assert!(has_token("bot_shop-ci"));
    // Without a scope, a folder has no limits.
    follow("path: repo/edge", &key("whole", "bot_shop", "one")).stop();
    assert!(has_token("bot_shop-whole"));
}

#[test]
fn a_followed_repository_adopts_nothing_beside_other_sources() {
    let folder = repository();
    folder.write("a/edge.yaml", edge("a", "a.example.com:443")["text"].as_str().unwrap());
    folder.ok("reconcile --source team-a a");
    let serve = folder.serve("");
    let made = serve.call("POST", "/edges/https", "{\"hostports\": [\"free.example.com:443\"]}").json();
    serve.stop();
    let id = made["id"].as_str().unwrap();
    let edge = edge("free", "free.example.com:443")["text"].as_str().unwrap().to_owned();
    let route = "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {name: login}\nspec: {edge: EDGE, match_type: path_prefix, match: /login/}\n";
    let subscription = "apiVersion: edgewright/v1\nkind: EventSubscription\nmetadata: {name: audit, id: esb_1}\nspec: {sources: [{type: ip_policy_created.v0}]}\n";
    let adopted = edge.replace("name: free", &format!("name: free, id: {id}"));
    for (text, words) in [
        (route.replace("EDGE", id), "HttpsEdge that no source owns"),
        (TLS_EDGE.to_owned(), "edgtls_0001"),
        (subscription.to_owned(), "EventSubscription esb_1 by its ID"),
        (adopted.clone(), "HttpsEdge that no source owns"),
    ] {
        folder.write("repo/edge/one.yaml", &text);
        git(&folder, "-C repo commit -q -a -m next");
        let serve = folder.serve("");
        serve.wait_for(words);
        serve.wait_for("edge/one.yaml:");
        serve.stop();
    }
    folder.write("repo/edge/one.yaml", &format!("{adopted}---\n{subscription}"));
    git(&folder, "-C repo commit -q -a -m next");
    let scope = ", scope: {adopt: [HttpsEdge, EventSubscription]}";
    folder.write(CONFIG, &format!("sources:\n- {{name: shop, repository: repo, ref: main, path: edge{scope}}}\n"));
    let serve = folder.serve("");
    serve.wait_for("Applied");
    serve.stop();
}

#[test]
fn recreate_ids_lets_a_followed_repository_have_ids_that_nobody_had() {
    let folder = repository();
    let of_a = |name: &str| {
        folder.write("a/edge.yaml", edge(name, &format!("{name}.example.com:443"))["text"].as_str().unwrap());
        folder.ok("reconcile --source team-a --max-deletes 100% a");
    };
    of_a("a");
    let serve = folder.serve("");
    let edges = serve.get("/edges/https?source=team-a").json();
    serve.stop();
    of_a("next");
    let gone = edges["https_edges"][0]["id"].as_str().unwrap();
    let source = "name: shop, repository: repo, ref: main, path: edge, recreate_ids: true";
    folder.write(CONFIG, &format!("sources:\n- {{{source}}}\n"));
    let stated = |id: &str| {
        let text = edge("lost", "lost.example.com:443")["text"].as_str().unwrap().to_owned();
        text.replace("name: lost", &format!("name: lost, id: {id}"))
    };
    for (text, words) in [
        (stated(gone), "whose ID source `team-a` was the last to have"),
        // No store has lost what is of another system.
        (TLS_EDGE.to_owned(), "TlsEdge edgtls_0001 by its ID"),
        (stated("edghts_0001"), "Applied"),
    ] {
        says_of_commit(&folder, "lost.yaml", &text, words);
    }
}

#[test]
fn a_followed_repository_adopts_routes_only_where_their_edge_delegates_to_it() {
    let folder = repository();
    let shared = "{hostports: ['a.example.com:443'], delegates_to: [{source: shop, path_prefix: /docs/}]}";
    folder.write("a/edge.yaml", document("HttpsEdge", "shared", shared)["text"].as_str().unwrap());
    folder.ok("reconcile --source team-a a");
    let serve = folder.serve("");
    let edges = serve.get("/edges/https?source=team-a").json();
    let routes = format!("/edges/https/{}/routes", edges["https_edges"][0]["id"].as_str().unwrap());
    let ids = ["/admin/", "/docs/old/"].map(|text| {
        let made = serve.call("POST", &routes, &json!({"match_type": "path_prefix", "match": text}).to_string());
        made.json()["id"].as_str().unwrap().to_owned()
    });
    serve.stop();
    let scope = ", scope: {adopt: [HttpsEdgeRoute]}";
    folder.write(CONFIG, &format!("sources:\n- {{name: shop, repository: repo, ref: main, path: edge{scope}}}\n"));
    let route = document("HttpsEdgeRoute", "page", "{edge: shared, match_type: path_prefix, match: /docs/new/}");
    let route = route["text"].as_str().unwrap();
    for (id, words) in ids.iter().zip(["the present match `/admin/` of this route", "Applied"]) {
        let adopted = route.replace("{name: page}", &format!("{{name: page, id: {id}}}"));
        says_of_commit(&folder, "page.yaml", &adopted, words);
    }
}

#[test]
fn what_a_followed_repository_may_not_adopt_is_set_aside_with_what_depends_on_it() {
    let folder = repository();
    folder.write("a/edge.yaml", edge("a", "a.example.com:443")["text"].as_str().unwrap());
    folder.ok("reconcile --source team-a a");
    let serve = folder.serve("");
    let made = serve.call("POST", "/edges/https", "{\"hostports\": [\"free.example.com:443\"]}").json();
    let id = made["id"].as_str().unwrap();
    serve.stop();
    let write = |name: &str, document: &Value| {
        folder.write(&format!("repo/edge/{name}.yaml"), document["text"].as_str().unwrap());
    };
    // The edge that it may not adopt would give up its host.
    let adopted =
        edge("free", "other.example.com:443").to_string().replace("name: free", &format!("name: free, id: {id}"));
    write("adopted", &serde_json::from_str(&adopted).unwrap());
    write("route", &document("HttpsEdgeRoute", "login", "{edge: free, match_type: path_prefix, match: /login/}"));
    write("host", &edge("taken", "free.example.com:443"));
    write("mail", &json!({"text": TLS_EDGE}));
    write("good", &edge("good", "good.example.com:443"));
    std::fs::remove_file(folder.path("repo/edge/one.yaml")).unwrap();
    git(&folder, "-C repo add -A .");
    git(&folder, "-C repo commit -q -m next");
    let config = |more: &str| {
        let source = format!("name: shop, repository: repo, ref: main, path: edge, interval: 1s{more}");
        folder.write(CONFIG, &format!("sources:\n- {{{source}}}\n"));
    };
    let hosts = |serve: &Serve| {
        let edges = serve.get("/edges/https?source=shop").json();
        let edges = edges["https_edges"].as_array().unwrap().iter();
        edges.map(|edge| edge["hostports"][0].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // Each is an error at its line, and all are told at once.
    config("");
    let serve = folder.serve("");
    for place in ["edge/adopted.yaml:", "edge/mail.yaml:"] {
        serve.wait_for(place);
    }
    assert_eq!(hosts(&serve), ["one.example.com:443"]);
    serve.stop();
    // Applied is what neither adopts nor needs what is adopted. Nothing is deleted.
    config(", isolate: true");
    let serve = folder.serve("");
    until("the good edge", || (hosts(&serve).len() > 1).then_some(()));
    assert_eq!(hosts(&serve), ["good.example.com:443", "one.example.com:443"]);
    let found = status(&serve, "shop");
    assert_eq!(found["conditions"][0]["reason"], "PartlyApplied", "{found:#}");
    for place in ["edge/adopted.yaml:", "edge/mail.yaml:", "edge/host.yaml:"] {
        serve.wait_for(place);
    }
    serve.wait_for("NOT_DELEGATED");
    let kept = serve.get(&format!("/edges/https/{id}")).json();
    assert_eq!((&kept["hostports"][0], &kept["routes"]), (&made["hostports"][0], &made["routes"]), "{kept:#}");
    assert_eq!(serve.get("/edges/tls/edgtls_0001").status, 404);
    serve.stop();
}

#[test]
fn a_followed_repository_puts_back_a_tls_edge_that_it_had() {
    let folder = repository();
    folder.write("a/edge.yaml", edge("a", "a.example.com:443")["text"].as_str().unwrap());
    folder.ok("reconcile --source team-a a");
    folder.write("repo/edge/one.yaml", TLS_EDGE);
    git(&folder, "-C repo commit -q -a -m next");
    let config = |scope: &str| {
        let source = format!("name: shop, repository: repo, ref: main, path: edge, interval: 1s{scope}");
        folder.write(CONFIG, &format!("sources:\n- {{{source}}}\n"));
    };
    config(", scope: {adopt: [TlsEdge]}");
    let serve = folder.serve("");
    serve.wait_for("Applied");
    serve.stop();
    // From now on, it may adopt none.
    config("");
    let serve = folder.serve("");
    in_state(&serve, "shop", "Synced");
    assert_eq!(serve.call("DELETE", "/edges/tls/edgtls_0001/backend", "").status, 204);
    until("the edge", || (serve.get("/edges/tls/edgtls_0001/backend").status == 200).then_some(()));
    serve.stop();
}
