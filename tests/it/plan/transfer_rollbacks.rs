//! Rollbacks over transfers: the manifests of both sources are still those from afterwards (D78, D104).

use serde_json::json;

use super::{
    transfer::{CONFLICT, PENDING, apply, owner, owners, revision, shop, two_folders},
    transfer_content::{restriction, restrictions},
};
use crate::support::{
    manifests::edge,
    program::{CONFIG, Folder, Run, until},
    sources::{in_state, shown, status},
    users::client,
};

const ROLLED_BACK: &str = "ERR_EDGEWRIGHT_ROLLED_BACK";

fn remove(folder: &Folder, name: &str) {
    std::fs::remove_file(folder.path(name)).unwrap();
}

/// Whether a run creates or deletes a resource.
fn creates_or_deletes(run: &Run) -> bool {
    run.calls().iter().any(|call| call.starts_with("DELETE") || call.starts_with("POST"))
}

/// The edge `shop` moved from `a` to `b`, with manifests that no longer declare it in `a`, and a rollback to before that.
fn undone() -> Folder {
    let folder = two_folders();
    folder.write("a/shop.yaml", &shop(", transfer_to: b"));
    folder.write("b/shop.yaml", &shop(", transfer_from: a"));
    apply(&folder, "a");
    apply(&folder, "b");
    remove(&folder, "a/shop.yaml");
    apply(&folder, "a");
    let run = folder.ok("rollback --to 2 --max-deletes 9");
    assert!(run.out.contains("kept until its source declares it"), "{}", run.out);
    folder
}

#[test]
fn the_next_changes_of_both_sources_keep_what_a_rollback_returned() {
    let folder = undone();
    let expected = owners(&folder);
    assert_eq!(expected.values().filter(|owner| *owner == "a").count(), 3, "{expected:?}");
    let again = folder.ok("rollback --to 2 --max-deletes 9");
    assert!(again.out.starts_with("No changes: "), "{}", again.out);
    // With the marker, and after it was removed.
    for markers in [", transfer_from: a", ""] {
        folder.write("b/shop.yaml", &shop(markers));
        for (source, name) in [("a", "one"), ("b", "two")] {
            let text = edge(name, &format!("again{}", markers.len()));
            folder.write(&format!("{source}/other.yaml"), &text);
            let run = apply(&folder, source);
            assert!(run.calls().len() == 1 && !creates_or_deletes(&run), "{}", run.all());
            assert!(run.err.contains(ROLLED_BACK), "{}", run.err);
            assert!(run.err.contains("`edgewright transfer --from a --to b`"), "{}", run.err);
            assert_eq!(owners(&folder), expected);
        }
    }
}

#[test]
fn a_rollback_to_an_open_offer_leaves_the_resource_with_its_source() {
    let folder = two_folders();
    folder.write("a/shop.yaml", &shop(", transfer_to: b"));
    apply(&folder, "a");
    let offered = folder.snapshot("store").revision;
    folder.write("b/shop.yaml", &shop(", transfer_from: a"));
    apply(&folder, "b");
    remove(&folder, "a/shop.yaml");
    apply(&folder, "a");
    for expected in ["kept until its source declares it", "No changes: "] {
        let run = folder.ok(&format!("rollback --to {offered} --max-deletes 9"));
        assert!(run.out.contains(expected), "{}", run.out);
    }
    let expected = owners(&folder);
    assert_eq!(expected.values().filter(|owner| *owner == "a").count(), 3, "{expected:?}");
    for (source, name) in [("b", "two"), ("a", "one")] {
        folder.write(&format!("{source}/other.yaml"), &edge(name, "again"));
        let run = apply(&folder, source);
        assert!(run.calls().len() == 1 && run.err.contains(ROLLED_BACK), "{}", run.all());
        assert_eq!(owners(&folder), expected);
    }
}

#[test]
fn a_returned_resource_is_declared_again_or_moves_again() {
    let folder = undone();
    let expected = owners(&folder);
    folder.write("a/shop.yaml", &shop(""));
    let run = apply(&folder, "a");
    assert!(run.calls().is_empty() && run.out.contains("declared by its source again"), "{}", run.all());
    // Now it is an ordinary resource of its source.
    let waits = apply(&folder, "b");
    assert!(waits.calls().is_empty() && waits.err.contains(PENDING), "{}", waits.all());
    folder.write("b/shop.yaml", &shop(""));
    let run = folder.run("reconcile --source b b");
    assert!(run.code == 3 && run.err.contains(CONFLICT), "{}", run.all());
    assert_eq!(owners(&folder), expected);

    let folder = undone();
    folder.ok("transfer edge/shop --from a --to b");
    for source in ["a", "b", "a"] {
        let run = apply(&folder, source);
        assert!(run.calls().is_empty() && !run.err.contains(ROLLED_BACK), "{}", run.all());
    }
    assert_eq!(owners(&folder).values().filter(|owner| *owner == "b").count(), 3);
}

