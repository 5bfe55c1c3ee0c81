//! Sources that cannot be read: what the status, the log and a reload say about them (D82, D91).

use serde_json::json;

use crate::support::{
    git::git,
    program::{CONFIG, Folder, until},
    sources::{in_state, replace, repository, shown, status},
};

#[test]
fn a_missing_revision_or_path_is_a_failed_sync_and_the_message_says_what_exists() {
    let folder = repository();
    git(&folder, "-C repo tag v1.0.0");
    let serve = folder.serve("");
    in_state(&serve, "shop", "Synced");
    let cases = [
        (
            "repository: repo, ref: mian, path: edge",
            "cannot read repo: unknown Git revision `mian`",
            "has `main`, `v1.0.0`",
        ),
        ("repository: repo, ref: v1.0.1, path: edge", "unknown Git revision `v1.0.1`", "the repository has `v1.0.0`"),
        ("repository: repo, ref: '0123456789012345678901234567890123456789'", "unknown Git revision `01234", "`main`"),
        ("repository: repo, semver: ^2", "cannot read repo: no tag has a version in the range `^2`", "has `v1.0.0`"),
        (
            "repository: repo, ref: main, path: egde",
            "egde of repo at `main` cannot be read: no such file or folder",
            "the top folder has `edge`",
        ),
        (
            "repository: repo, ref: main, path: edge/sub",
            "edge/sub of repo at `main`",
            "`edge` has `name.txt`, `one.yaml`",
        ),
        ("path: nowhere", "nowhere cannot be read", ""),
    ];
    for (at, (keys, what, instead)) in cases.into_iter().enumerate() {
        replace(&folder, &format!("sources:\n- {{name: shop, {keys}}}\n"));
        let found = until(what, || {
            let found = status(&serve, "shop");
            let message = found["conditions"][0]["message"].as_str().unwrap().to_owned();
            (message.contains(what) && message.contains(instead)).then_some(found)
        });
        assert_eq!(
            (&found["state"], &found["conditions"][0]["reason"]),
            (&json!("Failed"), &json!("Failed")),
            "{found:#}"
        );
        assert_eq!(found["diagnostics"][0]["code"], "ERR_EDGEWRIGHT_UNREADABLE", "{found:#}");
        // A reload is no success if it leads to a source that cannot be read.
        let said = "0 added, 1 changed and 0 removed sources. Sources that cannot be read or applied: shop.";
        until(said, || (serve.said().matches(said).count() == at + 1).then_some(()));
        let ready = serve.get("/readyz");
        let warning = "ready\nwarning: OutOfSync (Failed): see GET /sources or the log for the error\n";
        assert_eq!((ready.status, ready.body.as_str()), (200, warning));
        assert_eq!(shown(&serve), ["a"], "the last good state stays");
    }
    let history = serve.get("/history").json();
    let outcomes = history["history"].as_array().unwrap().iter().filter(|it| it["outcome"] == "failed").count();
    assert_eq!(outcomes, cases.len(), "{history:#}");
    replace(&folder, "sources:\n- {name: shop, repository: repo, ref: main, path: edge}\n");
    in_state(&serve, "shop", "Synced");
    assert!(serve.said().matches("Sources that cannot be read").count() == cases.len(), "{}", serve.said());
    assert_eq!(serve.stop().code, 0);
}

#[test]
fn a_token_that_cannot_be_written_is_an_error_at_its_line_until_the_key_has_another_file() {
    let folder = Folder::new();
    folder.write("tokens/readme.txt", "tokens\n");
    let key = |name: &str| {
        let spec = format!("{{description: for ci, token_file: ../tokens/{name}}}");
        folder.write(
            "shop/key.yaml",
            &format!("apiVersion: edgewright/v1\nkind: ApiKey\nmetadata: {{name: {name}}}\nspec: {spec}\n"),
        );
    };
    key("ci");
    folder.write(CONFIG, "sources: [{name: shop, path: shop, interval: 1s}]\n");
    let serve = folder.serve("");
    in_state(&serve, "shop", "Synced");
    let token = folder.read("tokens/ci");
    let id = token.trim().split('_').skip(1).take(2).collect::<Vec<_>>().join("_");
    assert_eq!(serve.call("DELETE", &format!("/api_keys/{id}"), "").status, 204);
    let found = in_state(&serve, "shop", "Failed");
    let first = &found["diagnostics"][0];
    assert!(first["file"].as_str().is_some_and(|file| file.ends_with("shop/key.yaml")), "{found:#}");
    assert_eq!(first["line"], json!(4), "{found:#}");
    assert!(first["message"].as_str().unwrap().contains("the file already exists"), "{found:#}");
    assert_eq!((&found["counts"]["errors"], folder.read("tokens/ci")), (&json!(1), token), "{found:#}");
    // As the guide says: another name and file.
    key("ci-2");
    in_state(&serve, "shop", "Synced");
    let next = folder.read("tokens/ci-2");
    assert!(next.starts_with("ew_ak_") && !next.contains(&id), "another key has another ID");
    assert_eq!(serve.call_as(next.trim(), "GET", "/edges/https", "").status, 200);
    serve.stop();
}
