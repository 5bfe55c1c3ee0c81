//! `edgewright history`: who changed what, and whether the record of it is whole (D58).

use serde_json::Value;

use crate::support::{
    git::git,
    manifests::{edge, edge_with},
    program::Folder,
    users::through,
};

fn records(folder: &Folder, line: &str) -> Vec<Value> {
    let run = folder.ok(line);
    run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_attempt_is_told_with_what_it_changed() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first"));
    folder.ok("reconcile --source shop m");
    folder.write("m/one.yaml", &edge("one", "second"));
    folder.ok("reconcile --source shop m");
    folder.write("m/one.yaml", "kind: [");
    assert_eq!(folder.run("reconcile --source shop m").code, 3);
    folder.ok("keys create --role editor");

    let told = records(&folder, "history --format json");
    let outcomes: Vec<_> = told.iter().map(|it| (it["outcome"].as_str().unwrap(), it["revision"].as_u64())).collect();
    assert_eq!(outcomes, [("applied", Some(3)), ("refused", None), ("applied", Some(2)), ("applied", Some(1))]);
    let why = told[1]["message"].as_str().unwrap();
    assert!(why.starts_with("ERR_EDGEWRIGHT_") && why.contains(": m/one.yaml:"), "{why}");
    assert_eq!(told[2]["author"]["source"], "shop");
    assert_eq!(told[2]["resources"][0]["declared_at"], "m/one.yaml:4");
    assert_eq!(told[2]["resources"][0]["source"], "shop");
    assert_eq!(told[2]["resources"][0]["before"]["description"], "first");
    assert_eq!(told[2]["resources"][0]["after"]["description"], "second");

    let text = folder.ok("history --changes --limit 3").out;
    assert!(text.contains("Z  applied  source `shop`") && text.contains("HttpsEdge one (m/one.yaml:4)"), "{text}");
    assert!(text.contains("- description: \"first\"") && text.contains("+ description: \"second\""), "{text}");
    let heads: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).map(|line| &line[..3]).collect();
    assert_eq!(heads, ["3  ", "-  ", "2  "], "one number, which `rollback --to` takes: {text}");

    let path = told[2]["resources"][0]["path"].as_str().unwrap();
    assert_eq!(records(&folder, &format!("history --format json --resource {path}")).len(), 2);
    assert_eq!(records(&folder, "history --format json --before 3 --limit 1")[0]["position"], 2);
    let none = folder.ok("history --source none");
    assert!(
        none.out.is_empty() && none.err.starts_with("No records found.\nsource `none` owns nothing"),
        "{}",
        none.err
    );
    let verified = folder.ok("history verify").out;
    assert!(verified.starts_with("4 records verified: 1 to 4, chain hash "), "{verified}");
}

#[test]
fn a_revision_and_the_fields_of_a_resource_are_told() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    let first = folder.read("storefront/secrets/stripe-webhook-secret.txt");
    folder.write("storefront/secrets/stripe-webhook-secret.txt", "another-secret\n");
    folder.ok("reconcile storefront");
    let shown = folder.ok("history show 2").out;
    assert!(shown.starts_with("revision 2  ") && shown.contains("source `default`"), "{shown}");
    assert!(shown.contains("(secret, changed)"), "{shown}");
    let entry: Value = serde_json::from_str(&folder.ok("history show 2 --format json").out).unwrap();
    assert_eq!((&entry["revision"], &entry["by"], &entry["changed"]), (&2.into(), &"source".into(), &1.into()));
    let path = entry["resources"][0]["path"].as_str().unwrap();
    let id = path.rsplit('/').next().unwrap();
    let blame: Value = serde_json::from_str(&folder.ok(&format!("blame route {id} --format json")).out).unwrap();
    assert_eq!(blame["resource"], path);
    let fields = blame["fields"].as_array().unwrap();
    let of = |field: &str| fields.iter().find(|it| it["field"] == field).unwrap_or_else(|| panic!("{field}: {blame}"));
    let secret = of("/webhook_verification/secret");
    assert_eq!((&secret["revision"], &secret["value"]), (&2.into(), &"********".into()));
    assert_eq!(of("/match")["revision"], 1);
    let table = folder.ok(&format!("blame route {id}")).out;
    assert!(table.starts_with("FIELD") && table.contains("/webhook_verification/secret"), "{table}");
    for text in [&shown, &table, &blame.to_string()] {
        assert!(!text.contains(first.trim()) && !text.contains("another-secret"), "{text}");
    }
    assert_eq!(folder.run("history show 3").code, 1);
    assert_eq!(folder.run("blame route nothing").code, 1);
}

