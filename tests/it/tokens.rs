//! API tokens that somebody pastes into the wrong place (D23): what revokes a leaked token does not publish it, and nothing
//! that was said or kept has its secret part.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::json;

use crate::cli::{Folder, finish, http};

/// Whether a file below a folder contains a text.
fn is_kept(folder: &Folder, secret: &str) -> Vec<String> {
    let walk = walkdir::WalkDir::new(folder.path("")).into_iter().map(Result::unwrap);
    let files = walk.filter(|entry| entry.file_type().is_file() && !entry.path().ends_with("leaked.token"));
    let has = |bytes: Vec<u8>| bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
    files.filter(|entry| has(fs::read(entry.path()).unwrap())).map(|entry| entry.path().display().to_string()).collect()
}

#[test]
fn a_token_goes_no_further_than_where_it_was_pasted() {
    let folder = Folder::new();
    folder.write("m/a.yaml", "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: a}\nspec: {}\n");
    let token = folder.ok("keys create --role editor").out.trim().to_owned();
    let (id, secret) = token.strip_prefix("ew_").unwrap().rsplit_once('_').unwrap();
    let serve = folder.serve("--manifests m --security-log security.jsonl");
    let mut said = String::new();
    let encoded = token.replace('_', "%5F");
    for (method, path, body, status) in [
        ("GET", format!("/edges/https/{token}"), String::new(), 404),
        ("GET", format!("/edges/https/{encoded}/routes"), String::new(), 404),
        ("GET", format!("/{token}"), String::new(), 404),
        ("GET", format!("/edges/https?{token}=1"), String::new(), 400),
        ("GET", format!("/edges/https?filter={token}"), String::new(), 400),
        ("GET", format!("/history/{token}"), String::new(), 404),
        ("PATCH", format!("/owners/{token}"), json!({"role": "viewer"}).to_string(), 404),
        ("POST", format!("/sources/{token}/suspend"), json!({"reason": "x"}).to_string(), 404),
        ("POST", "/sources/default/suspend".into(), json!({"reason": format!("see {token}")}).to_string(), 400),
        ("POST", "/api_keys".into(), json!({"description": format!("was {token}")}).to_string(), 400),
        ("POST", "/api_keys".into(), json!({"owner_id": format!("usr_{token}")}).to_string(), 400),
        ("POST", "/api_keys".into(), format!("{{\"{token}\": 1}}"), 400),
        ("POST", "/edges/https".into(), json!({"metadata": token}).to_string(), 400),
        ("POST", "/reconciliations".into(), json!({"source": token, "files": []}).to_string(), 400),
        ("POST", "/transfers".into(), json!({"from": token, "to": "b", "all": true}).to_string(), 400),
        ("POST", "/rollbacks".into(), json!({"to": 1, "source": token}).to_string(), 400),
    ] {
        let answer = serve.call(method, &path, &body);
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        said += &answer.body;
    }
    let headers = |value: &str| {
        let bearer = format!("Bearer {}", serve.token);
        let fixed = [("authorization", bearer.as_str()), ("service-version", "2"), ("edgewright-override", value)];
        http(&serve.address, "POST", "/edges/https", &fixed, "{}").body
    };
    said += &headers(&token);
    // Whoever pastes it to revoke it does so, and is told.
    let revoked = serve.call("DELETE", &format!("/api_keys/{token}"), "");
    assert_eq!(revoked.status, 204, "{}", revoked.body);
    let warned = revoked.head.to_lowercase();
    assert!(warned.contains("edgewright-warning: the path has an api token"), "{}", revoked.head);
    assert_eq!(serve.call_as(&token, "GET", "/whoami", "").status, 401);
    said += &serve.get("/history").body;
    said += &serve.stop().all();
    assert!(!said.contains(secret) && said.contains(id), "{said}");
    assert_eq!(is_kept(&folder, secret), [""; 0]);
}

#[test]
fn commands_understand_a_token_and_do_not_repeat_it() {
    let folder = Folder::new();
    folder.write("m/a.yaml", "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: a}\nspec: {}\n");
    folder.ok("keys create --role admin");
    let token = folder.ok("keys create --role editor").out.trim().to_owned();
    let (id, secret) = token.strip_prefix("ew_").unwrap().rsplit_once('_').unwrap();
    let mut said = String::new();
    for line in [
        format!("owners set-role {token} viewer"),
        format!("reconcile --source {token} m"),
        format!("get edge {token}"),
        format!("keys create --description {token}"),
        format!("keys create --owner usr_{token}"),
        format!("blame {token}"),
    ] {
        let run = folder.run(&line);
        assert_ne!(run.code, 0, "{}", run.all());
        said += &run.all();
    }
    let revoked = folder.ok(&format!("keys revoke {token}"));
    assert!(revoked.err.contains(&format!("Revoking its key {id}.")), "{}", revoked.err);
    said += &revoked.all();
    said += &finish(folder.command("keys list"), "").all();
    said += &folder.ok("history").all();
    assert!(!said.contains(secret), "{said}");
    assert!(!folder.ok("keys list").out.contains(id));
    assert_eq!(is_kept(&folder, secret), [""; 0]);
}

#[test]
fn a_token_is_written_for_its_owner_alone() {
    let folder = Folder::new();
    folder.ok("keys create --role admin --token-file admin.token");
    assert!(folder.mode("admin.token") == 0o600 && folder.read("admin.token").starts_with("ew_ak_"));
    let refused = folder.run("keys create --role viewer --token-file none/viewer.token");
    assert!(refused.code == 1 && refused.err.contains("cannot write the token"), "{}", refused.all());
    assert_eq!(folder.ok("keys list").out.lines().count(), 1, "the key was not created");
    for (mode, is_told) in [(0o644, true), (0o600, false)] {
        folder.write("out.token", "");
        fs::set_permissions(folder.path("out.token"), fs::Permissions::from_mode(mode)).unwrap();
        let out = fs::File::create(folder.path("out.token")).unwrap();
        let output = folder.command("keys create --role viewer").stdout(out).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        assert_eq!(said.contains("a file that others can read"), is_told, "{said}");
    }
}
