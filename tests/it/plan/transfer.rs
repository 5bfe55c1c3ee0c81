//! Resources that move between sources: they keep their IDs, and nothing is deleted or created in between (D104).

use std::collections::BTreeMap;

use edgewright::resources::Kind;
use serde_json::{Value, json};

use crate::support::{
    manifests::{bare_edge, edge},
    program::{CONFIG, Folder, Run, Serve, until},
    sources::{in_state, next_sync, shown, status, until_reason},
    users::client,
};

pub(crate) const PENDING: &str = "ERR_EDGEWRIGHT_TRANSFER_PENDING";
pub(crate) const CONFLICT: &str = "ERR_EDGEWRIGHT_OWNER_CONFLICT";

/// The manifest of the edge `shop` with one route. `more` follows its name in the metadata.
pub(crate) fn shop(more: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: shop{more}}}\nspec:\n  \
         hostports: [\"shop.example.com:443\"]\n  routes:\n  \
         - {{name: cart, match_type: path_prefix, match: /cart, backend: {{backend_id: bkd_1}}}}\n"
    )
}

/// A manifest that stays in its source.
fn other(name: &str) -> String {
    bare_edge(name, "")
}

/// Two folders of sources `a` and `b`; `a` has the shop.
pub(crate) fn two_folders() -> Folder {
    let folder = Folder::new();
    folder.write("a/other.yaml", &other("one"));
    folder.write("b/other.yaml", &other("two"));
    folder.write("a/shop.yaml", &shop(""));
    folder.ok("reconcile --source a a");
    folder.ok("reconcile --source b b");
    folder
}

pub(crate) fn apply(folder: &Folder, source: &str) -> Run {
    folder.ok(&format!("reconcile --source {source} {source}"))
}

/// The paths of all resources with their owners.
pub(crate) fn owners(folder: &Folder) -> BTreeMap<String, String> {
    let snapshot = folder.snapshot("store");
    let owned = snapshot.iter().filter_map(|entry| Some((entry.key.path(), entry.claim.as_deref()?.source.clone())));
    owned.collect()
}

/// The edge `shop` and its route as they are, except for their claims.
fn content(folder: &Folder) -> Vec<String> {
    let snapshot = folder.snapshot("store");
    let named = snapshot
        .iter()
        .filter(|entry| entry.claim.as_deref().is_some_and(|claim| ["shop", "cart"].contains(&claim.name.as_str())));
    named.map(|entry| format!("{} {} {} {:?}", entry.key, entry.created_at, entry.order, entry.spec())).collect()
}

