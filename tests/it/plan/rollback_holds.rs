//! What a rollback holds stays held, whatever its manifests would lead to since (D78).

use serde_json::json;

use super::transfer::revision;
use crate::support::{
    manifests::edge_with,
    program::{CONFIG, Folder, Serve, until},
    sources::{in_state, next_sync, status, until_reason},
};

fn rollback(serve: &Serve, to: u64) {
    let answer = serve.call("POST", "/rollbacks", &json!({"to": to}).to_string());
    assert_eq!(answer.status, 201, "{}", answer.body);
}

/// Sets how often the source of `m` is synced, and serves it.
fn serve_every_second(folder: &Folder) -> Serve {
    folder.write(CONFIG, "sources: [{name: shop, path: m, interval: 1s, max_deletes: 9}]\n");
    folder.serve("")
}

#[test]
fn a_rename_that_was_undone_is_not_made_up_for_by_a_new_resource() {
    let folder = Folder::new();
    let text = |metadata: &str, description: &str| {
        edge_with(
            metadata,
            &format!(
                "{{description: {description}, hostports: [\"one.example.com:443\"], routes: [{{name: cart, \
                 match_type: path_prefix, match: /cart, backend: {{backend_id: bkd_1}}}}]}}"
            ),
        )
    };
    folder.write("m/one.yaml", &text("one", "a"));
    let serve = serve_every_second(&folder);
    let before = revision(&serve);
    let edges = || serve.get("/edges/https").json()["https_edges"].clone();
    let id = edges()[0]["id"].clone();
    folder.write("m/one.yaml", &text("first, renamed_from: one", "a"));
    until("the rename", || (revision(&serve) > before).then_some(()));
    in_state(&serve, "shop", "Synced");
    rollback(&serve, before);
    until_reason(&serve, "shop", "RolledBack");

    // The marker of a rename can be removed once that is applied.
    std::fs::remove_file(folder.path("m/one.yaml")).unwrap();
    folder.write("m/first.yaml", &text("first", "a"));
    let found = next_sync(&serve, "shop");
    assert_eq!(found["conditions"][0]["reason"], "RolledBack", "{found:#}");
    assert_eq!((edges().as_array().map(Vec::len), &edges()[0]["id"]), (Some(1), &id));
    folder.write("m/first.yaml", &text("first, renamed_from: one", "b"));
    until("the correction", || (edges()[0]["description"] == "b").then_some(()));
    assert_eq!((edges().as_array().map(Vec::len), &edges()[0]["id"]), (Some(1), &id));
}

#[test]
fn a_source_is_rolled_back_although_another_one_has_its_host_again() {
    for isolate in [false, true] {
        let folder = Folder::new();
        let source = |name: &str| format!("- {{name: {name}, path: {name}, interval: 1s, isolate: {isolate}}}\n");
        folder.write(CONFIG, &format!("sources:\n{}{}", source("a"), source("b")));
        let edge = |name: &str, host: &str| edge_with(name, &format!("{{hostports: [\"{host}.example.com:443\"]}}"));
        folder.write("a/one.yaml", &edge("one", "moved"));
        folder.write("b/two.yaml", &edge("two", "other"));
        let serve = folder.serve("");
        for source in ["a", "b"] {
            in_state(&serve, source, "Synced");
        }
        let before = revision(&serve);
        for (file, text) in [("a/one.yaml", edge("one", "new")), ("b/two.yaml", edge("two", "moved"))] {
            let last = revision(&serve);
            folder.write(file, &text);
            until("the move", || (revision(&serve) > last).then_some(()));
        }
        for source in ["a", "b"] {
            in_state(&serve, source, "Synced");
        }
        rollback(&serve, before);
        for source in ["a", "b"] {
            let found = next_sync(&serve, source);
            assert_eq!(found["conditions"][0]["reason"], "RolledBack", "{isolate}: {found:#}");
        }
        let found = status(&serve, "b");
        assert!(found.to_string().contains("moved.example.com"), "the status says why: {found:#}");
        folder.write("a/one.yaml", &edge("one", "newer"));
        in_state(&serve, "a", "Synced");
        assert_eq!(next_sync(&serve, "b")["conditions"][0]["reason"], "RolledBack");
    }
}
