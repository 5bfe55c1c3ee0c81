//! Names that change hands: what is renamed keeps its id, and the name is free for another resource (D54).

use std::collections::{BTreeMap, BTreeSet};

use edgewright::resources::{ApiKey, Kind};

use crate::support::program::{Folder, Run};

const PEM: &str = include_str!("../../../examples/storefront/certs/staff-devices.pem");

/// A manifest's kind, metadata beside the name, name, and `spec`.
type Manifest<'a> = (&'a str, &'a str, &'a str, &'a str);

const HOST_1: &str = "{hostports: [\"one.example.com:443\"]}";
const HOST_2: &str = "{hostports: [\"two.example.com:443\"]}";
const HOST_3: &str = "{hostports: [\"three.example.com:443\"]}";

fn edge<'a>(name: &'a str, more: &'a str, spec: &'a str) -> Manifest<'a> {
    ("HttpsEdge", more, name, spec)
}

fn write(folder: &Folder, manifests: &[Manifest<'_>]) {
    let documents = manifests.iter().map(|(kind, more, name, spec)| {
        format!("apiVersion: edgewright/v1\nkind: {kind}\nmetadata: {{name: {name}{more}}}\nspec: {spec}\n")
    });
    folder.write("m/all.yaml", &documents.collect::<Vec<_>>().join("---\n"));
}

/// Applies a commit to a store. Behind it there is nothing to do. Returns the ids by kind and name.
fn commit(folder: &Folder, store: &str, manifests: &[Manifest<'_>]) -> BTreeMap<String, String> {
    write(folder, manifests);
    folder.ok("validate m");
    folder.ok(&format!("reconcile --max-deletes 100% --store {store} m"));
    let again = folder.ok(&format!("plan --store {store} m"));
    assert!(again.out.starts_with("No changes: "), "{manifests:?}\n{}", again.out);
    names(folder, store)
}

fn names(folder: &Folder, store: &str) -> BTreeMap<String, String> {
    let snapshot = folder.snapshot(store);
    let owned = snapshot.iter().filter_map(|entry| {
        let claim = entry.claim.as_deref()?;
        Some((format!("{} {}", entry.key.kind, claim.name), entry.key.id.to_string()))
    });
    owned.collect()
}

/// Applies commits to two stores, one after the other. Both must have the same ids, which are returned by commit.
fn history(commits: &[&[Manifest<'_>]]) -> Vec<BTreeMap<String, String>> {
    let folder = Folder::new();
    let [first, second] = ["one", "two"].map(|store| {
        let ids = commits.iter().map(|manifests| commit(&folder, store, manifests));
        ids.collect::<Vec<_>>()
    });
    assert_eq!(first, second, "the same history has the same ids");
    first
}

fn id<'a>(ids: &'a BTreeMap<String, String>, name: &str) -> &'a str {
    ids[&format!("HttpsEdge {name}")].as_str()
}

#[test]
fn a_name_can_be_used_again_in_the_commit_that_gives_it_up() {
    let ids = history(&[
        &[edge("a", "", HOST_1)],
        &[edge("a", "", HOST_2), edge("b", ", renamed_from: a", HOST_1)],
        &[edge("b", "", HOST_1), edge("a", "", HOST_2)],
    ]);
    assert_eq!(id(&ids[1], "b"), id(&ids[0], "a"), "what is renamed keeps its id");
    assert_ne!(id(&ids[1], "a"), id(&ids[0], "a"));
    assert_eq!(ids[1], ids[2]);
}

#[test]
fn a_name_can_be_used_again_later() {
    let ids = history(&[
        &[edge("a", "", HOST_1)],
        &[edge("b", ", renamed_from: a", HOST_1)],
        &[edge("a", "", HOST_2), edge("b", ", renamed_from: a", HOST_1)],
        // Once the first owner of the name is gone, the second keeps its id.
        &[edge("a", "", HOST_2)],
        &[edge("c", "", HOST_3)],
        // A resource that nobody had is the first owner again.
        &[edge("c", "", HOST_3), edge("a", "", HOST_1)],
    ]);
    assert_eq!(id(&ids[2], "b"), id(&ids[0], "a"));
    assert_ne!(id(&ids[2], "a"), id(&ids[0], "a"));
    assert_eq!(id(&ids[3], "a"), id(&ids[2], "a"));
    assert_eq!(id(&ids[5], "a"), id(&ids[0], "a"));
}

#[test]
fn renames_follow_each_other_over_commits_and_within_one() {
    let ids = history(&[
        &[edge("a", "", HOST_1)],
        &[edge("b", ", renamed_from: a", HOST_1), edge("a", "", HOST_2)],
        &[edge("a", "", HOST_3), edge("b", ", renamed_from: a", HOST_2), edge("c", ", renamed_from: b", HOST_1)],
    ]);
    assert_eq!(id(&ids[2], "c"), id(&ids[0], "a"));
    assert_eq!(id(&ids[2], "b"), id(&ids[1], "a"));
    let all: BTreeSet<&String> = ids[2].values().collect();
    assert_eq!(all.len(), 3, "{:?}", ids[2]);
}

#[test]
fn two_resources_exchange_their_names() {
    let exchange = [edge("a", ", renamed_from: b", HOST_2), edge("b", ", renamed_from: a", HOST_1)];
    let back = [edge("a", ", renamed_from: b", HOST_1), edge("b", ", renamed_from: a", HOST_2)];
    let ids = history(&[
        &[edge("a", "", HOST_1), edge("b", "", HOST_2)],
        &exchange,
        &[edge("a", "", HOST_2), edge("b", "", HOST_1)],
        &back,
    ]);
    assert_eq!((id(&ids[1], "a"), id(&ids[1], "b")), (id(&ids[0], "b"), id(&ids[0], "a")));
    assert_eq!(ids[1], ids[2]);
    assert_eq!(ids[0], ids[3]);
    // A store that starts with the exchange has nothing to exchange.
    let fresh = history(&[&exchange, &[edge("a", "", HOST_2), edge("b", "", HOST_1)]]);
    assert_eq!(fresh[0], fresh[1]);
}

#[test]
fn three_resources_pass_their_names_on() {
    let ids = history(&[
        &[edge("a", "", HOST_1), edge("b", "", HOST_2), edge("c", "", HOST_3)],
        &[
            edge("a", ", renamed_from: c", HOST_3),
            edge("b", ", renamed_from: a", HOST_1),
            edge("c", ", renamed_from: b", HOST_2),
        ],
    ]);
    for (now, before) in [("a", "c"), ("b", "a"), ("c", "b")] {
        assert_eq!(id(&ids[1], now), id(&ids[0], before));
    }
}

#[test]
fn edges_exchange_their_names_with_all_of_their_routes() {
    let spec = |host: &str| {
        format!(
            "{{hostports: [\"{host}.example.com:443\"], routes: [{{name: r, match_type: path_prefix, match: /{host}, \
             backend: {{backend_id: bkd_1}}}}, {{match_type: exact_path, match: /, backend: {{backend_id: bkd_2}}}}]}}"
        )
    };
    let (one, two) = (spec("one"), spec("two"));
    let folder = Folder::new();
    commit(&folder, "store", &[edge("a", "", &one), edge("b", "", &two)]);
    let exchange = [edge("a", ", renamed_from: b", two.as_str()), edge("b", ", renamed_from: a", one.as_str())];
    write(&folder, &exchange);
    let plan = folder.ok("plan m");
    assert_eq!(plan.calls(), Vec::<String>::new(), "{}", plan.out);
    assert_eq!(plan.summary(), "0 to create, 2 to change, 0 to replace, 0 to delete, 4 unchanged");
    commit(&folder, "store", &exchange);

    // An exchange that is no longer declared is over, and then it can be declared again.
    write(&folder, &[edge("a", "", &two), edge("b", "", &one)]);
    let plan = folder.ok("plan m");
    assert!(plan.calls().is_empty() && plan.out.contains("(name swap ended)"), "{}", plan.out);
    // An export says so too: it plans to nothing.
    folder.ok("export out");
    assert!(folder.ok("plan out").out.starts_with("No changes: 6 unchanged."));
}

#[test]
fn names_of_every_kind_can_be_used_again() {
    let pem = format!("{{ca_pem: {:?}}}", PEM);
    let route = "{edge: shop, match_type: path_prefix, match: /one, backend: {backend_id: bkd_1}}";
    let other = "{edge: shop, match_type: path_prefix, match: /two, backend: {backend_id: bkd_1}}";
    let key = |file: &str| format!("{{description: for ci, token_file: ../{file}.token}}");
    let (key_a, key_b) = (key("a"), key("b"));
    for (kind, spec, another) in [
        // Content that cannot change is part of the id: the same content under the same name must not be the same id.
        ("CertificateAuthority", pem.as_str(), pem.as_str()),
        ("IpRestriction", "{type: dashboard, ip_policy_ids: [ipp_1]}", "{type: dashboard, ip_policy_ids: [ipp_1]}"),
        ("HttpsEdgeRoute", route, other),
        ("ApiKey", key_b.as_str(), key_a.as_str()),
        ("TlsEdge", "{backend: {backend_id: bkd_1}}", "{backend: {backend_id: bkd_2}}"),
    ] {
        let folder = Folder::new();
        let shop = edge("shop", "", HOST_1);
        let before = commit(&folder, "store", &[shop, (kind, "", "a", spec)]);
        let after = commit(&folder, "store", &[shop, (kind, "", "a", another), (kind, ", renamed_from: a", "b", spec)]);
        let of = |ids: &BTreeMap<String, String>, name: &str| ids[&format!("{kind} {name}")].clone();
        assert_eq!(of(&after, "b"), of(&before, "a"), "{kind}");
        assert_ne!(of(&after, "a"), of(&before, "a"), "{kind}");
    }
}

#[test]
fn another_source_can_use_a_name_that_was_given_up() {
    let folder = Folder::new();
    commit(&folder, "store", &[edge("a", "", HOST_1)]);
    let ours = commit(&folder, "store", &[edge("b", ", renamed_from: a", HOST_1)]);
    write(&folder, &[edge("a", "", HOST_2)]);
    folder.ok("reconcile --source other m");
    assert_eq!(folder.ok("plan --source other m").out, "No changes: 1 unchanged.\n");
    let both = names(&folder, "store");
    assert_eq!(both.len(), 2, "{both:?}");
    assert_eq!(id(&both, "b"), id(&ours, "b"));
}

#[test]
fn a_name_is_renamed_to_one_other_name() {
    let folder = Folder::new();
    commit(&folder, "store", &[edge("a", "", HOST_1)]);
    write(&folder, &[edge("b", ", renamed_from: a", HOST_1), edge("c", ", renamed_from: a", HOST_2)]);
    let refused = |run: &Run| {
        assert_eq!(run.code, 3, "{}", run.all());
        assert!(run.err.contains("ERR_EDGEWRIGHT_DUPLICATE_NAME") && run.err.contains("all.yaml:8:"), "{}", run.err);
        assert!(run.err.contains("`a` cannot be renamed to both `b` and `c`"), "{}", run.err);
    };
    refused(&folder.run("plan m"));
    refused(&folder.run("reconcile m"));
}

#[test]
fn a_rename_that_is_set_aside_keeps_its_name_from_others() {
    let folder = Folder::new();
    let before = commit(&folder, "store", &[edge("a", "", HOST_1), edge("x", "", HOST_3)]);
    let faulty = "{hostports: [\"one.example.com:443\"], mutual_tls: {certificate_authority_ids: [nobody]}}";
    write(&folder, &[edge("a", "", HOST_2), edge("b", ", renamed_from: a", faulty), edge("x", "", HOST_3)]);
    let run = folder.run("reconcile --isolate m");
    assert_eq!(run.code, 1, "{}", run.all());
    assert!(run.err.contains("Skipped: HttpsEdge a ") && run.err.contains("Skipped: HttpsEdge b "), "{}", run.err);
    assert_eq!(names(&folder, "store"), before);
    assert_eq!(folder.snapshot("store").revision, 1);
    // With the fault out of the way both are applied.
    let after = commit(
        &folder,
        "store",
        &[edge("a", "", HOST_2), edge("b", ", renamed_from: a", HOST_1), edge("x", "", HOST_3)],
    );
    assert_eq!(id(&after, "b"), id(&before, "a"));
}

#[test]
fn the_order_of_files_means_nothing() {
    let ids = ["m/0.yaml", "m/z.yaml"].map(|file| {
        let folder = Folder::new();
        commit(&folder, "store", &[edge("a", "", HOST_1)]);
        write(&folder, &[edge("a", "", HOST_2), edge("b", ", renamed_from: a", HOST_1)]);
        let text = folder.read("m/all.yaml");
        let (first, second) = text.split_once("---\n").unwrap();
        folder.write("m/all.yaml", first);
        folder.write(file, second);
        folder.ok("reconcile m");
        names(&folder, "store")
    });
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn an_api_key_is_not_adopted_under_another_owner() {
    let folder = Folder::new();
    folder.ok("keys create --role admin");
    let state = folder.snapshot("store");
    let key = state.iter().find(|entry| entry.key.kind == Kind::ApiKey).unwrap();
    let (id, owner) = (format!(", id: {}", key.key.id), key.spec_as::<ApiKey>().unwrap().owner_id.clone());
    write(&folder, &[("ApiKey", &id, "ci", "{token_file: ../ci.token, owner_id: bot_other}")]);
    let refused = folder.run("reconcile m");
    let told = [format!("the owner of ApiKey {} is `{owner}`", key.key.id), "m/all.yaml:4:".into(), "IMMUTABLE".into()];
    assert!(refused.code == 3 && told.iter().all(|part| refused.err.contains(part)), "{}", refused.all());
    assert_eq!(folder.snapshot("store").len(), state.len(), "no other key is created");
    write(&folder, &[("ApiKey", &id, "ci", &format!("{{token_file: ../ci.token, owner_id: {owner}}}"))]);
    assert!(folder.ok("reconcile m").summary().contains("1 to adopt"));
}