#[test]
fn no_order_of_merges_deletes_or_creates_anything() {
    let offer = |folder: &Folder| folder.write("a/shop.yaml", &shop(", transfer_to: b"));
    let take = |folder: &Folder| folder.write("b/shop.yaml", &shop(", transfer_from: a"));
    let drop = |folder: &Folder| std::fs::remove_file(folder.path("a/shop.yaml")).unwrap();
    type Step<'s> = (&'s str, &'s dyn Fn(&Folder));
    let (offer, take, drop): (Step<'_>, Step<'_>, Step<'_>) = (("a", &offer), ("b", &take), ("a", &drop));
    for order in [[offer, take, drop], [take, offer, drop], [offer, drop, take]] {
        let folder = two_folders();
        let before = content(&folder);
        assert_eq!(before.len(), 2);
        for (source, step) in order {
            step(&folder);
            assert!(apply(&folder, source).calls().is_empty());
            assert_eq!(content(&folder), before);
        }
        for source in ["b", "a"] {
            assert!(apply(&folder, source).calls().is_empty());
        }
        assert_eq!(content(&folder), before);
        assert!(owners(&folder).iter().filter(|(_, owner)| *owner == "b").count() == 3, "{:?}", owners(&folder));
        for source in ["a", "b"] {
            let plan = folder.ok(&format!("plan --source {source} {source}"));
            assert!(plan.out.starts_with("No changes: ") && !plan.err.contains(PENDING), "{}", plan.all());
        }
        let told = folder.ok("blame edge shop").out;
        assert!(told.contains("owned by") && told.contains("source `b`"), "{told}");
    }
}

#[test]
fn while_both_declare_a_resource_nothing_changes_hands_again() {
    let folder = two_folders();
    folder.write("a/shop.yaml", &shop(", transfer_to: b"));
    folder.write("b/shop.yaml", &shop(", transfer_from: a"));
    apply(&folder, "a");
    let taken = apply(&folder, "b");
    assert_eq!(taken.out.matches("transferred from source `a`").count(), 2, "{}", taken.out);
    let revision = folder.snapshot("store").revision;
    for source in ["a", "b", "a", "b"] {
        apply(&folder, source);
    }
    assert_eq!(folder.snapshot("store").revision, revision);
    // What the new source deletes does not come back from the old one.
    std::fs::remove_file(folder.path("b/shop.yaml")).unwrap();
    let gone = folder.ok("reconcile --source b b");
    assert_eq!(gone.calls().iter().filter(|call| call.starts_with("DELETE")).count(), 2, "{}", gone.out);
    let left = apply(&folder, "a");
    assert!(left.calls().is_empty() && left.err.contains("is reserved for source `b`"), "{}", left.all());
}

#[test]
fn without_consent_a_source_waits_and_applies_the_rest() {
    let folder = two_folders();
    folder.write("b/shop.yaml", &shop(", transfer_from: a"));
    folder.write("b/more.yaml", &other("three"));
    let run = apply(&folder, "b");
    assert_eq!(run.calls(), ["POST /edges/https"]);
    assert!(run.err.contains(PENDING) && run.err.contains("set `transfer_to: b`"), "{}", run.err);
    assert_eq!(owners(&folder).values().filter(|owner| *owner == "b").count(), 2);
    // Nothing new appears inside an edge that waits.
    folder.edit("b/shop.yaml", "name: cart", "name: basket");
    assert!(apply(&folder, "b").calls().is_empty());
    // A consent to somebody else is none, and one that was withdrawn neither.
    for consent in [", transfer_to: c", ", transfer_to: b", ""] {
        folder.write("a/shop.yaml", &shop(consent));
        apply(&folder, "a");
    }
    let run = apply(&folder, "b");
    assert!(run.calls().is_empty() && run.err.contains(PENDING), "{}", run.all());
}

#[test]
fn the_old_source_cannot_take_back_alone() {
    let folder = two_folders();
    folder.write("a/shop.yaml", &shop(", transfer_to: b"));
    folder.write("b/shop.yaml", &shop(", transfer_from: a"));
    apply(&folder, "a");
    apply(&folder, "b");
    folder.write("a/shop.yaml", &shop(""));
    let run = folder.run("reconcile --source a a");
    assert_eq!(run.code, 3, "{}", run.all());
    assert!(run.err.contains(CONFLICT) && run.err.contains("it was transferred to source `b`"), "{}", run.err);
    folder.write("a/shop.yaml", &shop(", transfer_from: b"));
    folder.write("b/shop.yaml", &shop(", transfer_to: a"));
    let before = content(&folder);
    for source in ["b", "a"] {
        apply(&folder, source);
    }
    assert_eq!(content(&folder), before);
    assert_eq!(owners(&folder).values().filter(|owner| *owner == "a").count(), 3);
}

#[test]
fn a_promised_resource_survives_its_manifest_and_can_still_be_deleted() {
    let folder = two_folders();
    folder.write("a/shop.yaml", &shop(", transfer_to: b"));
    apply(&folder, "a");
    std::fs::remove_file(folder.path("a/shop.yaml")).unwrap();
    let run = apply(&folder, "a");
    assert!(run.calls().is_empty() && run.err.contains("kept until source `b` takes over"), "{}", run.all());
    folder.write("a/shop.yaml", &shop(""));
    let run = apply(&folder, "a");
    assert!(run.out.contains("no longer handed over to source `b`"), "{}", run.out);
    std::fs::remove_file(folder.path("a/shop.yaml")).unwrap();
    let run = apply(&folder, "a");
    assert_eq!(run.calls().iter().filter(|call| call.starts_with("DELETE")).count(), 2, "{}", run.out);
    assert!(run.out.contains("to move it to another source instead, set `transfer_to` first"), "{}", run.out);
}

#[test]
fn a_resource_with_another_id_than_its_name_gives_is_found() {
    let folder = Folder::new();
    folder.write("a/shop.yaml", &shop("").replace("name: shop", "name: store"));
    folder.ok("reconcile --source a a");
    folder.write("a/shop.yaml", &shop(", renamed_from: store"));
    folder.ok("reconcile --source a a");
    let before = content(&folder);
    assert_eq!(before.len(), 2);
    // By command: the old manifests must not create it again under the ID of its name.
    folder.ok("transfer edge/shop --from a --to b");
    let run = folder.run("reconcile --source a a");
    assert!(run.code == 3 && run.err.contains(CONFLICT), "{}", run.all());
    folder.write("b/shop.yaml", &shop(""));
    let declared = folder.ok("reconcile --source b b");
    assert!(declared.calls().is_empty() && declared.out.contains("now declared by its new source"), "{}", declared.out);
    // By manifests, with a new name.
    folder.write("b/shop.yaml", &shop(", transfer_to: c"));
    folder.ok("reconcile --source b b");
    folder.write("c/shop.yaml", &shop(", transfer_from: b, renamed_from: shop").replace("name: shop", "name: mall"));
    let run = folder.ok("reconcile --source c c");
    assert!(run.calls().is_empty() && run.out.contains("renamed from `shop`"), "{}", run.all());
    let snapshot = folder.snapshot("store");
    assert_eq!((snapshot.count(Kind::HttpsEdge), snapshot.count(Kind::HttpsEdgeRoute)), (1, 1));
}

#[test]
fn references_and_routes_of_others_stay() {
    let folder = two_folders();
    folder.write(
        "a/team.yaml",
        "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {name: team}\n\
         spec: {edge: shop, match_type: path_prefix, match: /team, backend: {backend_id: bkd_2}}\n",
    );
    apply(&folder, "a");
    let dry = folder.ok("transfer edge/shop --from a --to b --dry-run");
    // The source owns this route, so it would move along; it stays if the edge moves by manifests.
    assert!(dry.out.contains("shop/team"), "{}", dry.out);
    folder.write("a/shop.yaml", &shop(", transfer_to: b"));
    let consent = "spec:\n  delegates_to: [{source: a, path_prefix: /}]\n";
    folder.write("b/shop.yaml", &shop(", transfer_from: a").replace("spec:\n", consent));
    for source in ["a", "b"] {
        apply(&folder, source);
    }
    std::fs::remove_file(folder.path("a/shop.yaml")).unwrap();
    let run = apply(&folder, "a");
    assert!(run.calls().is_empty(), "{}", run.out);
    assert_eq!(owners(&folder).values().filter(|owner| *owner == "a").count(), 2, "{:?}", owners(&folder));
}

#[test]
fn a_command_moves_once_and_names_mistakes() {
    let folder = two_folders();
    let before = folder.snapshot("store").revision;
    let dry = folder.run("transfer edge/shop --from a --to b --dry-run --detailed-exitcode");
    assert_eq!(dry.code, 2, "{}", dry.all());
    assert_eq!(folder.snapshot("store").revision, before);
    let run = folder.ok("transfer edge/shop --from a --to b");
    assert_eq!(run.ids(), dry.ids());
    assert_eq!(folder.snapshot("store").revision, before + 1);
    assert!(folder.ok("transfer edge/shop --from a --to b").out.starts_with("No changes: 2 unchanged"));
    let told = folder.ok("history --limit 1").out;
    assert!(told.contains("    ~ HttpsEdge shop  now owned by `b`\n"), "{told}");
    let kept = apply(&folder, "b");
    assert!(kept.calls().is_empty() && kept.err.contains("kept until a manifest of this source"), "{}", kept.all());
    for (line, code, text) in [
        ("transfer edge/shpo --from a --to b", 1, "ERR_EDGEWRIGHT_NOT_FOUND"),
        ("transfer edge/two --from a --to c", 4, "source `b` owns it"),
        ("transfer --all --from nobody --to b", 1, "source `nobody` owns nothing"),
        ("transfer --all --from a --to a", 1, "are the same source"),
        ("transfer --from a --to b", 1, "RESOURCE"),
        ("transfer pod/x --from a --to b", 1, "unknown kind `pod`"),
    ] {
        let run = folder.run(line);
        assert!(run.code == code && run.err.contains(text), "{line}: {}", run.all());
    }
    assert_eq!(folder.snapshot("store").revision, before + 1);
    let refused = folder.run("rollback --to 1 --source a");
    assert!(refused.code == 4 && refused.err.contains("is now owned by source `b`"), "{}", refused.all());
    folder.ok("rollback --to 2 --max-deletes 9");
    assert_eq!(owners(&folder).values().filter(|owner| *owner == "a").count(), 3);
}

#[test]
fn markers_that_cannot_be_meant_are_errors() {
    let folder = two_folders();
    let set =
        "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {name: set, transfer_to: b}\nspec: {compression: {}}\n";
    for (text, expected) in [
        (shop(", transfer_to: a"), "`transfer_to` names the source itself"),
        (shop(", transfer_from: b, transfer_to: b"), "name the same source"),
        (shop(", transfer_to: ''"), "`transfer_to` must be the name of a source"),
        (set.to_owned(), "a ModuleSet has no `transfer_to`"),
    ] {
        folder.write("a/shop.yaml", &text);
        let run = folder.run("plan --source a a");
        assert!(run.code == 3 && run.err.contains(expected), "{text}{}", run.all());
    }
}

/// The edge `shop` as the API shows it.
fn served(serve: &Serve) -> Value {
    let list = serve.get("/edges/https").json();
    let edges = list["https_edges"].as_array().unwrap().iter();
    edges.filter(|edge| edge["hostports"] == json!(["shop.example.com:443"])).cloned().collect()
}

/// The source that owns the edge `shop`.
pub(crate) fn owner(serve: &Serve) -> Option<String> {
    let id = served(serve)[0]["id"].as_str()?.to_owned();
    Some(serve.get(&format!("/resources/{id}")).json()["source"].as_str()?.to_owned())
}

#[test]
fn a_server_that_follows_both_sources_moves_a_resource_in_any_order() {
    for a_first in [true, false] {
        let folder = Folder::new();
        folder.write("a/other.yaml", &other("one"));
        folder.write("b/other.yaml", &other("two"));
        folder.write("a/shop.yaml", &shop(""));
        folder.write(CONFIG, "sources:\n- {name: a, path: a, interval: 1s}\n- {name: b, path: b, interval: 1s}\n");
        let serve = folder.serve("");
        let before = served(&serve);
        assert_eq!(before.as_array().map(Vec::len), Some(1), "{before}");
        let mut changes = [("a/shop.yaml", shop(", transfer_to: b")), ("b/shop.yaml", shop(", transfer_from: a"))];
        if !a_first {
            changes.reverse();
        }
        for (name, text) in &changes {
            folder.write(name, text);
        }
        until("the move", || (owner(&serve)? == "b").then_some(()));
        std::fs::remove_file(folder.path("a/shop.yaml")).unwrap();
        until("the rest", || {
            let owned = |source| status(&serve, source)["counts"]["owned"].as_u64();
            (owned("a") == Some(1) && owned("b") == Some(3)).then_some(())
        });
        for source in ["a", "b"] {
            in_state(&serve, source, "Synced");
        }
        assert_eq!(served(&serve), before);
        let run = client(&folder, &serve, "transfer edge/shop --from b --to a");
        assert_eq!(run.code, 0, "{}", run.all());
        assert_eq!(owner(&serve).as_deref(), Some("a"));
        // Its manifests still say that it takes the edge over from `a`, which has not consented.
        until("the wait", || status(&serve, "b").to_string().contains("TRANSFER_PENDING").then_some(()));
        // The manifests of the new source do not have it yet.
        until("a warning", || status(&serve, "a").to_string().contains("kept until a manifest").then_some(()));
        assert_eq!(served(&serve), before);
        serve.stop();
        let told = folder.ok("history -o wide").out;
        assert!(!told.contains("DELETE "), "{told}");
        assert_eq!(told.lines().filter(|line| line.trim() == "POST /edges/https").count(), 3, "{told}");
    }
}

/// The newest revision of a server.
pub(crate) fn revision(serve: &Serve) -> u64 {
    let told = serve.get("/history").json();
    told["history"].as_array().unwrap().iter().find_map(|record| record["revision"].as_u64()).unwrap()
}

/// A server that follows the sources `a` and `b`.
fn serve_both(folder: &Folder) -> Serve {
    folder.write(CONFIG, "sources:\n- {name: a, path: a, interval: 1s}\n- {name: b, path: b, interval: 1s}\n");
    folder.serve("")
}

#[test]
fn a_rollback_over_a_transfer_stays_although_the_sources_have_changed_more_since() {
    let folder = Folder::new();
    folder.write("a/one.yaml", &edge("one", "one"));
    folder.write("b/two.yaml", &edge("two", "two"));
    folder.write("a/shop.yaml", &shop(""));
    let serve = serve_both(&folder);
    let before = revision(&serve);
    folder.write("a/shop.yaml", &shop(", transfer_to: b"));
    // A route that only the new source has ever had is not created inside an edge that waits.
    let route = "  - {name: basket, match_type: path_prefix, match: /basket, backend: {backend_id: bkd_1}}\n";
    folder.write("b/shop.yaml", &(shop(", transfer_from: a") + route));
    until("the move", || (owner(&serve)? == "b").then_some(()));
    folder.write("a/one.yaml", &edge("one", "one more"));
    folder.write("b/two.yaml", &edge("two", "two more"));
    let has = |description: &'static str| shown(&serve).contains(&description.to_owned());
    until("the changes", || (has("one more") && has("two more")).then_some(()));
    for source in ["a", "b"] {
        in_state(&serve, source, "Synced");
    }
    let answer = serve.call("POST", "/rollbacks", &json!({"to": before}).to_string());
    assert_eq!(answer.status, 201, "{}", answer.body);
    for source in ["a", "b"] {
        until_reason(&serve, source, "RolledBack");
    }
    assert_eq!(owner(&serve).as_deref(), Some("a"));
    assert!(has("one") && has("two"), "{:?}", shown(&serve));
    // What the manifests declare anew is applied, and the edge waits.
    folder.write("b/two.yaml", &edge("two", "two again"));
    until("the change", || has("two again").then_some(()));
    assert_eq!(owner(&serve).as_deref(), Some("a"));
    until_reason(&serve, "a", "RolledBack");
    // Declared again, the edge is an ordinary one once the rest of what was undone is reverted, too.
    folder.write("a/shop.yaml", &shop(""));
    assert_eq!(next_sync(&serve, "a")["conditions"][0]["reason"], "RolledBack");
    folder.write("a/one.yaml", &edge("one", "one"));
    let found = in_state(&serve, "a", "Synced");
    assert!(!found.to_string().contains("ERR_EDGEWRIGHT_ROLLED_BACK"), "{found:#}");
    assert_eq!((owner(&serve).as_deref(), has("one")), (Some("a"), true));
}
