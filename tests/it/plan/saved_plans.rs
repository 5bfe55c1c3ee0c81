//! Saved plans: what runs is what was reviewed, or nothing runs.

use std::fs;

use serde_json::Value;

use crate::support::manifests::edge_with;
use crate::support::program::Folder;

const SHOP: &str = "storefront/shop/storefront.yaml";

fn edit(folder: &Folder, from: &str, to: &str) {
    let text = folder.read(SHOP);
    assert!(text.contains(from));
    folder.write(SHOP, &text.replace(from, to));
}

/// Asserts that a saved plan is refused as stale for a reason, and that nothing has changed.
fn refuses(folder: &Folder, line: &str, reason: &str) {
    let before = folder.snapshot("store");
    let run = folder.run(line);
    assert_eq!(run.code, 5, "{line}: {}", run.all());
    assert!(run.err.contains("ERR_EDGEWRIGHT_STALE") && run.err.contains(reason), "{line}: {}", run.err);
    assert_eq!(folder.snapshot("store").revision, before.revision, "{line}");
}

#[test]
fn the_reviewed_plan_runs_and_only_once() {
    let folder = Folder::with_storefront();
    folder.ok("plan --out first.json storefront");
    folder.ok("reconcile --plan first.json storefront");
    edit(&folder, "Product pages", "All products");
    folder.ok("reconcile --dry-run --out plan.json storefront");
    let saved: Value = serde_json::from_str(&folder.read("plan.json")).unwrap();
    assert_eq!(saved["format"], "edgewright/plan/v1");
    assert_eq!(saved["base"], 1);
    let calls: Vec<_> = saved["operations"].as_array().unwrap().iter().map(|it| it["call"].as_str().unwrap()).collect();
    assert_eq!(calls.len(), 1);
    assert!(calls[0].starts_with("PATCH /edges/https/"), "{calls:?}");
    assert_eq!(saved["operations"][0]["body"]["description"], "All products");
    folder.ok("reconcile --plan plan.json storefront");
    assert_eq!(folder.snapshot("store").revision, 2);
    refuses(&folder, "reconcile --plan plan.json storefront", "the store changed (now revision 2)");
}

#[test]
fn what_others_change_in_the_store_does_not_matter() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    edit(&folder, "Product pages", "All products");
    folder.ok("plan --out plan.json storefront");
    folder.ok("keys create --store store --role editor");
    folder.write("docs/one.yaml", &edge_with("docs", "{}"));
    folder.ok("reconcile --source docs docs");
    assert_eq!(folder.snapshot("store").revision, 3);
    folder.ok("reconcile --plan plan.json storefront");
    assert_eq!(folder.snapshot("store").revision, 4);
}

#[test]
fn no_secret_is_in_a_saved_plan() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    folder.ok("plan --out plan.json storefront");
    fs::remove_dir_all(folder.path("store")).unwrap();
    folder.ok("plan --out first.json storefront");
    for file in fs::read_dir(folder.path("storefront/secrets")).unwrap() {
        let secret = fs::read_to_string(file.unwrap().path()).unwrap();
        for plan in ["plan.json", "first.json"] {
            assert!(!folder.read(plan).contains(secret.trim()), "{plan}");
        }
    }
    assert!(!folder.read("first.json").contains("PRIVATE KEY"));
}

#[test]
fn whatever_has_changed_since_the_review_is_refused_with_its_reason() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    edit(&folder, "Product pages", "All products");
    folder.ok("plan --out plan.json storefront");

    edit(&folder, "All products", "Some products");
    refuses(&folder, "reconcile --plan plan.json storefront", "the manifests");
    let run = folder.run("reconcile --plan plan.json storefront");
    assert!(run.err.contains("-    description: All products"), "the two plans are compared: {}", run.err);
    edit(&folder, "Some products", "All products");

    let secret = folder.read("storefront/secrets/stripe-webhook-secret.txt");
    folder.write("storefront/secrets/stripe-webhook-secret.txt", "another-secret\n");
    refuses(&folder, "reconcile --plan plan.json storefront", "files or variables");
    folder.write("storefront/secrets/stripe-webhook-secret.txt", &secret);

    let plan = folder.read("plan.json");
    folder.write("edited.json", &plan.replace("All products", "Evil products"));
    refuses(&folder, "reconcile --plan edited.json storefront", "the saved plan was edited");
    folder.write("m/one.yaml", &edge_with("one", "{}"));
    refuses(&folder, "reconcile --plan plan.json --source other m", "for source `default`");

    folder.ok("reconcile --store elsewhere storefront/platform/office-only.json");
    let other = folder.run("reconcile --store elsewhere --plan plan.json storefront");
    assert_eq!((other.code, other.err.contains("another store")), (5, true), "{}", other.err);

    folder.write("no.json", "{\"format\": \"edgewright/plan/v9\"}");
    assert_eq!(folder.run("reconcile --plan no.json storefront").code, 1);
    folder.ok("reconcile --plan plan.json storefront");
}

#[test]
fn a_plan_without_a_store_notices_a_changed_secret() {
    const SECRET: &str = "storefront/secrets/stripe-webhook-secret.txt";
    let folder = Folder::with_storefront();
    folder.ok("plan --out plan.json storefront");
    folder.ok("plan --out again.json storefront");
    let digest = |file: &str| serde_json::from_str::<Value>(&folder.read(file)).unwrap()["desired"].clone();
    assert_ne!(digest("plan.json"), digest("again.json"), "equal secrets cannot be told from two documents");
    let secret = folder.read(SECRET);
    folder.write(SECRET, "another-secret\n");
    let run = folder.run("reconcile --plan plan.json storefront");
    assert_eq!((run.code, run.err.contains("files or variables")), (5, true), "{}", run.all());
    assert!(!folder.path("store").exists());
    folder.write(SECRET, &secret);
    // With a store, even an empty one, the digest would be made differently: the plan is no longer the reviewed one.
    folder.ok("keys create --store other --role admin");
    let run = folder.run("reconcile --store other --plan plan.json storefront");
    assert_eq!((run.code, run.err.contains("another store")), (5, true), "{}", run.all());
    folder.ok("reconcile --plan plan.json storefront");
}

#[test]
fn reviewed_deletions_need_no_flag_again_and_a_refused_plan_is_not_saved() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    fs::remove_dir_all(folder.path("storefront/teams")).unwrap();
    let text = folder.read(SHOP);
    let (head, _) = text.split_once("  routes:").unwrap();
    folder.write(SHOP, head);
    let refused = folder.run("plan --out plan.json storefront");
    assert_eq!((refused.code, folder.path("plan.json").exists()), (4, false), "{}", refused.all());
    folder.ok("plan --max-deletes 10 --out plan.json storefront");
    // Whoever applies may still be stricter than whoever reviewed.
    assert_eq!(folder.run("reconcile --max-deletes 0 --plan plan.json storefront").code, 4);
    folder.ok("reconcile --plan plan.json storefront");
    assert_eq!(folder.snapshot("store").revision, 2);
}

#[test]
fn a_missing_folder_is_noticed_before_the_plan() {
    let folder = Folder::with_storefront();
    for (line, words) in [
        ("plan storefront --out missing/p.json", "cannot save the plan: the folder missing does not exist"),
        (
            "reconcile storefront --output missing/p.txt",
            "cannot write the report to `missing/p.txt`: the folder missing does not exist",
        ),
    ] {
        let run = folder.run(line);
        assert_eq!((run.code, run.out.as_str()), (1, ""), "{line}: {}", run.all());
        assert!(run.err.contains(words), "{line}: {}", run.all());
    }
    assert!(!folder.path("store").exists());
}
