//! What commands, plans and the status say about transfers, and when (D104).

use serde_json::json;

use super::{
    transfer::{apply, owner, revision, shop, two_folders},
    transfer_content::restriction,
};
use crate::support::{
    manifests::edge,
    program::{CONFIG, until},
    sources::status,
};

#[test]
fn a_refused_transfer_shows_no_plan_and_the_resource_that_may_be_meant() {
    let folder = two_folders();
    let run = folder.run("transfer route/cart --from a --to b");
    assert_eq!((run.code, run.out.as_str()), (1, ""), "{}", run.all());
    assert!(run.err.contains("did you mean `HttpsEdgeRoute/shop/cart`?"), "{}", run.err);
}

#[test]
fn an_event_subscription_moves_by_its_name() {
    let folder = two_folders();
    folder.write(
        "a/audit.yaml",
        "apiVersion: edgewright/v1\nkind: EventSubscription\nmetadata: {name: audit}\n\
         spec: {sources: [{type: ip_policy_created.v0}]}\n",
    );
    apply(&folder, "a");
    let run = folder.ok("transfer eventsubscription/audit --from a --to b");
    assert!(run.out.contains("ip_policy_created.v0") && run.out.contains("1 to adopt"), "{}", run.out);
}

#[test]
fn a_plan_warns_about_routes_that_the_new_source_must_not_declare() {
    let folder = two_folders();
    let dry = folder.ok("transfer route/shop/cart --from a --to b --dry-run");
    assert!(dry.err.contains("ERR_EDGEWRIGHT_NOT_DELEGATED"), "{}", dry.all());
    assert!(dry.err.contains("the next apply of source `b` will fail for HttpsEdgeRoute"), "{}", dry.all());
    // With its edge, it needs no consent.
    let dry = folder.ok("transfer edge/shop --from a --to b --dry-run");
    assert!(!dry.err.contains("NOT_DELEGATED"), "{}", dry.all());
}

#[test]
fn a_source_that_waits_syncs_again_when_the_other_one_has_changed() {
    let folder = two_folders();
    // Nothing but the commit of the other source can cause the second sync in time.
    folder.write(CONFIG, "sources:\n- {name: a, path: a, interval: 1h}\n- {name: b, path: b, interval: 1h}\n");
    let serve = folder.serve("");
    let waits = || status(&serve, "b").to_string().contains("TRANSFER_PENDING");
    folder.write("b/shop.yaml", &shop(", transfer_from: a"));
    until("the wait", || waits().then_some(()));
    folder.write("a/shop.yaml", &shop(", transfer_to: b"));
    until("the move", || (owner(&serve)? == "b" && !waits()).then_some(()));
}

#[test]
fn the_status_says_how_to_delete_a_source_that_nobody_follows() {
    let folder = two_folders();
    folder.write(CONFIG, "sources:\n- {name: a, path: a}\n");
    let serve = folder.serve("");
    let told = status(&serve, "b").to_string();
    assert!(told.contains("edgewright destroy --source b`"), "{told}");
}

#[test]
fn the_status_says_what_a_rollback_undid() {
    let folder = two_folders();
    folder.write(CONFIG, "sources:\n- {name: a, path: a}\n- {name: b, path: b}\n");
    let serve = folder.serve("");
    let before = revision(&serve);
    folder.write("a/one.yaml", &edge("three", "three"));
    until("the change", || (revision(&serve) > before).then_some(()));
    let answer = serve.call("POST", "/rollbacks", &json!({"to": before, "source": "a"}).to_string());
    assert_eq!(answer.status, 201, "{}", answer.body);
    until("the reason", || {
        let told = status(&serve, "a").to_string();
        told.contains("held: a rollback undid what the manifests declare; applied again").then_some(())
    });
}

#[test]
fn what_both_sources_created_says_how_to_delete_it() {
    let folder = two_folders();
    // In a new store, the receiver can be first.
    folder.write("b/office.yaml", &restriction(", transfer_from: a", "agent"));
    apply(&folder, "b");
    for markers in ["", ", transfer_to: b"] {
        folder.write("a/office.yaml", &restriction(markers, "api"));
        apply(&folder, "a");
    }
    std::fs::remove_file(folder.path("a/office.yaml")).unwrap();
    let kept = apply(&folder, "a");
    assert!(kept.err.contains("kept although source `b` cannot take over: it has its own resource"), "{}", kept.err);
    assert!(kept.err.contains("to delete, apply a manifest without `transfer_to`, then remove it"), "{}", kept.err);
    folder.write("a/office.yaml", &restriction("", "api"));
    apply(&folder, "a");
    std::fs::remove_file(folder.path("a/office.yaml")).unwrap();
    assert_eq!(apply(&folder, "a").calls().len(), 1);
}

#[test]
fn a_route_is_kept_with_a_warning_although_another_edge_has_a_route_of_its_name() {
    let folder = two_folders();
    folder.write("b/keep.yaml", &shop("").replace("name: shop", "name: keep").replace("shop.example", "keep.example"));
    apply(&folder, "b");
    folder.ok("transfer route/shop/cart --from a --to b");
    let run = apply(&folder, "b");
    assert!(run.calls().is_empty() && run.err.contains("kept until a manifest of this source"), "{}", run.all());
    assert!(run.err.contains("(`cart`)"), "{}", run.err);
    // What moves with its edge needs no line of its own.
    folder.ok("transfer edge/shop --from a --to b");
    let run = apply(&folder, "b");
    assert!(run.err.contains("(`shop`)") && !run.err.contains("(`cart`)"), "{}", run.err);
}
