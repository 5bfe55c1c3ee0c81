//! Transfers of resources whose immutable content or name changes at the same time, or afterwards (D104).

use edgewright::resources::Kind;

use super::transfer::{CONFLICT, PENDING, apply, shop, two_folders};
use crate::support::program::Folder;

/// An IP restriction, whose type cannot change. `more` follows its name in the metadata.
pub(crate) fn restriction(more: &str, kind: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: IpRestriction\nmetadata: {{name: office{more}}}\n\
         spec: {{type: {kind}, enforced: true, ip_policy_ids: [ipp_1]}}\n"
    )
}

/// The names of all IP restrictions with their owners.
pub(crate) fn restrictions(folder: &Folder) -> Vec<(String, String)> {
    let snapshot = folder.snapshot("store");
    let all = snapshot.iter().filter(|entry| entry.key.kind == Kind::IpRestriction);
    all.filter_map(|entry| entry.claim.as_deref().map(|claim| (claim.source.clone(), claim.name.clone()))).collect()
}

fn owned_by(source: &str) -> Vec<(String, String)> {
    vec![(source.to_owned(), "office".to_owned())]
}

#[test]
fn a_resource_with_other_immutable_content_is_replaced_when_it_changes_hands() {
    let folder = two_folders();
    folder.write("a/office.yaml", &restriction("", "api"));
    apply(&folder, "a");
    folder.write("b/office.yaml", &restriction(", transfer_from: a", "agent"));
    let waits = apply(&folder, "b");
    assert!(waits.calls().is_empty() && waits.err.contains(PENDING), "{}", waits.all());
    assert_eq!(restrictions(&folder), owned_by("a"));
    folder.write("a/office.yaml", &restriction(", transfer_to: b", "api"));
    apply(&folder, "a");
    let taken = apply(&folder, "b");
    assert!(taken.out.contains("0 to create, 0 to change, 1 to replace"), "{}", taken.out);
    assert_eq!(restrictions(&folder), owned_by("b"));
    for source in ["a", "b"] {
        assert!(apply(&folder, source).out.starts_with("No changes: "));
    }
    // The claim of the new one still says where it comes from.
    folder.write("a/office.yaml", &restriction("", "api"));
    let run = folder.run("reconcile --source a a");
    assert!(run.code == 3 && run.err.contains(CONFLICT), "{}", run.all());
    assert_eq!(restrictions(&folder), owned_by("b"));
}

#[test]
fn protected_resources_are_not_replaced_when_they_change_hands() {
    let folder = two_folders();
    for markers in [", prevent_destroy: true", ", transfer_to: b, prevent_destroy: true"] {
        folder.write("a/office.yaml", &restriction(markers, "api"));
        apply(&folder, "a");
    }
    folder.write("b/office.yaml", &restriction(", transfer_from: a", "agent"));
    let refused = folder.run("reconcile --source b b");
    assert!(refused.code == 4 && refused.err.contains("PREVENT_DESTROY"), "{}", refused.all());
    assert_eq!(restrictions(&folder), owned_by("a"));
}

#[test]
fn the_first_manifest_after_a_command_can_replace_what_was_moved() {
    for pruned in [true, false] {
        let folder = two_folders();
        folder.write("a/office.yaml", &restriction("", "api"));
        apply(&folder, "a");
        folder.ok("transfer iprestriction/office --from a --to b");
        let run = folder.run("reconcile --source a a");
        assert!(run.code == 3 && run.err.contains(CONFLICT), "{}", run.all());
        // The old source cannot create it again with other content either.
        folder.write("a/office.yaml", &restriction("", "agent"));
        let run = folder.run("reconcile --source a a");
        assert!(run.code == 3 && run.err.contains(CONFLICT), "{}", run.all());
        folder.write("b/office.yaml", &restriction("", "agent"));
        if !pruned {
            folder.ok("reconcile --source b b --prune=false");
        }
        let replaced = apply(&folder, "b");
        assert_eq!(replaced.out.contains("1 to replace"), pruned, "{}", replaced.out);
        assert_eq!(restrictions(&folder), owned_by("b"));
    }
}

#[test]
fn an_offer_with_other_immutable_content_is_still_a_change_of_the_old_source() {
    let folder = two_folders();
    folder.write("a/office.yaml", &restriction("", "api"));
    apply(&folder, "a");
    folder.write("a/office.yaml", &restriction(", transfer_to: b", "agnet"));
    let wrong = folder.run("plan --source a a");
    assert!(wrong.code == 3 && !wrong.err.contains("does not exist"), "{}", wrong.all());
    folder.write("a/office.yaml", &restriction(", transfer_to: b", "agent"));
    let offered = apply(&folder, "a");
    assert!(offered.out.contains("1 to replace"), "{}", offered.all());
    // The same again while the resource is promised.
    folder.write("a/office.yaml", &restriction(", transfer_to: b", "dashboard"));
    let offered = apply(&folder, "a");
    assert!(offered.out.contains("1 to replace"), "{}", offered.all());
    assert_eq!(restrictions(&folder), owned_by("a"));
}

#[test]
fn a_resource_that_was_renamed_after_its_transfer_is_not_created_again() {
    let folder = two_folders();
    folder.write("a/shop.yaml", &shop(", transfer_to: b"));
    folder.write("b/shop.yaml", &shop(", transfer_from: a"));
    apply(&folder, "a");
    apply(&folder, "b");
    // Two names later, and also if the first one came with the transfer.
    for name in ["mall", "plaza"] {
        let former = if name == "mall" { "shop" } else { "mall" };
        let text = shop(&format!(", transfer_from: a, renamed_from: {former}"))
            .replace("name: shop", &format!("name: {name}"));
        folder.write("b/shop.yaml", &text);
        apply(&folder, "b");
        let told = apply(&folder, "a");
        assert!(told.calls().is_empty() && told.err.contains("source `b` owns it"), "{}", told.all());
    }
    folder.write("a/shop.yaml", &shop(""));
    let run = folder.run("reconcile --source a a");
    assert!(run.code == 3 && run.err.contains(CONFLICT), "{}", run.all());
    assert!(run.err.contains("owned by source `b` under the name `plaza`"), "{}", run.err);
    assert_eq!(folder.snapshot("store").count(Kind::HttpsEdge), 3);
}
