//! A mistyped path of a store is told, and reading one changes nothing in it (D61).

use std::{collections::BTreeMap, fs, path::PathBuf, time::SystemTime};

use crate::support::program::Folder;

/// The length, time and content of each file of a store.
fn files(folder: &Folder, store: &str) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
    let entries = walkdir::WalkDir::new(folder.path(store)).into_iter().map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().is_file());
    files
        .map(|entry| {
            (entry.path().to_owned(), (entry.metadata().unwrap().modified().unwrap(), fs::read(entry.path()).unwrap()))
        })
        .collect()
}

#[test]
fn a_store_that_does_not_exist_is_told_and_a_new_one_too() {
    let folder = Folder::with_storefront();
    let plan = folder.ok("plan --store typo storefront");
    assert!(plan.err.contains("No store found in `typo`"), "{}", plan.err);
    assert!(!folder.path("typo").exists());
    for line in ["get edges --store typo", "history --store typo", "export --store typo", "store check --store typo"] {
        let run = folder.run(line);
        assert!(run.code == 1 && run.err.contains("no store found in `typo`"), "{line}: {}", run.all());
        assert!(!folder.path("typo").exists(), "{line}");
    }
    let after = folder.run("trace shop.example.com/checkout --manifests storefront --after --store typo");
    assert_eq!((after.code, after.out.as_str()), (1, ""), "{}", after.all());
    let said =
        ["no store found in `typo`, so there is no state before the plan", "or --server to the URL of your server"];
    assert!(said.iter().all(|part| after.err.contains(part)), "{}", after.err);
    // Without a terminal it goes on.
    let first = folder.ok("reconcile --store shop storefront");
    assert_eq!(first.err.matches("New store: shop\n").count(), 1, "{}", first.err);
    let second = folder.ok("reconcile --store shop storefront");
    let plan = folder.ok("plan --store shop storefront");
    assert!(!second.err.contains("New store") && !plan.err.contains("No store"), "{}", second.err + &plan.err);
    // Who has a store with a similar name probably means that one.
    let near = "id you mean `--store shop`?";
    let plan = folder.ok("plan --store shpo storefront");
    assert!(
        plan.err.contains(&format!("No store found in `shpo`: this plan is for a new one. D{near}")),
        "{}",
        plan.err
    );
    for line in ["get edges", "history", "blame storefront", "keys list", "backup b", "rollback --to 1 --dry-run"] {
        let run = folder.run(&format!("{line} --store shpo"));
        assert!(run.code == 1 && run.err.contains("no store found in `shpo`"), "{line}: {}", run.all());
        assert!(run.err.contains(&format!("d{near}")), "{line}: {}", run.all());
    }
    assert!(!folder.path("shpo").exists());
    let first = folder.ok("keys create --store keys");
    let second = folder.ok("keys create --store keys");
    assert_eq!([&first, &second].map(|run| run.err.matches("New store: keys\n").count()), [1, 0], "{}", first.err);
}

#[test]
fn a_report_says_that_its_plan_is_for_a_new_store() {
    let folder = Folder::with_storefront();
    let report =
        |command: &str, format: &str| folder.ok(&format!("{command} --store typo storefront --format {format}")).out;
    let note = "this plan is for a new one.";
    let formats = ["markdown", "github", "junit"];
    for format in formats {
        assert_eq!(report("plan", format).matches(note).count(), 1, "{format}");
    }
    let new_store = |command: &str| {
        let report: serde_json::Value = serde_json::from_str(&report(command, "json")).unwrap();
        report.get("new_store").cloned()
    };
    assert_eq!(new_store("plan"), Some("typo".into()));
    assert_eq!(new_store("reconcile"), Some("typo".into()));
    // Now there is one, also for a dry run that is answered from memory.
    for _ in 0..2 {
        assert_eq!([new_store("plan"), new_store("reconcile")], [None, None]);
    }
    assert!(formats.iter().all(|format| !report("plan", format).contains(note)));
}

#[test]
fn reading_changes_no_file_of_a_store() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile --store shop storefront");
    let before = files(&folder, "shop");
    for line in [
        "plan --store shop storefront",
        "get edges --store shop",
        "history --store shop",
        "export --store shop",
        "store check --store shop",
    ] {
        folder.ok(line);
        assert!(files(&folder, "shop") == before, "{line}");
    }
}