#[test]
fn a_renamed_or_replaced_resource_is_not_created_again_after_a_rollback() {
    let folder = two_folders();
    folder.write("a/office.yaml", &restriction("", "api"));
    apply(&folder, "a");
    let before = folder.snapshot("store").revision;
    folder.write("a/office.yaml", &restriction(", transfer_to: b", "api"));
    folder.write("a/shop.yaml", &shop(", transfer_to: b"));
    folder.write("b/office.yaml", &restriction(", transfer_from: a", "agent"));
    let renamed = |markers: &str| shop(markers).replace("name: shop", "name: mall");
    folder.write("b/shop.yaml", &renamed(", transfer_from: a, renamed_from: shop"));
    apply(&folder, "a");
    apply(&folder, "b");
    remove(&folder, "a/shop.yaml");
    remove(&folder, "a/office.yaml");
    apply(&folder, "a");
    folder.write("b/shop.yaml", &renamed(""));
    folder.write("b/office.yaml", &restriction("", "agent"));
    apply(&folder, "b");
    folder.ok(&format!("rollback --to {before} --max-deletes 9"));
    let expected = owners(&folder);
    assert_eq!(restrictions(&folder), [("a".to_owned(), "office".to_owned())]);
    for source in ["a", "b", "a", "b"] {
        let run = apply(&folder, source);
        assert!(run.calls().is_empty() && run.err.contains(ROLLED_BACK), "{}", run.all());
        assert_eq!(owners(&folder), expected);
    }
}

#[test]
fn both_sources_are_rolled_back_after_a_transfer_by_command() {
    let folder = two_folders();
    folder.write(CONFIG, "sources:\n- {name: a, path: a, interval: 1s}\n- {name: b, path: b, interval: 1s}\n");
    let serve = folder.serve("");
    let before = revision(&serve);
    let run = client(&folder, &serve, "transfer edge/shop --from a --to b");
    assert_eq!(run.code, 0, "{}", run.all());
    folder.write("b/shop.yaml", &shop(""));
    remove(&folder, "a/shop.yaml");
    until("the declaration", || (revision(&serve) >= before + 2).then_some(()));
    for source in ["a", "b"] {
        in_state(&serve, source, "Synced");
    }
    let answer = serve.call("POST", "/rollbacks", &json!({"to": before}).to_string());
    assert_eq!(answer.status, 201, "{}", answer.body);
    for source in ["a", "b"] {
        let reason = || status(&serve, source)["conditions"][0]["reason"].clone();
        until("the reason", || (reason() == "RolledBack").then_some(()));
        // The reason is there at once, and the diagnostic after the next sync.
        let told = until("the diagnostic", || {
            Some(status(&serve, source).to_string()).filter(|told| told.contains(ROLLED_BACK))
        });
        assert!(!told.contains(CONFLICT), "{told}");
    }
    for (source, name) in [("a", "one"), ("b", "two")] {
        folder.write(&format!("{source}/other.yaml"), &edge(name, &format!("next-{source}")));
        until("the change", || shown(&serve).contains(&format!("next-{source}")).then_some(()));
        in_state(&serve, source, "Synced");
        assert_eq!(owner(&serve).as_deref(), Some("a"));
    }
    serve.stop();
    let told = folder.ok("history -o wide").out;
    assert!(!told.contains("DELETE "), "{told}");
}

#[test]
fn a_transfer_by_command_ends_what_a_rollback_left_for_the_receiver() {
    let folder = two_folders();
    folder.write(CONFIG, "sources:\n- {name: a, path: a, interval: 1s}\n- {name: b, path: b, interval: 1s}\n");
    let serve = folder.serve("");
    let before = revision(&serve);
    let moves = || {
        let run = client(&folder, &serve, "transfer edge/shop --from a --to b");
        assert_eq!(run.code, 0, "{}", run.all());
    };
    let is_rolled_back = |source: &str| status(&serve, source)["conditions"][0]["reason"] == "RolledBack";
    moves();
    let moved = revision(&serve);
    folder.write("b/shop.yaml", &shop(""));
    remove(&folder, "a/shop.yaml");
    until("the declaration", || (revision(&serve) > moved).then_some(()));
    for source in ["a", "b"] {
        in_state(&serve, source, "Synced");
    }
    let answer = serve.call("POST", "/rollbacks", &json!({"to": before}).to_string());
    assert_eq!(answer.status, 201, "{}", answer.body);
    for source in ["a", "b"] {
        until("the reason", || is_rolled_back(source).then_some(()));
    }
    moves();
    for source in ["a", "b"] {
        until("the end of the rollback", || (!is_rolled_back(source)).then_some(()));
        in_state(&serve, source, "Synced");
        assert!(!status(&serve, source).to_string().contains(ROLLED_BACK));
    }
    assert_eq!(owner(&serve).as_deref(), Some("b"));
    // A rollback to the time between the transfer and its declaration stays: nobody has moved anything since.
    let answer = serve.call("POST", "/rollbacks", &json!({"to": moved}).to_string());
    assert_eq!(answer.status, 201, "{}", answer.body);
    until("the reason", || is_rolled_back("b").then_some(()));
}
