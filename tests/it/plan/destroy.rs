//! `edgewright destroy`: destroying a source, with the safety of every plan and a confirmation (D108).

use edgewright::{Disk, Options, Store, apply, plan};
use serde_json::{Value, json};

use crate::support::{
    manifests::edges,
    program::{Folder, Run, finish, rounds, until},
    users::through,
};

/// A folder with the sources `shop`, with four edges, and `docs`, with one.
fn two_sources() -> Folder {
    let folder = Folder::new();
    folder.write("shop/e.yaml", &edges("s", 4));
    folder.write("docs/e.yaml", &edges("d", 1));
    folder
}

fn applied() -> Folder {
    let folder = two_sources();
    folder.ok("reconcile --source shop shop");
    folder.ok("reconcile --source docs docs");
    folder
}

fn refused(run: &Run, exit: i32, code: &str, text: &str) {
    let is_told = run.err.contains(&format!("ERR_EDGEWRIGHT_{code}")) && run.err.contains(text);
    assert!(run.code == exit && is_told, "{exit} {code} {text}\n{}", run.all());
}

#[test]
fn a_source_ends_in_one_revision_and_only_with_its_name() {
    let folder = applied();
    let dry = folder.ok("destroy --source shop --dry-run");
    assert_eq!(dry.calls().len(), 4, "{}", dry.out);
    assert!(dry.summary().contains("4 to delete"), "{}", dry.out);
    assert_eq!(folder.run("destroy --source shop --dry-run --detailed-exitcode").code, 2);
    let unconfirmed = folder.run_with("destroy --source shop", "shop\n");
    refused(&unconfirmed, 1, "NOT_CONFIRMED", "--confirm shop");
    assert_eq!(unconfirmed.calls(), dry.calls(), "the plan is shown");
    refused(&folder.run("destroy --source shop --confirm docs"), 1, "NOT_CONFIRMED", "`docs`");
    assert_eq!(folder.snapshot("store").revision, 2);

    let run = folder.ok("destroy --source shop --confirm shop");
    assert_eq!(run.calls(), dry.calls(), "what was shown is what runs");
    assert!(run.err.contains("Applied as revision 3."), "{}", run.err);
    let state = folder.snapshot("store");
    assert_eq!((state.revision, state.len()), (3, 1), "the other source stays");
    let told = folder.ok("history --limit 1").out;
    assert!(told.starts_with("3  ") && told.contains("Z  applied  destroy of source `shop`"), "{told}");

    refused(&folder.run("destroy --source shop --confirm shop"), 1, "NOT_FOUND", "source `shop` owns nothing");
    let misspelt = folder.run("destroy --source dosc --dry-run");
    refused(&misspelt, 1, "NOT_FOUND", "did you mean `docs`?");
    assert_eq!(misspelt.out, "", "there is no plan");
    assert_eq!(folder.run("destroy --source shop --confirm shop --store none").code, 1);
    assert!(!folder.path("none").exists());

    folder.ok("rollback --to 2 --source shop");
    assert_eq!(folder.ok("plan --source shop shop").out, "No changes: 4 unchanged.\n", "a rollback brings it back");
}

