//! A followed source uses the module sets of other folders without owning them (D107, D111).

use crate::support::{
    git::git,
    program::{CONFIG, Folder, Serve, until},
    sources::{in_state, until_logged},
};

const SETS: &str =
    "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {name: usual}\nspec: {compression: {enabled: true}}\n";
const SHOP: &str = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: shop}\nspec:\n  hostports: ['shop.example.com:443']\n  \
    routes:\n    - {name: cart, match_type: path_prefix, match: /, backend: {backend_id: bkd_1}, modules_from: [usual]}\n";
const OTHER: &str = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: other}\nspec: {hostports: ['other.example.com:443']}\n";

/// A team's folder, and one with the sets that it uses and an edge that it does not own.
fn teams() -> Folder {
    let folder = Folder::new();
    folder.write("m/team/shop.yaml", SHOP);
    folder.write("m/shared/sets.yaml", SETS);
    folder.write("m/shared/other.yaml", OTHER);
    folder
}

/// Whether compression is on in the one route of the one edge.
fn compresses(serve: &Serve) -> Option<bool> {
    let edges = serve.get("/edges/https").json();
    let [edge] = edges["https_edges"].as_array()?.as_slice() else { return None };
    edge["routes"].as_array()?.first()?["compression"]["enabled"].as_bool()
}

#[test]
fn a_folder_is_followed_with_surrounding_manifests() {
    let folder = teams();
    folder.write(CONFIG, "sources: [{name: team, path: m/team, with: [m/shared]}]\n");
    let serve = folder.serve("");
    assert_eq!(compresses(&serve), Some(true), "{}", serve.said());
    // A change of the surrounding manifests alone is a change of the routes that use it.
    folder.edit("m/shared/sets.yaml", "true", "false");
    until("the other set", || (compresses(&serve) == Some(false)).then_some(()));
    // What cannot be read may be what the source uses: it keeps what it has.
    folder.edit("m/shared/sets.yaml", "enabled", "enable");
    until_logged(&serve, "team", "The manifests are not applied");
    assert_eq!(compresses(&serve), Some(false));
    folder.write("m/shared/sets.yaml", SETS);
    until("the set is back", || (compresses(&serve) == Some(true)).then_some(()));
    in_state(&serve, "team", "Synced");
    // A value that nobody has set is an error, and never a value.
    let unset = "{webhook_verification: {provider: github, secret: {from_env: NOT_SET}}}";
    folder.edit("m/shared/sets.yaml", "{compression: {enabled: true}}", unset);
    in_state(&serve, "team", "Invalid");
    assert_eq!(compresses(&serve), Some(true));
    assert_eq!(serve.stop().code, 0);
}

#[test]
fn a_repository_is_followed_with_surrounding_manifests_of_the_same_commit() {
    let folder = teams();
    git(&folder, "init -q -b main");
    git(&folder, "add m");
    git(&folder, "commit -q -m first");
    // Nothing of the work tree is read.
    folder.edit("m/shared/sets.yaml", "true", "false");
    folder
        .write(CONFIG, "sources: [{name: team, repository: ., ref: main, path: m/team, with: [m/shared/sets.yaml]}]\n");
    let serve = folder.serve("");
    assert_eq!(compresses(&serve), Some(true), "{}", serve.said());
    git(&folder, "add m");
    git(&folder, "commit -q -m second");
    until("the second commit", || (compresses(&serve) == Some(false)).then_some(()));
    assert_eq!(serve.stop().code, 0);
}

#[test]
fn surrounding_manifests_of_a_repository_stay_inside() {
    let folder = teams();
    for (entry, place, said) in [
        ("repository: g, with: [../x]", "/sources/0/with/0", "relative to the top folder of `repository`"),
        ("repository: g, with: [a, /etc]", "/sources/0/with/1", "relative to the top folder of `repository`"),
        ("path: m/team, with: ['']", "/sources/0/with/0", "must list folders or files"),
        ("path: m/team, with: ['-']", "/sources/0/with/0", "must list folders or files"),
    ] {
        folder.write(CONFIG, &format!("sources: [{{name: team, {entry}}}]\n"));
        let run = folder.run("validate m");
        let reported = run.err.contains(&format!("at {place}")) && run.err.contains(said);
        assert_eq!((run.code, reported), (1, true), "{entry}: {}", run.err);
    }
}

#[test]
fn a_source_whose_folder_or_surrounding_folder_is_missing_has_failed() {
    let folder = teams();
    git(&folder, "init -q -b main");
    git(&folder, "add m");
    git(&folder, "commit -q -m first");
    folder.write(
        CONFIG,
        "sources:\n\
         - {name: commit, repository: ., path: nope1, with: [m/shared]}\n\
         - {name: folder, path: nope2, with: [m/shared]}\n\
         - {name: around, path: m/team, with: [nope3]}\n\
         - {name: half, path: m/team, with: [m/shared, nope4]}\n\
         - {name: commits, repository: ., path: m/team, with: [nope5]}\n",
    );
    let serve = folder.serve("");
    for (source, missing) in
        [("commit", "nope1"), ("folder", "nope2"), ("around", "nope3"), ("half", "nope4"), ("commits", "nope5")]
    {
        let found = in_state(&serve, source, "Failed");
        assert_eq!(found["conditions"][0]["reason"], "Failed", "{found:#}");
        let message = found["conditions"][0]["message"].as_str().unwrap();
        assert!(message.contains(missing), "{message}");
        // The module sets that it uses may be in what could not be read.
        assert!(!found.to_string().contains("unknown ModuleSet"), "{found:#}");
    }
    assert_eq!(serve.stop().code, 0);
}

#[test]
fn module_sets_of_empty_surrounding_manifests_are_not_unknown() {
    let folder = teams();
    folder.write("empty/readme.txt", "nothing\n");
    for (around, reason) in [("empty", "no manifests found in empty"), ("nope", "nope cannot be read")] {
        let run = folder.run(&format!("validate m/team --with {around}"));
        assert_eq!(run.code, 3, "{}", run.all());
        assert!(run.all().contains(reason) && !run.all().contains("unknown ModuleSet"), "{}", run.all());
    }
    // In surrounding manifests that can be read, the set is missing.
    folder.write("empty/other.yaml", OTHER);
    let run = folder.run("validate m/team --with empty");
    assert!(run.code == 3 && run.all().contains("unknown ModuleSet `usual`"), "{}", run.all());
}
