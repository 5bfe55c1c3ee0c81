//! Sources that a server follows, and what it says about them.

use std::{fs, time::Duration};

use serde_json::Value;

use super::{
    git::git,
    manifests::edge,
    program::{CONFIG, Folder, Serve, until, within},
};

/// Far below the 30 seconds after which a source is synced without an event.
const SOON: Duration = Duration::from_secs(10);

/// Two folders, and a configuration file that follows both.
pub(crate) fn two_sources() -> Folder {
    let folder = Folder::new();
    folder.write("shop/one.yaml", &edge("one", "a"));
    folder.write("docs/two.yaml", &edge("two", "b"));
    folder.write(CONFIG, "sources:\n- {name: shop, path: shop}\n- {name: docs, path: docs, interval: 5m}\n");
    folder
}

/// A repository with an edge in a folder, and a configuration file that follows its main branch.
pub(crate) fn repository() -> Folder {
    let folder = Folder::new();
    folder.write("repo/edge/one.yaml", &edge("one", "a"));
    folder.write("repo/edge/name.txt", "unused\n");
    for line in ["init -q -b main", "add .", "commit -q -m first"] {
        git(&folder, &format!("-C repo {line}"));
    }
    folder.write(CONFIG, "sources:\n- {name: shop, repository: repo, ref: main, path: edge}\n");
    folder
}

/// Replaces the configuration file in one step, as an editor does.
pub(crate) fn replace(folder: &Folder, text: &str) {
    folder.write("next.yaml", text);
    fs::rename(folder.path("next.yaml"), folder.path(CONFIG)).unwrap();
}

/// The descriptions of the edges that the API shows, sorted.
pub(crate) fn shown(serve: &Serve) -> Vec<String> {
    let list = serve.get("/edges/https").json();
    let edges = list["https_edges"].as_array().unwrap().iter();
    let mut found: Vec<String> = edges.map(|edge| edge["description"].as_str().unwrap().to_owned()).collect();
    found.sort();
    found
}

/// Waits until the one edge has a description.
pub(crate) fn until_shown(serve: &Serve, description: &str) {
    until(description, || (shown(serve) == [description]).then_some(()));
}

/// Waits until the edges have these descriptions, without an interval in between.
pub(crate) fn soon_shown(serve: &Serve, descriptions: &[&str]) {
    within(SOON, &descriptions.join(", "), || (shown(serve) == descriptions).then_some(()));
}

/// Waits for a line of the log about a source.
pub(crate) fn until_logged(serve: &Serve, source: &str, text: &str) {
    let field = format!(" source=\"{source}\"");
    until(text, || serve.said().lines().any(|line| line.contains(text) && line.contains(&field)).then_some(()));
}

/// The status of a source.
pub(crate) fn status(serve: &Serve, name: &str) -> Value {
    let answer = serve.get(&format!("/sources/{name}"));
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()
}

/// Waits until a source has a state, and returns its status.
pub(crate) fn in_state(serve: &Serve, name: &str, state: &str) -> Value {
    until(state, || Some(status(serve, name)).filter(|found| found["state"] == state))
}

/// Waits until a sync of a source that begins now has ended, and returns its status.
pub(crate) fn next_sync(serve: &Serve, name: &str) -> Value {
    let begun = status(serve, name)["syncs_begun"].as_u64().unwrap();
    until("the next sync", || Some(status(serve, name)).filter(|found| found["syncs_ended"].as_u64().unwrap() > begun))
}

/// Waits until the first condition of a source has a reason.
pub(crate) fn until_reason(serve: &Serve, source: &str, reason: &str) {
    until(reason, || (status(serve, source)["conditions"][0]["reason"] == reason).then_some(()));
}
