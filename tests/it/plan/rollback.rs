//! `edgewright rollback`: an earlier state is a new revision, with all its secrets and the safety of every plan (D78).

use serde_json::{Value, json};

use super::rollback_holds::rollback;
use crate::support::{
    manifests::edge,
    program::{Folder, Serve, on_terminal, until},
    sources::{shown, until_reason},
    users::through,
};

const SECRET: &str = "storefront/secrets/stripe-webhook-secret.txt";

fn edges(count: usize) -> String {
    let edge = |n| format!("---\napiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: e{n}}}\nspec: {{}}\n");
    (0..count).map(edge).collect()
}

#[test]
fn a_rollback_is_planned_and_then_one_revision_with_the_secrets_of_then() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    let first = folder.read(SECRET);
    folder.write(SECRET, "another-secret\n");
    folder.ok("reconcile storefront");

    let dry = folder.ok("rollback --to 1 --dry-run");
    assert!(dry.out.contains("(secret, changed)"), "{}", dry.out);
    assert_eq!(dry.calls().len(), 1, "{}", dry.out);
    assert_eq!(folder.run("rollback --to 1 --dry-run --detailed-exitcode").code, 2);
    assert_eq!(folder.snapshot("store").revision, 2, "a dry run changes nothing");

    let run = folder.ok("rollback --to 1");
    assert_eq!(run.calls(), dry.calls(), "what was shown is what runs");
    assert!(run.err.contains("Applied as revision 3."), "{}", run.err);
    for text in [&dry, &run] {
        assert!(!text.all().contains(first.trim()) && !text.all().contains("another-secret"), "{}", text.all());
    }
    assert!(folder.ok("rollback --to 1").out.starts_with("No changes: "));
    folder.write(SECRET, &first);
    assert!(folder.ok("plan storefront").out.starts_with("No changes: "), "the secret is the one of then");
    let told = folder.ok("history --limit 1").out;
    assert!(told.starts_with("3  ") && told.contains("Z  applied  rollback to revision 1"), "{told}");

    let report: Value = serde_json::from_str(&folder.ok("rollback --to 2 --format json").out).unwrap();
    assert_eq!((&report["command"], &report["applied"]), (&json!("rollback"), &json!(4)));
    assert_eq!(folder.run("plan storefront --detailed-exitcode").code, 2, "revision 2 had the other secret");
}

#[test]
fn a_rollback_has_the_limits_of_every_plan() {
    let folder = Folder::new();
    folder.write("m/e.yaml", &edges(1));
    folder.ok("reconcile m");
    folder.write("m/e.yaml", &edges(9));
    folder.ok("reconcile m");
    let refused = folder.run("rollback --to 1");
    assert_eq!(refused.code, 4, "{}", refused.all());
    assert!(refused.err.contains("ERR_EDGEWRIGHT_TOO_MANY_DELETIONS"), "{}", refused.err);
    assert!(refused.err.contains("8 of the store's 9 resources"), "{}", refused.err);
    let told = folder.ok("history --limit 1").out;
    assert!(told.contains("refused  rollback to revision 1"), "{told}");
    folder.ok("rollback --to 1 --max-deletes 8");
    assert_eq!(folder.snapshot("store").len(), 1);
    let future = folder.run("rollback --to 99");
    assert_eq!(future.code, 1);
    assert!(future.err.contains("ERR_EDGEWRIGHT_REVISION_NOT_FOUND"), "{}", future.err);
    assert!(future.err.contains("revision 99 does not exist; the store is at revision 3"), "{}", future.err);
    let unknown = folder.run("rollback --to 2 --source nobody");
    assert_eq!((unknown.code, unknown.err.contains("owned nothing at revision 2")), (1, true), "{}", unknown.all());
    assert_eq!(folder.run("rollback --to 1 --store none").code, 1);
    assert!(!folder.path("none").exists());
}

