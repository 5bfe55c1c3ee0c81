//! The example from the first plan to the judged edit, as somebody who installed edgewright meets it.

use std::{collections::BTreeSet, fs};

use edgewright::{Code, Disk, Options, Store, apply, plan, resources::Kind};

use crate::support::manifests::edge_with;
use crate::support::program::{Folder, REPOSITORY, Run};

const SHOP: &str = "storefront/shop/storefront.yaml";
const BACKOFFICE: &str = "storefront/platform/backoffice.yaml";

fn sorted(mut calls: Vec<String>) -> Vec<String> {
    calls.sort();
    calls
}

#[test]
fn a_dry_run_shows_every_call_with_real_ids_and_makes_no_store() {
    let folder = Folder::with_storefront();
    let plan = folder.ok("reconcile --dry-run storefront");
    let ids = plan.ids();
    let mut expected = vec!["POST /ip_restrictions".to_owned()];
    for (call, times) in [("POST /certificate_authorities", 2), ("POST /tls_certificates", 2), ("POST /edges/https", 3)]
    {
        expected.extend(vec![call.to_owned(); times]);
    }
    for (edge, routes) in [("storefront", 8), ("backoffice", 3), ("payments", 2)] {
        let id = &ids[&format!("HttpsEdge {edge}")];
        assert!(id.starts_with("edghts_") && id.len() == "edghts_".len() + 27, "{id}");
        expected.extend(vec![format!("POST /edges/https/{id}/routes"); routes]);
    }
    let tls = "PUT /edges/tls/edgtls_2k9QpostgresPassThrough0001";
    expected.extend(["backend", "ip_restriction", "policies"].map(|module| format!("{tls}/{module}")));
    expected.extend(vec!["POST /event_subscriptions/evsub_2k9QipPolicyAudit00000000001/sources".to_owned(); 2]);
    assert_eq!(sorted(plan.calls()), sorted(expected));
    assert_eq!(plan.summary(), "24 to create, 0 to change, 0 to replace, 0 to delete, 0 unchanged");

    assert_eq!(folder.ok("plan storefront").out, plan.out, "plan is reconcile --dry-run");
    assert_eq!(folder.run("plan --detailed-exitcode storefront").code, 2);
    assert!(!folder.path("store").exists(), "looking must not make a store");
}

#[test]
fn what_was_planned_is_what_the_store_holds() {
    let folder = Folder::with_storefront();
    let plan = folder.ok("plan storefront");
    let applied = folder.ok("reconcile storefront");
    assert_eq!(applied.out, plan.out, "the plan that was shown is the plan that ran");
    assert!(applied.err.ends_with("Applied as revision 1.\n"), "{}", applied.err);
    let snapshot = folder.snapshot("store");
    let stored: BTreeSet<&str> = snapshot.iter().map(|entry| entry.key.id.as_str()).collect();
    for (name, id) in plan.ids() {
        assert!(stored.contains(id.as_str()), "{name} is not stored as {id}");
    }
    for line in ["plan", "reconcile", "plan --detailed-exitcode", "reconcile --dry-run --detailed-exitcode"] {
        let again = folder.ok(&format!("{line} storefront"));
        assert_eq!(again.out, "No changes: 24 unchanged.\n", "{line}");
    }
    assert_eq!(folder.snapshot("store").revision, 1, "nothing to do is no revision");

    let serve = folder.serve("");
    for (kind, collection) in [("HttpsEdge", "edges/https"), ("TlsCertificate", "tls_certificates")] {
        let ids = plan.ids().into_iter().filter(|(name, _)| name.starts_with(&format!("{kind} ")));
        for (name, id) in ids {
            let answer = serve.get(&format!("/{collection}/{id}"));
            assert_eq!((answer.status, answer.json()["id"].as_str()), (200, Some(id.as_str())), "{name}");
        }
    }
}