#[test]
fn a_source_whose_name_selects_others_or_looks_like_another_ends_and_gets_nothing() {
    let folder = applied();
    let names = [
        "*",
        "team-*",
        "a*b",
        "team a",
        "shop\u{202e}",
        "sh\u{200b}op",
        "shop\u{200d}",
        "shop\u{a0}",
        " shop",
        "shop ",
    ];
    for name in names.into_iter().step_by(rounds(2, 1)) {
        let line = |words: &str| {
            let mut command = folder.command(words);
            command.args(["--source", name]);
            finish(command, "")
        };
        for words in ["reconcile docs", "plan docs", "serve --manifests docs"] {
            let run = line(words);
            assert!(run.code != 0 && run.err.contains("a source name cannot contain"), "{name:?}: {}", run.all());
        }
        let mut command = folder.command("transfer --from shop --all --dry-run");
        command.args(["--to", name]);
        assert!(finish(command, "").err.contains("a source name cannot contain"), "{name:?}");
        // An earlier version has applied it.
        {
            let store = Store::open(folder.path("store")).unwrap();
            let tree = Disk::new([folder.path("old")]);
            folder.write("old/e.yaml", &edges("old", 2));
            let options = Options { source: name.to_owned(), ..Options::new(tree) };
            let planned = plan(&options, &store.snapshot());
            apply(&store, &options, &planned).unwrap();
        }
        let count = || folder.snapshot("store").len();
        assert_eq!(count(), 7);
        assert_eq!(line("history --limit 1").code, 0);
        let mut command = folder.command("transfer --all --dry-run --to renamed");
        command.args(["--from", name]);
        let moved = finish(command, "");
        assert!(moved.code == 0, "{name:?}: {}", moved.all());
        let mut command = folder.command("destroy");
        command.args(["--source", name, "--confirm", name]);
        let ended = finish(command, "");
        assert!(ended.code == 0 && count() == 5, "{name:?}: {}", ended.all());
    }
    for name in ["shop/eu", "größe", "店"] {
        let mut command = folder.command("plan docs");
        command.args(["--source", name]);
        assert!(!finish(command, "").err.contains("a source name"), "{name}");
    }
    let serve = folder.serve("");
    for (path, body) in [
        ("/reconciliations", r#"{"source": "team-*", "files": [{"name": "a.yaml", "text": ""}]}"#),
        ("/transfers", r#"{"from": "shop", "to": "team-*", "all": true}"#),
    ] {
        let refused = serve.call("POST", path, body);
        assert!(refused.status == 400 && refused.body.contains("cannot contain `*`"), "{path}: {}", refused.body);
    }
    // What the manifests in `--with` are called without a store.
    for words in ["reconcile docs --source", "plan docs --source", "transfer --all --to docs --from", "status --source"]
    {
        let mut command = folder.command(words);
        command.arg("(surrounding)");
        let run = finish(command, "");
        assert!(run.code != 0 && run.err.contains("a source name cannot be `(surrounding)`"), "{words}: {}", run.all());
    }
    for (path, body) in [
        ("/reconciliations", r#"{"source": "(surrounding)", "files": [{"name": "a.yaml", "text": ""}]}"#),
        ("/transfers", r#"{"from": "shop", "to": "(surrounding)", "all": true}"#),
        ("/api_keys", r#"{"owner_id": "bot_a", "scope": {"apply": ["(surrounding)"]}}"#),
    ] {
        let refused = serve.call("POST", path, body);
        assert!(
            refused.status == 400 && refused.body.contains("cannot be `(surrounding)`"),
            "{path}: {}",
            refused.body
        );
    }
}

#[test]
fn limits_protection_and_other_sources_refuse() {
    let folder = applied();
    refused(&folder.run("destroy --source shop --confirm shop --max-deletes 3"), 4, "TOO_MANY_DELETIONS", "4 of");
    let delegated = "hostports: [\"s1.example.com:443\"], delegates_to: [{source: team, path_prefix: /}]";
    folder.edit("shop/e.yaml", "hostports: [\"s1.example.com:443\"]", delegated);
    folder.ok("reconcile --source shop shop");
    let edge = folder.ok("destroy --source shop --dry-run").ids().remove("HttpsEdge s1").unwrap();
    let route = format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {{name: cart}}\n\
         spec: {{edge: {edge}, match_type: exact_path, match: /cart, backend: {{backend_id: bkd_1}}}}\n"
    );
    folder.write("team/route.yaml", &route);
    folder.ok("reconcile --source team team");
    folder.edit("shop/e.yaml", "{name: s0}", "{name: s0, prevent_destroy: true}");
    folder.ok("reconcile --source shop shop");
    let both = folder.run("destroy --source shop --confirm shop");
    let used = format!("HttpsEdge s1 ({edge}) is in use by HttpsEdgeRoute s1/cart of source `team` (edghtsrt_");
    refused(&both, 4, "IN_USE", &used);
    refused(&both, 4, "PREVENT_DESTROY", "HttpsEdge s0 (");
    let told = folder.ok("history --limit 1").out;
    assert!(told.contains("refused  destroy of source `shop`"), "{told}");

    folder.edit("shop/e.yaml", "{name: s0, prevent_destroy: true}", "{name: s0}");
    folder.ok("reconcile --source shop shop");
    folder.ok("destroy --source team --confirm team");
    folder.ok("destroy --source shop --confirm shop --max-deletes 4");
    assert_eq!(folder.snapshot("store").len(), 1);
}

#[test]
fn a_source_of_the_configuration_is_not_destroyed_beside_its_server() {
    let folder = applied();
    folder.write("edgewright.config.yaml", "sources: [{name: shop, path: shop}]\n");
    let run = folder.run("destroy --source shop --confirm shop");
    refused(&run, 1, "CONFLICT", "`sources` of `edgewright.config.yaml`");
    folder.ok("destroy --source docs --confirm docs");
    folder.write("edgewright.config.yaml", "sources: []\n");
    folder.ok("destroy --source shop --confirm shop");
}

#[test]
fn a_source_ends_through_a_server_as_it_was_shown() {
    let folder = two_sources();
    let serve = folder.serve("--manifests docs --source docs");
    assert_eq!(through(&folder, &serve, "reconcile --source shop shop").code, 0);
    until("the edge of docs", || {
        let edges = serve.get("/edges/https").json()["https_edges"].as_array().map(Vec::len);
        (edges == Some(5)).then_some(())
    });
    let followed = through(&folder, &serve, "destroy --source docs --confirm docs");
    refused(&followed, 1, "CONFLICT", "remove the source from the server's configuration first");
    let dry = through(&folder, &serve, "destroy --source shop --dry-run --detailed-exitcode");
    assert_eq!((dry.code, dry.calls().len()), (2, 4), "{}", dry.all());
    let report = through(&folder, &serve, "destroy --source shop --confirm shop --format json");
    let report: Value = serde_json::from_str(&report.out).unwrap();
    assert_eq!((&report["command"], report["applied"].is_u64()), (&json!("destroy"), true), "{report:#}");
    assert_eq!(serve.get("/edges/https").json()["https_edges"].as_array().unwrap().len(), 1);
    assert_eq!(serve.get("/sources/shop").status, 404, "a source without resources is not listed");
    let newest = serve.get("/reconciliations").json()["reconciliations"][0].clone();
    assert_eq!((&newest["source"], &newest["destroyed"]), (&json!("shop"), &json!(true)), "{newest:#}");
    let told = through(&folder, &serve, "history --limit 1").out;
    assert!(told.contains("destroy of source `shop` with \"first admin\"\n"), "{told}");
    refused(&through(&folder, &serve, "destroy --source shop --confirm shop"), 1, "NOT_FOUND", "owns nothing");
    serve.wait_for("Destroyed the source as revision");
}

#[test]
fn a_refused_deletion_names_who_uses_the_resource() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    let serve = folder.serve("");
    let listed = serve.get("/certificate_authorities").json();
    let used = listed["certificate_authorities"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap());
    let answers: Vec<_> = used.map(|id| serve.call("DELETE", &format!("/certificate_authorities/{id}"), "")).collect();
    let refused = answers.iter().find(|answer| answer.status == 409).expect("one is in use");
    let message = refused.json()["msg"].as_str().unwrap().to_owned();
    for part in
        ["CertificateAuthority staff-devices of source `default` (ca_", "HttpsEdge backoffice of source `default` ("]
    {
        assert!(message.contains(part), "{part}\n{message}");
    }
    assert_eq!(refused.code(), "ERR_EDGEWRIGHT_IN_USE");
    let keys = serve.get("/api_keys").json();
    let admin = keys["keys"][0]["id"].as_str().unwrap();
    let last = serve.call("DELETE", &format!("/api_keys/{admin}"), "");
    assert!(last.code().ends_with("LAST_ADMIN") && last.body.contains(&format!("ApiKey {admin}")), "{}", last.body);
    assert!(last.body.contains("such as with `edgewright keys create --role admin`"), "{}", last.body);
}