#[test]
fn a_terminal_is_asked_before_a_rollback() {
    let folder = Folder::new();
    for count in [1, 2] {
        folder.write("m/e.yaml", &edges(count));
        folder.ok("reconcile m");
    }
    let typed = |line: &str, typed: &str| on_terminal(&folder.command(line), typed);
    for answer in ["no\n", "\n"] {
        let Some(refused) = typed("rollback --to 1", answer) else { return };
        assert!(refused.code == 1 && refused.out.contains("DELETE /edges/https/"), "{}", refused.all());
        assert!(refused.out.contains("Type `yes` to roll back to revision 1: "), "{}", refused.all());
        assert!(refused.out.contains("ERR_EDGEWRIGHT_NOT_CONFIRMED"), "{}", refused.all());
        assert_eq!(folder.snapshot("store").revision, 2);
    }
    let dry = typed("rollback --to 1 --dry-run", "").unwrap();
    assert!(dry.code == 0 && !dry.out.contains("Type `yes`"), "{}", dry.all());
    assert_eq!(typed("rollback --to 1", "yes\n").unwrap().code, 0);
    assert_eq!(folder.snapshot("store").revision, 3);
    let unasked = typed("rollback --to 2 --yes", "").unwrap();
    assert!(unasked.code == 0 && !unasked.out.contains("Type `yes`"), "{}", unasked.all());
    assert_eq!(folder.snapshot("store").revision, 4);
}

#[test]
fn one_source_is_rolled_back_and_another_stays() {
    let folder = Folder::new();
    for source in ["shop", "docs"] {
        folder.write(&format!("{source}/one.yaml"), &edge(source, "first"));
        folder.ok(&format!("reconcile --source {source} {source}"));
    }
    for source in ["shop", "docs"] {
        folder.edit(&format!("{source}/one.yaml"), "first", "second");
        folder.ok(&format!("reconcile --source {source} {source}"));
    }
    let run = folder.ok("rollback --to 2 --source shop");
    let pending = |source: &str| folder.run(&format!("plan --source {source} {source} --detailed-exitcode")).code;
    assert_eq!((pending("shop"), pending("docs")), (2, 0));
    // Undoing the rollback leaves what another source has changed since.
    folder.edit("docs/one.yaml", "second", "third");
    folder.ok("reconcile --source docs docs");
    let undo = run.err.lines().find_map(|line| line.strip_prefix("To undo this rollback, run `edgewright "));
    assert_eq!(undo, Some("rollback --to 4 --source shop`."), "{}", run.err);
    folder.ok("rollback --to 4 --source shop");
    assert_eq!((pending("shop"), pending("docs")), (0, 0));
}

#[test]
fn a_rollback_through_a_server_is_the_one_that_was_shown() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let run = |line: &str| through(&folder, &serve, line);
    folder.write("m/one.yaml", &edge("one", "first"));
    assert_eq!(run("reconcile m").code, 0);
    folder.write("m/one.yaml", &edge("one", "second"));
    assert_eq!(run("reconcile m").code, 0);
    let dry = run("rollback --to 2 --dry-run --detailed-exitcode");
    assert_eq!((dry.code, shown(&serve)), (2, vec!["second".to_owned()]), "{}", dry.all());
    let applied = run("rollback --to 2");
    assert_eq!((applied.code, shown(&serve)), (0, vec!["first".to_owned()]), "{}", applied.all());
    assert_eq!(applied.calls(), dry.calls());
    assert!(applied.err.contains("Applied as revision 4."), "{}", applied.err);
    let emptied = run("rollback --to 1");
    assert_eq!(emptied.code, 0, "one deletion is within the limit\n{}", emptied.all());
    assert!(shown(&serve).is_empty());
    let future = run("rollback --to 99");
    assert_eq!((future.code, future.err.contains("revision 99 does not exist")), (1, true), "{}", future.all());
}

#[test]
fn a_rollback_of_more_deletions_than_the_limit_allows_is_left() {
    let folder = Folder::new();
    for name in ["a", "b", "c", "d", "e"] {
        folder.write(&format!("m/{name}.yaml"), &edge(name, "kept"));
    }
    let count = |serve: &Serve| serve.get("/edges/https").json()["https_edges"].as_array().map(Vec::len);
    let serve = folder.serve("--manifests m --max-deletes 100%");
    assert_eq!(count(&serve), Some(5));
    for name in ["b", "c", "d", "e"] {
        std::fs::remove_file(folder.path(&format!("m/{name}.yaml"))).unwrap();
    }
    until("the deletions", || (count(&serve) == Some(1)).then_some(()));
    assert_eq!(serve.stop().code, 0);
    let serve = folder.serve("--manifests m");
    assert_eq!(rollback(&serve, json!({"to": 2})).status, 201);
    until_reason(&serve, "default", "RolledBack");
    assert_eq!(count(&serve), Some(5));
}