#[test]
fn an_edit_in_six_places_is_exactly_its_calls() {
    let folder = Folder::with_storefront();
    let ids = folder.ok("reconcile storefront").ids();
    folder.edit(SHOP, "description: Basket and payment", "description: Basket, address and payment");
    folder.edit(BACKOFFICE, "[read:org, user:email]", "[read:org, read:user, user:email]");
    folder.edit(SHOP, "      compression: {}\n\n    - name: catalog", "\n    - name: catalog");
    folder.edit(SHOP, "match: /catalog", "match: /products");
    let text = folder.read(SHOP);
    folder.write(SHOP, &text[..text.find("\n    - name: stock-webhook").unwrap()]);
    for (made, place) in [("wildcard.pem", "wildcard.chain.pem"), ("wildcard.key.pem", "wildcard.key.pem")] {
        let made = format!("{REPOSITORY}/tests/it/data/{made}");
        fs::copy(made, folder.path(&format!("storefront/certs/{place}"))).unwrap();
    }

    let plan = folder.run("plan --detailed-exitcode storefront");
    assert_eq!(plan.code, 2, "{}", plan.all());
    let route = |edge: &str, name: &str| {
        let (edge_id, id) = (&ids[&format!("HttpsEdge {edge}")], &ids[&format!("HttpsEdgeRoute {edge}/{name}")]);
        format!("/edges/https/{edge_id}/routes/{id}")
    };
    let expected = vec![
        format!("PATCH {}", route("storefront", "checkout")),
        format!("PUT {}/oauth", route("backoffice", "deployments")),
        format!("DELETE {}/compression", route("storefront", "home")),
        format!("PATCH {}", route("storefront", "catalog")),
        format!("DELETE {}", route("storefront", "stock-webhook")),
        "POST /tls_certificates".to_owned(),
        format!("DELETE /tls_certificates/{}", ids["TlsCertificate wildcard"]),
    ];
    assert_eq!(sorted(plan.calls()), sorted(expected), "{}", plan.out);
    let calls = plan.calls();
    let at = |start: &str| calls.iter().position(|call| call.starts_with(start)).unwrap();
    assert!(at("POST /tls_certificates") < at("DELETE /tls_certificates/"), "the new one comes first: {calls:?}");
    assert_eq!(plan.summary(), "0 to create, 4 to change, 1 to replace, 1 to delete, 18 unchanged");

    assert_eq!(folder.ok("reconcile storefront").out, plan.out);
    assert_eq!(folder.ok("plan --detailed-exitcode storefront").out, "No changes: 23 unchanged.\n");
    assert_eq!(folder.snapshot("store").revision, 2, "one run is one revision");
}

#[test]
fn the_order_of_files_means_nothing() {
    let (folder, renamed) = (Folder::with_storefront(), Folder::with_storefront());
    let names = [
        ("shop/storefront.yaml", "shop/zz.yaml"),
        ("platform/backoffice.yaml", "platform/yy.yml"),
        ("platform/certificates.yaml", "platform/zz.yaml"),
        ("platform/pass-through.yaml", "platform/aa.yaml"),
        ("teams/search/route.yaml", "aa.yaml"),
    ];
    for (from, to) in names {
        fs::rename(renamed.path(&format!("storefront/{from}")), renamed.path(&format!("storefront/{to}"))).unwrap();
    }
    let plan = folder.ok("plan storefront").out;
    assert_eq!(renamed.ok("plan storefront").out, plan);
    // A file that is reached twice is there once.
    assert_eq!(folder.ok("plan storefront storefront storefront/shop").out, plan);
}

/// Everything in the example that nobody may read.
fn secrets(folder: &Folder) -> Vec<String> {
    let mut found = Vec::new();
    for entry in walkdir::WalkDir::new(folder.path("storefront")) {
        let path = entry.unwrap().into_path();
        let name = path.to_string_lossy().into_owned();
        if name.contains("/secrets/") && name.ends_with(".txt") {
            found.push(fs::read_to_string(&path).unwrap().trim().to_owned());
        } else if name.ends_with(".key.pem") {
            let text = fs::read_to_string(&path).unwrap();
            found.extend(text.lines().filter(|line| line.len() > 20 && !line.starts_with('-')).map(str::to_owned));
        }
    }
    assert!(found.len() > 20, "{} lines of secrets", found.len());
    found
}

fn assert_silent(what: &str, run: &Run, secrets: &[String]) {
    for secret in secrets {
        assert!(!run.out.contains(secret) && !run.err.contains(secret), "{what} tells {secret}");
    }
}