#[test]
fn a_key_is_told_by_its_description_while_it_exists() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let made = serve.call("POST", "/api_keys", r#"{"description": "CI of shop"}"#).json();
    let (id, owner) = (made["id"].as_str().unwrap(), made["owner_id"].as_str().unwrap());
    let body = r#"{"type": "api", "description": "a", "enforced": false}"#;
    let answer = serve.call_as(made["token"].as_str().unwrap(), "POST", "/ip_restrictions", body);
    assert_eq!(answer.status, 201, "{}", answer.body);
    let path = format!("/ip_restrictions/{}", answer.json()["id"].as_str().unwrap());
    let described = || {
        let revision = serve.get(&format!("/history?limit=1&resource={path}")).json()["history"][0].clone();
        let blame = serve.get(&format!("/history/blame?resource={path}")).json()["fields"][0].clone();
        let shown = serve.get(&format!("/history/{}", revision["revision"])).json();
        [revision, blame, shown].map(|told| {
            assert_eq!(told["key_id"], id, "{told}");
            told["key_description"].as_str().unwrap().to_owned()
        })
    };
    assert_eq!(described(), ["CI of shop"; 3]);
    let told = || {
        ["history --resource", "blame", "history --format json --resource"]
            .map(|line| through(&folder, &serve, &format!("{line} {}", path.rsplit('/').next().unwrap())).out)
    };
    let [history, blame, json] = told();
    let by = format!("\"CI of shop\" ({id}) of {owner}");
    assert!(history.contains("  applied  \"CI of shop\"\n"), "people know the key by its description: {history}");
    assert!(blame.ends_with(&format!("\n[1] {by}\n")), "{blame}");
    assert!(json.contains("\"key_description\":\"CI of shop\""), "{json}");
    assert_eq!(serve.call("DELETE", &format!("/api_keys/{id}"), "").status, 204);
    assert_eq!(described(), [""; 3]);
    let [history, blame, json] = told();
    let by = format!("API key {id} of {owner}");
    assert!(
        history.contains(&by) && blame.contains(&by) && json.contains("\"key_description\":\"\""),
        "{history}{blame}"
    );
}

