//! Commits that must be signed: an unsigned or foreign one is not applied (D89).

use std::process::Command;

use serde_json::{Value, json};

use crate::{
    cli::{Folder, Serve, until},
    diff::git,
};

fn edge(description: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: one}}\nspec: {{description: {description}}}\n"
    )
}

/// Commits a description of the edge; with a key, the commit is signed.
fn commit(folder: &Folder, description: &str, key: Option<&str>) -> String {
    folder.write("repo/one.yaml", &edge(description));
    git(folder, "-C repo add .");
    let sign = key.map(|key| {
        let key = folder.path(key).display().to_string();
        (format!("-c gpg.format=ssh -c user.signingkey={key}"), "-S")
    });
    let (options, sign) = sign.unwrap_or_default();
    git(folder, &format!("-C repo {options} commit -q {sign} -m next"));
    folder.read("repo/.git/refs/heads/main").trim().to_owned()
}

fn shown(serve: &Serve) -> String {
    let list = serve.get("/edges/https").json();
    list["https_edges"][0]["description"].as_str().unwrap_or_default().to_owned()
}

/// Waits until a commit is refused, and returns why.
fn refused(serve: &Serve, commit: &str) -> Value {
    let found = until("the refusal", || {
        let found = serve.get("/sources/shop").json();
        let message = found["conditions"][0]["message"].as_str().unwrap_or_default().to_owned();
        message.contains(commit).then_some(found)
    });
    assert_eq!((&found["state"], &found["conditions"][0]["reason"]), (&json!("Refused"), &json!("Refused")));
    assert_eq!(found["diagnostics"][0]["code"], "ERR_EDGEWRIGHT_UNVERIFIED_COMMIT", "{found:#}");
    found["conditions"][0]["message"].clone()
}

#[test]
fn only_a_commit_with_the_signature_of_an_allowed_key_is_applied() {
    if Command::new("ssh-keygen").arg("-?").output().is_err() {
        eprintln!("skipped: ssh-keygen is not installed");
        return;
    }
    let folder = Folder::new();
    for key in ["own", "foreign"] {
        let mut command = Command::new("ssh-keygen");
        command.args(["-q", "-t", "ed25519", "-C", "", "-N", "", "-f"]).arg(folder.path(key));
        assert!(command.status().unwrap().success());
    }
    folder.write("signers", &format!("t@example.com namespaces=\"git\" {}", folder.read("own.pub")));
    git(&folder, "init -q -b main repo");
    commit(&folder, "signed", Some("own"));
    folder.write(
        "edgewright.config.yaml",
        "sources:\n- {name: shop, repository: repo, ref: main, verify: {allowed_signers_file: signers}}\n",
    );
    let serve = folder.serve("");
    assert_eq!(shown(&serve), "signed");

    let unsigned = commit(&folder, "unsigned", None);
    let why = refused(&serve, &unsigned);
    assert_eq!(why, format!("commit {unsigned} is not applied: it is not signed"));
    let foreign = commit(&folder, "foreign", Some("foreign"));
    let why = refused(&serve, &foreign);
    assert!(why.as_str().unwrap().contains("signers does not have its key SHA256:"), "{why}");
    assert_eq!(shown(&serve), "signed", "the last good state stays");

    // A signed commit is applied, whatever is before it.
    commit(&folder, "signed again", Some("own"));
    until("the signed commit", || (shown(&serve) == "signed again").then_some(()));
    until("its status", || (serve.get("/sources/shop").json()["state"] == "Synced").then_some(()));

    // A key that may not sign any more is noticed at the next look.
    folder.write("signers", "# nobody\n");
    assert_eq!(serve.call("POST", "/sources/shop/resume", "").status, 200);
    let head = folder.read("repo/.git/refs/heads/main").trim().to_owned();
    refused(&serve, &head);
    assert_eq!(serve.stop().code, 0);
}