#[test]
fn no_output_tells_a_secret() {
    let folder = Folder::with_storefront();
    let mut secrets = secrets(&folder);
    assert_silent("plan", &folder.ok("plan storefront"), &secrets);
    assert_silent("reconcile", &folder.ok("reconcile storefront"), &secrets);
    let new = "whsec_a-new-value-of-the-stripe-secret";
    folder.write("storefront/secrets/stripe-webhook-secret.txt", new);
    secrets.push(new.to_owned());
    let changed = folder.ok("plan storefront");
    assert!(changed.out.contains("(secret, changed)"), "{}", changed.out);
    assert_silent("a changed plan", &changed, &secrets);

    let serve = folder.serve("--manifests storefront");
    assert_eq!(serve.get("/tls_certificates").status, 200);
    let run = serve.stop();
    assert_eq!(run.code, 0, "{}", run.all());
    assert_silent("serve", &run, &secrets);

    let key = folder.read("storefront/certs/shop.key.pem");
    folder.write("storefront/certs/shop.key.pem", &key[..key.len() / 2]);
    let broken = folder.run("validate storefront");
    assert_eq!(broken.code, 3);
    assert!(broken.err.contains("ERR_EDGEWRIGHT_INVALID_PEM"), "{}", broken.err);
    assert_silent("validate", &broken, &secrets);
}

#[test]
fn a_diagnostic_beside_a_secret_does_not_show_it() {
    let folder = Folder::new();
    let text = "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {name: login}\nspec:\n  oidc:\n    issuer: https://login.example.com\n    client_id: x\n    client_secret: hunter2-very-secret\n    scoops: [openid]\n";
    folder.write("m/login.yaml", text);
    let run = folder.run("validate m");
    assert_eq!(run.code, 3);
    assert!(run.err.contains("m/login.yaml:9:5"), "{}", run.err);
    assert!(!run.err.contains("hunter2-very-secret"), "{}", run.err);
}

#[test]
fn manifests_come_from_standard_input_and_values_from_the_environment() {
    let folder = Folder::new();
    let text = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: piped}\nspec:\n  hostports: [\"a.example.com:443\"]\n  routes:\n    - match_type: exact_path\n      match: /hook\n      webhook_verification: {provider: github, secret: {from_env: HOOK_SECRET}}\n";
    let run = folder.run_with("reconcile -", text);
    assert_eq!(run.code, 3, "{}", run.all());
    assert!(run.err.contains("ERR_EDGEWRIGHT_ENV_UNSET") && run.err.contains("[-:9:"), "{}", run.err);
    let text = text.replace("{from_env: HOOK_SECRET}", "a-literal-one");
    let run = folder.run_with("reconcile -", &text);
    assert_eq!(run.code, 0, "{}", run.all());
    let kinds: Vec<Kind> = folder.snapshot("store").iter().map(|entry| entry.key.kind).collect();
    assert_eq!(kinds, [Kind::HttpsEdge, Kind::HttpsEdgeRoute]);
    assert_eq!(folder.run_with("plan -", &text).out, "No changes: 2 unchanged.\n");
    let renamed = text.replace("match: /hook", "match: /hooks");
    let calls = folder.run_with("plan -", &renamed).calls();
    assert_eq!(calls.len(), 2, "without a name the match is the identity: {calls:?}");
}

/// A small edge; `metadata` goes behind its name.
fn edge(name: &str, metadata: &str, host: &str) -> String {
    edge_with(&format!("{name}{metadata}"), &format!("{{description: small, hostports: [\"{host}.example.com:443\"]}}"))
}

#[test]
fn only_what_is_owned_is_pruned() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "", "one"));
    folder.write("m/two.yaml", &edge("two", "", "two"));
    let ids = folder.ok("reconcile m").ids();
    let serve = folder.serve("");
    let made = serve.call("POST", "/edges/https", r#"{"hostports":["hand.example.com:443"]}"#);
    assert_eq!(made.status, 201, "{}", made.body);
    drop(serve);
    folder.write("theirs/theirs.yaml", &edge("theirs", "", "theirs"));
    folder.ok("reconcile --source other theirs");

    fs::remove_file(folder.path("m/two.yaml")).unwrap();
    assert_eq!(folder.ok("plan --prune=false m").out, "No changes: 1 unchanged.\n");
    folder.ok("reconcile --prune=false m");
    let calls = folder.ok("reconcile m").calls();
    assert_eq!(calls, [format!("DELETE /edges/https/{}", ids["HttpsEdge two"])]);
    let edges = folder.snapshot("store").iter().filter(|entry| entry.key.kind == Kind::HttpsEdge).count();
    assert_eq!(edges, 3, "mine, theirs and the one made by hand");
    assert_eq!(folder.ok("plan --source other theirs").out, "No changes: 1 unchanged.\n");
}