#[test]
fn a_large_commit_names_files_and_a_small_one_names_lines() {
    let folder = Folder::new();
    let edge = |at: usize| edge_with(&format!("e{at}"), &format!("{{description: number-{at}.}}"));
    let edges: Vec<String> = (0..2_001).map(edge).collect();
    folder.write("m/all.yaml", &edges.join("---\n"));
    folder.ok("reconcile m");
    folder.edit("m/all.yaml", "number-1.", "changed");
    folder.ok("reconcile m");
    let told = records(&folder, "history --format json");
    let places = |record: &Value| -> Vec<String> {
        let resources = record["resources"].as_array().unwrap();
        resources.iter().map(|it| it["declared_at"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(places(&told[1]), vec!["m/all.yaml"; 2_001]);
    assert_eq!(places(&told[0]), ["m/all.yaml:9"]);
}

#[test]
fn a_list_names_what_changed_and_calls_are_for_whoever_asks() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    folder.edit("storefront/shop/storefront.yaml", "description: The home page", "description: The first page");
    folder.ok("reconcile storefront");
    let newest = folder.ok("history --limit 1").out;
    assert!(newest.ends_with("\n    ~ HttpsEdgeRoute storefront/home  description\n"), "{newest}");
    let wide = folder.ok("history --limit 1 -o wide").out;
    assert!(wide.starts_with(&newest) && wide.contains("\n    PATCH /edges/https/edghts_"), "{wide}");
    let first = folder.ok("history --to 1").out;
    assert!(first.contains("    25 created: "), "{first}");
    assert!(first.ends_with("    … run `edgewright history show 1` for all of it\n"), "{first}");
    assert!(first.lines().all(|line| line.chars().count() <= 80) && first.lines().count() < 6, "{first}");
    let shown = folder.ok("history show 1").out;
    assert_eq!(shown.matches("    POST /edges/https\n").count(), 3, "{shown}");
    assert!(shown.contains("\n+ HttpsEdgeRoute storefront/home (storefront/shop/storefront.yaml:"), "{shown}");
    assert!(shown.contains("owned by source `default` as `storefront`, prevent_destroy\n"), "{shown}");
    folder.ok("keys create --role viewer --owner usr_board --description board");
    let key = folder.ok("history --limit 1").out;
    assert!(key.contains("    + Owner usr_board  role viewer\n") && key.contains("  \"board\"\n"), "{key}");
}

#[test]
fn secrets_are_digests_that_show_a_change_and_nothing_else() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    folder.write("storefront/secrets/stripe-webhook-secret.txt", "another-secret\n");
    folder.ok("reconcile storefront");
    let told = folder.ok("history --format json").out;
    for file in std::fs::read_dir(folder.path("storefront/secrets")).unwrap() {
        let secret = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!told.contains(secret.trim()), "a secret is in the history");
    }
    assert!(!told.contains("PRIVATE KEY"));
    let last: Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
    let module =
        |state: &str| last["resources"][0][state]["webhook_verification"]["secret"].as_str().unwrap().to_owned();
    let (before, after) = (module("before"), module("after"));
    assert!(before.starts_with("(secret ") && after.starts_with("(secret ") && before != after, "{before} {after}");
}

#[test]
fn the_author_and_the_message_of_the_commit_are_told() {
    let folder = Folder::new();
    folder.write("one/edge.yaml", &edge("one", "first"));
    folder.write("message", "Revert \"first\"\n");
    for line in ["init -q -b main", "add .", "commit -q -F ../message"] {
        git(&folder, &format!("-C one {line}"));
    }
    let commit = folder.read("one/.git/refs/heads/main").trim().to_owned();
    let author = serde_json::json!({"name": "t", "email": "t@example.com"});
    folder.ok("reconcile one");
    let serve = folder.serve("--store served");
    let run = through(&folder, &serve, "reconcile one");
    assert_eq!(run.code, 0, "{}", run.all());
    assert_eq!(serve.stop().code, 0);
    for store in ["store", "served"] {
        let told = records(&folder, &format!("history --format json --limit 1 --store {store}"));
        assert_eq!(
            (&told[0]["author"]["commit"], &told[0]["author"]["commit_author"]),
            (&commit.clone().into(), &author)
        );
        assert_eq!(told[0]["author"]["commit_message"], "Revert \"first\"");
        let text = folder.ok(&format!("history --limit 1 --store {store}")).out;
        assert!(text.contains(&format!("  source `default` at {}", &commit[..8])) && !text.contains(&commit), "{text}");
        assert!(text.contains("\n    Revert \"first\" (t <t@example.com>)\n"), "{text}");
        let wide = folder.ok(&format!("get edge one -o wide --store {store}")).out;
        assert!(wide.contains(&commit[..8]) && !wide.contains(&commit), "{wide}");
        let blamed = folder.ok(&format!("blame edge one --store {store}")).out;
        let shown = folder.ok(&format!("history show {commit} --store {store}")).out;
        for text in [blamed, shown] {
            assert!(text.contains(": Revert \"first\"\n"), "{text}");
        }
        assert!(folder.ok(&format!("history verify --store {store}")).out.contains("verified"));
    }
    folder.write("plain/edge.yaml", &edge("one", "first"));
    folder.ok("reconcile plain --store plain.db");
    let told = records(&folder, "history --format json --store plain.db");
    for field in ["commit_author", "commit_message"] {
        assert!(told[0]["author"].get(field).is_none(), "{}", told[0]);
    }
}
