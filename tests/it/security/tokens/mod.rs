//! API tokens that somebody pastes into the wrong place (D23): what revokes a leaked token does not publish it, and nothing
//! that was said or kept has its secret part.

mod fields;
mod scrub;

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use serde_json::json;

use crate::support::{
    git::git,
    http::http,
    manifests::edge_with,
    program::{Folder, finish},
};

/// The files below a folder that contain a text.
fn files_with(folder: &Folder, secret: &str) -> Vec<String> {
    let walk = walkdir::WalkDir::new(folder.path("")).into_iter().map(Result::unwrap);
    let files = walk.filter(|entry| entry.file_type().is_file() && !entry.path().ends_with("leaked.token"));
    let has = |bytes: Vec<u8>| bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
    files.filter(|entry| has(fs::read(entry.path()).unwrap())).map(|entry| entry.path().display().to_string()).collect()
}

#[test]
fn a_token_goes_no_further_than_where_it_was_pasted() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &edge_with("a", "{}"));
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
        ("GET", format!("/resources/{token}"), String::new(), 200),
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
    assert!(revoked.contains("edgewright-warning: the path contains an API token"), "{revoked:?}");
    assert_eq!(serve.call_as(&token, "GET", "/whoami", "").status, 401);
    said += &serve.get("/history").body;
    said += &serve.stop().all();
    assert!(!said.contains(secret) && said.contains(id), "{said}");
    assert_eq!(files_with(&folder, secret), [""; 0]);
}

#[test]
fn commands_understand_a_token_and_do_not_repeat_it() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &edge_with("a", "{}"));
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
    assert_eq!(files_with(&folder, secret), [""; 0]);
}

#[test]
fn a_token_is_written_for_its_owner_alone() {
    let folder = Folder::new();
    let made = folder.ok("keys create --role admin --owner usr_boss --token-file boss.token");
    let token = folder.read("boss.token");
    assert!(folder.mode("boss.token") == 0o600 && token.starts_with("ew_ak_"));
    let (id, _) = token.trim_start_matches("ew_").rsplit_once('_').unwrap();
    assert!(made.err.contains(&format!("Created {id} of usr_boss.\n")), "{}", made.all());
    let serve = folder.serve("--store served");
    let through_server = format!("--server http://{}", serve.address);
    for (file, code, reason) in [
        ("none/viewer.token", "ERR_EDGEWRIGHT_UNREADABLE", "No such file"),
        ("boss.token", "ERR_EDGEWRIGHT_CONFLICT", "the file already exists"),
    ] {
        for place in ["--store store", through_server.as_str()] {
            let mut command = folder.command(&format!("keys create --role viewer --token-file {file} {place}"));
            command.env("EDGEWRIGHT_TOKEN", &serve.token);
            let refused = finish(command, "");
            assert!(refused.code == 1 && refused.err.contains(code), "{}", refused.all());
            assert!([file, reason, "name a new file"].iter().all(|it| refused.err.contains(it)), "{}", refused.all());
            assert!(!refused.err.contains("nothing was changed"), "the key was created first: {}", refused.all());
        }
    }
    assert_eq!(folder.read("boss.token"), token, "another key's token is kept");
    assert_eq!(serve.get("/owners").json()["owners"].as_array().unwrap().len(), 1, "the server has no new owner");
    let unlimited = folder.command(&format!("keys create --role viewer --token-file cut.token {through_server}"));
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""]).arg(unlimited.get_program());
    command.args(unlimited.get_args()).current_dir(folder.path("")).env("EDGEWRIGHT_TOKEN", &serve.token);
    command.envs(unlimited.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let cut = finish(command, "");
    assert!(cut.code == 1 && cut.err.contains("No key was created."), "{}", cut.all());
    assert!(!folder.path("cut.token").exists(), "a part of a token is removed");
    assert_eq!(folder.ok("keys list").out.lines().count(), 2, "the key was not created");
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

#[test]
fn a_part_of_a_token_revokes_its_key() {
    let folder = Folder::new();
    let admin = folder.ok("keys create --role admin").out.trim().to_owned();
    let key = || folder.ok("keys create --role editor").out.trim().to_owned();
    let copies: [fn(&str) -> String; 4] =
        [|it| it[3..].to_owned(), |it| format!("\"{it}\"."), |it| it[..40].to_owned(), |it| it[3..45].to_owned()];
    for copied in copies {
        let token = key();
        let (id, secret) = token.strip_prefix("ew_").unwrap().rsplit_once('_').unwrap();
        let revoked = folder.ok(&format!("keys revoke {}", copied(&token)));
        assert!(revoked.err.contains(&format!("Revoking its key {id}.")), "{}", revoked.err);
        assert!(!revoked.all().contains(&secret[..5]) && !folder.ok("keys list").out.contains(id));
    }
    let tokens = [key(), key(), key()];
    let serve = folder.serve("");
    for (token, copied) in [
        (&tokens[0], tokens[0][3..].to_owned()),
        (&tokens[1], format!("Bearer%20{}", tokens[1])),
        (&tokens[2], format!("%22{}%22,", tokens[2])),
    ] {
        let revoked = serve.call_as(&admin, "DELETE", &format!("/api_keys/{copied}"), "");
        assert_eq!(revoked.status, 204, "{}", revoked.body);
        assert_eq!(serve.call_as(token, "GET", "/whoami", "").status, 401);
    }
}

#[test]
fn no_command_repeats_a_token_that_stands_for_something_else() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &edge_with("a", "{}"));
    let token = folder.ok("keys create --role admin").out.trim().to_owned();
    let secret = token.rsplit_once('_').unwrap().1;
    let mut said = String::new();
    for line in [
        format!("keys create --plan {token}"),
        format!("keys create --apply {token}*"),
        format!("plan --store {token} m"),
        format!("store check --store {token}"),
        format!("plan {token}"),
        format!("plan --with {token} m"),
        format!("trace a/{token}"),
    ] {
        said += &folder.run(&line).all();
    }
    assert_eq!(folder.ok("keys list").out.lines().count(), 2, "no key was created");
    // A name of a file, and a key where a field belongs.
    folder.write(&format!("bad/{token}.yaml"), &format!("kind: HttpsEdge\nspec: {{{token}: 1}}\n"));
    for format in ["text", "json", "markdown", "github", "sarif", "junit"] {
        said += &folder.run(&format!("validate bad --format {format}")).all();
    }
    folder.write(&format!("good/{token}.yaml"), &edge_with("b", "{}"));
    git(&folder, "init -q good");
    git(&folder, "-C good add .");
    git(&folder, &format!("-C good -c user.name={token} -c user.email={token}@example.com commit -q -m {token}"));
    said += &folder.ok("reconcile good").all();
    said += &folder.ok("history").all();
    said += &folder.ok("history --format json").all();
    assert!(!said.contains(secret), "{said}");
    let store = files_with(&folder, secret).into_iter().filter(|path| path.contains("/store/")).collect::<Vec<_>>();
    assert_eq!(store, [""; 0]);
}