#[test]
fn two_sources_cannot_serve_one_hostport() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "", "one"));
    folder.ok("reconcile --source shop m");
    let run = folder.run("reconcile --source docs m");
    assert_eq!(run.code, 3, "{}", run.all());
    assert!(run.err.contains("ERR_EDGEWRIGHT_NOT_DELEGATED") && run.err.contains("m/one.yaml:4:40"), "{}", run.err);
    assert!(run.err.contains("`--source shop`") && run.err.contains("`one`"), "{}", run.err);
    assert_eq!(folder.snapshot("store").revision, 1);
}

#[test]
fn an_edge_with_routes_of_another_source_is_not_deleted() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "", "one"));
    let delegates = "spec: {delegates_to: [{source: team, path_prefix: /}], ";
    folder.write("m/two.yaml", &edge("two", "", "two").replace("spec: {", delegates));
    folder.ok("reconcile m");
    let route = "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {name: r}\nspec: {edge: two, match_type: exact_path, match: /}\n";
    folder.write("team/route.yaml", route);
    folder.ok("reconcile --source team team");
    fs::remove_file(folder.path("m/two.yaml")).unwrap();
    let run = folder.ok("reconcile m");
    let kept = "is kept: it is in use by HttpsEdgeRoute two/r of source `team`";
    assert!(run.err.contains("ERR_EDGEWRIGHT_IN_USE") && run.err.contains(kept), "{}", run.err);
    assert!(run.err.contains("at team/route.yaml:"), "{}", run.err);
    // The same dry run again is answered from memory.
    for _ in 0..2 {
        let dry = folder.ok("plan m");
        assert!(dry.err.contains(kept) && dry.out.starts_with("No changes: 1 unchanged."), "{}", dry.all());
    }
    assert_eq!(folder.snapshot("store").revision, 2);
}

#[test]
fn metadata_id_adopts_what_was_made_by_hand() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let made = serve.call("POST", "/edges/https", r#"{"hostports":["one.example.com:443"],"description":"small"}"#);
    let id = made.json()["id"].as_str().unwrap().to_owned();
    drop(serve);
    folder.write("m/one.yaml", &edge("one", &format!(", id: {id}"), "one"));
    let adopted = folder.ok("reconcile m");
    assert_eq!((adopted.calls(), &adopted.ids()["HttpsEdge one"]), (vec![], &id), "{}", adopted.out);
    assert!(adopted.summary().contains("1 to adopt"), "{}", adopted.out);
    // From now on it is owned: drift is taken back, and the id need not be written any longer.
    folder.write("m/one.yaml", &edge("one", "", "moved"));
    assert_eq!(folder.ok("reconcile m").calls(), [format!("PATCH /edges/https/{id}")]);
}

#[test]
fn a_rename_keeps_the_id() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "", "one"));
    let id = folder.ok("reconcile m").ids()["HttpsEdge one"].clone();
    folder.write("m/one.yaml", &edge("uno", ", renamed_from: one", "one"));
    let renamed = folder.ok("reconcile m");
    assert_eq!((renamed.calls(), &renamed.ids()["HttpsEdge uno"]), (vec![], &id), "{}", renamed.out);
    assert_eq!(folder.ok("plan m").out, "No changes: 1 unchanged.\n");
    // The hint has done its work and can go.
    folder.write("m/one.yaml", &edge("uno", "", "one"));
    assert_eq!(folder.ok("plan m").out, "No changes: 1 unchanged.\n");
}

#[test]
fn what_must_not_be_destroyed_is_not() {
    let folder = Folder::with_storefront();
    let id = folder.ok("reconcile storefront").ids()["HttpsEdge storefront"].clone();
    fs::remove_file(folder.path(SHOP)).unwrap();
    fs::remove_file(folder.path("storefront/teams/search/route.yaml")).unwrap();
    for verb in ["plan", "reconcile"] {
        let run = folder.run(&format!("{verb} storefront"));
        assert_eq!(run.code, 4, "{verb}\n{}", run.all());
        assert!(run.err.contains("ERR_EDGEWRIGHT_PREVENT_DESTROY") && run.err.contains(&id), "{}", run.err);
    }
    assert_eq!(folder.snapshot("store").revision, 1);
}

