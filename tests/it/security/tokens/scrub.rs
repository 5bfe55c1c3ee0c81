//! Tokens that a store has from former versions: they are scrubbed from its history, and the chain shows it.

use std::{fs, path::Path, sync::Arc};

use edgewright::{
    Store,
    resources::{Author, Claim, Kind, Operation, Secrets},
    storage::Attempt,
};

use super::files_with;
use crate::support::program::{Folder, copy};

const ROUTE: &str = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: a}\nspec:\n  \
    hostports: ['a.example.com:443']\n  routes:\n    - {name: hook, match_type: path_prefix, match: /, \
    webhook_verification: {provider: github, secret: {from_file: s.txt}}}\n";

/// Names the route of the store as a version that did not refuse tokens could, with the token in the record, too. Returns its
/// former name.
fn name_route(folder: &Folder, name: &str) -> String {
    let store = Store::open(folder.path("store")).unwrap();
    let state = store.snapshot();
    let route = state.iter().find(|entry| entry.key.kind == Kind::HttpsEdgeRoute).unwrap();
    let former = route.claim.as_deref().unwrap().clone();
    let claim = Some(Arc::new(Claim { name: name.to_owned(), ..former.clone() }));
    let operation = Operation::Claim { key: route.key.clone(), claim };
    let attempt = Attempt { note: format!("named {name}"), ..Attempt::new(Author::Local) };
    store.commit_with(attempt, |_| Ok::<_, String>(vec![operation])).unwrap();
    former.name
}

/// The name of the route in a revision, and its secret.
fn route_at(folder: &Folder, store: &str, revision: u64) -> (String, String) {
    let state = Store::open_to_read(folder.path(store)).unwrap().snapshot_at(revision).unwrap();
    let route = state.iter().find(|entry| entry.key.kind == Kind::HttpsEdgeRoute).unwrap();
    let spec = route.spec().to_json(Secrets::Revealed).unwrap();
    let secret = spec["webhook_verification"]["secret"].as_str().unwrap().to_owned();
    (route.claim.as_deref().unwrap().name.clone(), secret)
}

/// Replaces bytes of a segment of the log by as many others, and makes the checksum of their frame right again.
fn forge(path: &Path, from: &[u8], to: &[u8]) {
    let mut bytes = fs::read(path).unwrap();
    let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
    bytes[at..at + to.len()].copy_from_slice(to);
    let frame = bytes[..at].windows(4).rposition(|window| window == b"ewf3").unwrap();
    let header = u32::from_le_bytes(bytes[frame + 4..frame + 8].try_into().unwrap()) as usize;
    let long = |at: usize| u64::from_le_bytes(bytes[frame + at..frame + at + 8].try_into().unwrap()) as usize;
    let (digest, sum, start) = (frame + 80, frame + 112, frame + 144);
    let (content, end) = (start + header, start + header + long(8) + long(16));
    let hash = blake3::hash(&bytes[content..end]);
    bytes[digest..sum].copy_from_slice(hash.as_bytes());
    let covered = [&bytes[frame..sum], &bytes[start..content]].concat();
    bytes[sum..start].copy_from_slice(blake3::hash(&covered).as_bytes());
    fs::write(path, bytes).unwrap();
}

#[test]
fn tokens_that_the_history_has_are_scrubbed_and_the_chain_shows_it() {
    let folder = Folder::new();
    folder.write("m/a.yaml", ROUTE);
    folder.write("m/s.txt", "hunter2-of-the-hook");
    folder.ok("reconcile m");
    let token = folder.ok("keys create --role editor").out.trim().to_owned();
    let (id, secret) = token.rsplit_once('_').unwrap();
    assert!(folder.ok("store scrub").err.contains("Nothing to scrub."));
    let name = name_route(&folder, &token);
    let named = folder.snapshot("store").revision;
    let refused = folder.run("store scrub --apply");
    assert!(refused.code == 1 && refused.err.contains("contains an API token"), "{}", refused.all());
    assert!(!refused.all().contains(secret), "{}", refused.all());
    name_route(&folder, &name);
    // The tokens are in an older part of the log, and the newest one has records, too.
    folder.ok("store rekey");
    folder.ok("keys create --role viewer");
    let in_log: Vec<String> = files_with(&folder, secret).into_iter().filter(|path| path.contains("/log.")).collect();
    assert!(!in_log.is_empty());
    let former = |path: &String| path.replace("/store/", "/former/");
    copy(&folder.path("store"), &folder.path("former"));

    let shown = folder.run("store scrub");
    assert!(shown.code == 2 && shown.err.contains("Nothing was changed"), "{}", shown.all());
    assert!(shown.out.contains("former value") && !shown.all().contains(secret), "{}", shown.all());
    assert!(in_log.iter().all(|path| fs::read(path).unwrap() == fs::read(former(path)).unwrap()));
    assert_eq!(folder.ok("store scrub --apply").out, shown.out);
    // As if the process had ended before it wrote the history.
    for path in &in_log {
        fs::copy(former(path), path).unwrap();
    }
    assert!(!folder.ok("history verify").out.contains("scrubbed"));
    folder.ok("store scrub --apply");
    fs::remove_dir_all(folder.path("former")).unwrap();

    assert_eq!(files_with(&folder, secret), [""; 0]);
    assert!(folder.ok("store scrub").err.contains("Nothing to scrub."));
    assert!(folder.ok("history verify").out.contains("of them scrubbed of API tokens"));
    assert!(folder.ok("store check").out.contains("of them scrubbed of API tokens"));
    assert!(folder.ok("store repair").err.contains("Nothing to repair."));
    let listed = folder.ok("history").out;
    assert!(listed.contains("  scrubbed  ") && listed.contains(&format!("named {id}_***")), "{listed}");
    let expected = (format!("{id}_***"), "hunter2-of-the-hook".to_owned());
    assert_eq!(route_at(&folder, "store", named), expected);
    // A restore cuts the record off that lists the scrubbed ones.
    folder.ok("backup all.backup");
    folder.ok(&format!("restore all.backup --store at --to {named} --master-key-file store.master.key"));
    let verify = "history verify --store at --master-key-file store.master.key";
    assert!(folder.ok(verify).out.contains("of them scrubbed of API tokens"));

    let scrubbed = |path: &&String| fs::read(path).unwrap().windows(4).any(|part| part == b"_***");
    let history = in_log.iter().find(scrubbed).unwrap();
    forge(history.as_ref(), b"_***", b"_**x");
    let broken = folder.run("history verify");
    assert!(broken.code == 1 && broken.err.contains("does not match its content"), "{}", broken.all());
}

#[test]
fn a_server_shows_that_the_history_was_scrubbed() {
    let folder = Folder::new();
    folder.write("m/a.yaml", ROUTE);
    folder.write("m/s.txt", "hunter2-of-the-hook");
    folder.ok("reconcile m");
    let token = folder.ok("keys create --role editor").out.trim().to_owned();
    let name = name_route(&folder, &token);
    name_route(&folder, &name);
    folder.ok("store scrub --apply");
    let serve = folder.serve("");
    let newest = serve.get("/history").json()["history"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["outcome"] == "scrubbed")
        .cloned()
        .unwrap();
    assert!(newest["by"] == "local" && newest["message"].as_str().unwrap().contains("of API tokens"), "{newest}");
    serve.stop();
}