#[test]
fn an_api_keys_token_is_written_once_and_works() {
    let folder = Folder::new();
    let text = "apiVersion: edgewright/v1\nkind: ApiKey\nmetadata: {name: ci}\nspec: {description: for ci, token_file: ../ci.token}\n";
    folder.write("m/key.yaml", text);
    let plan = folder.ok("plan m");
    assert!(!folder.path("ci.token").exists(), "a plan writes nothing");
    assert_eq!(plan.calls(), ["POST /api_keys"], "only calls that the API has:\n{}", plan.out);
    for part in ["owned by the bot of the source", "creates its owner with the role `editor`"] {
        assert!(plan.out.contains(part) && !plan.out.contains("owner_id"), "{part} (D27):\n{}", plan.out);
    }
    let run = folder.ok("reconcile m");
    let token = folder.read("ci.token");
    assert!(token.starts_with("ew_ak_") && !run.all().contains(token.trim()), "{}", run.all());
    assert_eq!(folder.mode("ci.token"), 0o600);
    folder.write("m/key.yaml", &text.replace("for ci", "for the pipeline"));
    folder.ok("reconcile m");
    assert_eq!(folder.read("ci.token"), token, "the next run leaves the token alone");
    let serve = folder.serve("");
    assert_eq!(serve.call_as(token.trim(), "GET", "/edges/https", "").status, 200);
    folder.write("m/key.yaml", &text.replace("../ci.token", "ci.token"));
    let inside = folder.run("validate m");
    assert_eq!(inside.code, 3);
    assert!(inside.err.contains("ERR_EDGEWRIGHT_NOT_ALLOWED"), "never into the source tree: {}", inside.err);
}

#[test]
fn a_plan_tells_that_a_token_cannot_be_written() {
    let folder = Folder::new();
    let key = |file: &str| {
        format!("apiVersion: edgewright/v1\nkind: ApiKey\nmetadata: {{name: ci}}\nspec: {{token_file: {file}}}\n")
    };
    folder.write("ci.token", "precious");
    for file in ["../ci.token", "../nowhere/ci.token", "../ci.token/ci.token"] {
        folder.write("m/key.yaml", &key(file));
        let code = if file == "../ci.token" { "CONFLICT" } else { "UNREADABLE" };
        for line in ["plan m", "plan --out saved.json m", "plan --format json m", "reconcile m"] {
            let run = folder.run(line);
            assert_eq!(run.code, 1, "{line} with {file}\n{}", run.all());
            let said = run.err.contains(&format!("ERR_EDGEWRIGHT_{code}")) && run.err.contains("[m/key.yaml:4:20]");
            assert!(said && run.out.contains("ak_"), "{line} with {file}\n{}", run.all());
        }
    }
    assert_eq!(folder.read("ci.token"), "precious");
    assert!(!folder.path("saved.json").exists() && !folder.path("store").exists());
    // What only compares writes no token.
    folder.ok("validate m");
    folder.ok("diff m m");
    // A key that exists needs no file.
    folder.write("m/key.yaml", &key("../new.token"));
    folder.ok("reconcile m");
    assert_eq!(folder.ok("plan m").out, "No changes: 1 unchanged.\n");
}

#[test]
fn a_plan_is_applied_to_the_revision_it_was_made_from_or_not_at_all() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "", "one"));
    let tree = Disk::new([folder.path("m")]);
    let options = Options::new(tree);
    let store = Store::open(folder.path("store")).unwrap();
    let stale = plan(&options, &store.snapshot());
    assert_eq!(apply(&store, &options, &stale).unwrap(), 1);
    let refused = apply(&store, &options, &stale).unwrap_err().diagnostic();
    assert_eq!((refused.code, store.snapshot().revision), (Code::Stale.into(), 1), "{}", refused.message);
}

#[test]
fn a_name_that_is_about_to_go_stands_for_nothing() {
    let folder = Folder::new();
    let route = "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {name: r}\n\
                 spec: {edge: one, match_type: exact_path, match: /, backend: {backend_id: bkd_1}}\n";
    folder.write("m/edge.yaml", &edge("one", "", "a"));
    folder.write("m/route.yaml", route);
    folder.ok("reconcile m");
    folder.write("m/edge.yaml", &edge("two", ", renamed_from: one", "a"));
    for line in ["validate m", "plan m", "reconcile m"] {
        let run = folder.run(line);
        assert_eq!((run.code, run.err.contains("unknown HttpsEdge `one`")), (3, true), "{line}: {}", run.all());
        // Without the store, nobody knows that it is a resource of this source.
        let is_known = run.err.contains("source `default` already has it: plan all of its manifests together");
        assert_eq!(is_known, !line.starts_with("validate"), "{line}: {}", run.all());
    }
    // A part of the source may name the rest of it, as long as nothing is deleted.
    std::fs::remove_file(folder.path("m/edge.yaml")).unwrap();
    folder.ok("plan --prune=false m");
}
