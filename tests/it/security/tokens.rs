//! API tokens that somebody pastes into the wrong place (D23): what revokes a leaked token does not publish it, and nothing
//! that was said or kept has its secret part.

use std::{fs, os::unix::fs::PermissionsExt, process::Command, sync::Arc};

use edgewright::{
    Store,
    resources::{Author, Claim, Kind, Operation, Secrets},
    storage::Attempt,
};
use serde_json::{Value, json};

use crate::support::{
    git::git,
    program::{Folder, REPOSITORY, copy, finish, http},
};

/// The schemas of several kinds, whose fields those of the kinds have too.
const COMBINED: [&str; 2] = ["manifest.json", "openapi.json"];
/// The kinds with a collection that clients can write.
const COLLECTIONS: [(&str, &str); 5] = [
    ("ApiKey", "/api_keys"),
    ("CertificateAuthority", "/certificate_authorities"),
    ("HttpsEdge", "/edges/https"),
    ("IpRestriction", "/ip_restrictions"),
    ("TlsCertificate", "/tls_certificates"),
];

/// Values of a schema, each with a token in another text or key. Secrets can have one.
fn with_token(schema: &Value, definitions: &Value, open: &mut Vec<String>, token: &str) -> Vec<Value> {
    if let Some(name) = schema["$ref"].as_str().and_then(|target| target.rsplit('/').next()) {
        if name == "Text" {
            return vec![json!(token)];
        }
        if name == "Secret" || open.iter().any(|it| it == name) {
            return Vec::new();
        }
        open.push(name.to_owned());
        let found = with_token(&definitions[name], definitions, open, token);
        open.pop();
        return found;
    }
    let mut found = Vec::new();
    for choice in ["anyOf", "oneOf"].iter().flat_map(|choice| schema[choice].as_array().into_iter().flatten()) {
        found.append(&mut with_token(choice, definitions, open, token));
    }
    let is_text =
        schema["type"] == "string" || schema["type"].as_array().is_some_and(|it| it.contains(&json!("string")));
    if is_text && schema["const"].is_null() && schema["enum"].is_null() {
        found.push(json!(token));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let values = with_token(property, definitions, open, token);
        // The others that are required must not be its only fault.
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let others: Vec<&str> = required.filter(|other| other != name).collect();
        found.extend(values.into_iter().map(|value| {
            let mut object = json!({(name.as_str()): value});
            for other in others.iter().filter(|other| schema["properties"][**other]["type"] == "string") {
                object[*other] = json!("/a");
            }
            object
        }));
    }
    if schema["items"].is_object() {
        let values = with_token(&schema["items"], definitions, open, token);
        found.extend(values.into_iter().map(|value| json!([value])));
    }
    match &schema["additionalProperties"] {
        Value::Bool(true) => found.extend([json!({"a": {"b": [token]}}), json!({"a": {(token): 1}})]),
        values @ Value::Object(_) => {
            let values = with_token(values, definitions, open, token);
            found.extend(values.into_iter().map(|value| json!({"x-a": value})));
            found.push(json!({(token): "a"}));
        }
        _ => {}
    }
    found
}

/// The bodies of every kind of manifest with a token in one place.
fn specs_with_token(token: &str) -> Vec<(String, Value)> {
    let mut specs = Vec::new();
    for entry in fs::read_dir(format!("{REPOSITORY}/schemas")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if COMBINED.contains(&name.as_str()) {
            continue;
        }
        let schema: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let found = with_token(&schema["properties"]["spec"], &schema["$defs"], &mut Vec::new(), token);
        let kind = name.trim_end_matches(".json");
        specs.extend(found.into_iter().map(|spec| (kind.to_owned(), spec)));
    }
    assert!(specs.len() > 150, "{specs:?}");
    specs
}

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
    assert!(warned.contains("edgewright-warning: the path contains an api token"), "{}", revoked.head);
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
    let made = folder.ok("keys create --role admin --owner usr_boss --token-file boss.token");
    let token = folder.read("boss.token");
    assert!(folder.mode("boss.token") == 0o600 && token.starts_with("ew_ak_"));
    let (id, _) = token.trim_start_matches("ew_").rsplit_once('_').unwrap();
    assert!(made.err.contains(&format!("Created {id} of usr_boss.\n")), "{}", made.all());
    let serve = folder.serve("--store served");
    let through_server = format!("--server http://{}", serve.address);
    for (file, reason) in [("none/viewer.token", "No such file"), ("boss.token", "the file already exists")] {
        for place in ["--store store", through_server.as_str()] {
            let mut command = folder.command(&format!("keys create --role viewer --token-file {file} {place}"));
            command.env("EDGEWRIGHT_TOKEN", &serve.token);
            let refused = finish(command, "");
            assert!(refused.code == 1 && refused.err.contains("ERR_EDGEWRIGHT_UNREADABLE"), "{}", refused.all());
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
fn no_text_of_a_manifest_takes_a_token() {
    let folder = Folder::new();
    let token = folder.ok("keys create --role editor").out.trim().to_owned();
    let secret = token.rsplit_once('_').unwrap().1;
    // The second one has no start.
    let specs = [specs_with_token(&token), specs_with_token(&token[3..])].concat();
    for (number, (kind, spec)) in specs.iter().enumerate() {
        let metadata = json!({"name": format!("a{number}")});
        let manifest = json!({"apiVersion": "edgewright/v1", "kind": kind, "metadata": metadata, "spec": spec});
        folder.write(&format!("m/{number:04}.json"), &manifest.to_string());
    }
    let transfer = json!({"name": "transferred", "transfer_from": token});
    let manifest = json!({"apiVersion": "edgewright/v1", "kind": "HttpsEdge", "metadata": transfer, "spec": {}});
    folder.write(&format!("m/{:04}.json", specs.len()), &manifest.to_string());
    let run = folder.run("validate m --format json");
    assert!(run.code != 0 && !run.all().contains(secret), "{}", run.all());
    assert!(!run.out.contains("is not a valid ID"), "the token is the reason: {}", run.out);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    let is_refused = |file: &str| {
        let mut of_file = report["diagnostics"].as_array().unwrap().iter().filter(|it| it["file"] == file);
        of_file.any(|it| it["message"].as_str().unwrap().contains("contains an API token"))
    };
    for number in 0..=specs.len() {
        let file = format!("m/{number:04}.json");
        assert!(is_refused(&file), "{file}: {}", folder.read(&file));
    }
    for format in ["text", "markdown", "github", "sarif", "junit"] {
        let run = folder.run(&format!("plan m --format {format}"));
        assert!(run.code != 0 && !run.all().contains(secret), "{}", run.all());
    }
}

#[test]
fn no_text_of_a_request_takes_a_token() {
    let folder = Folder::new();
    let token = folder.ok("keys create --role editor").out.trim().to_owned();
    let secret = token.rsplit_once('_').unwrap().1;
    let serve = folder.serve("");
    let created = |path: &str, body: Value| {
        let answer = serve.call("POST", path, &body.to_string());
        assert_eq!(answer.status, 201, "{}", answer.body);
        format!("{path}/{}", answer.json()["id"].as_str().unwrap())
    };
    let edge = created("/edges/https", json!({"hostports": ["a.example.com:443"]}));
    let routes = format!("{edge}/routes");
    let route = created(&routes, json!({"match_type": "path_prefix", "match": "/"}));
    let hosts = [("HttpsEdge", edge.as_str()), ("HttpsEdgeRoute", route.as_str()), ("TlsEdge", "/edges/tls/edgtls_1")];
    let mut said = String::new();
    let mut is_refused = |method: &str, path: &str, body: &Value| {
        let answer = serve.call(method, path, &body.to_string());
        // Some fields are only those of manifests.
        let names_reason = ["contains an API token", "unknown field"].iter().any(|it| answer.body.contains(it));
        assert!(answer.status == 400 && names_reason, "{method} {path} {body}: {}", answer.body);
        said += &answer.head;
        said += &answer.body;
    };
    for (kind, spec) in specs_with_token(&token) {
        let collection = COLLECTIONS.iter().find(|(name, _)| *name == kind).map(|(_, path)| *path);
        let collection = if kind == "HttpsEdgeRoute" { Some(routes.as_str()) } else { collection };
        if let Some(path) = collection {
            is_refused("POST", path, &spec);
        }
        let (name, value) = spec.as_object().unwrap().iter().next().unwrap();
        if let Some((_, host)) = hosts.iter().find(|(name, _)| *name == kind)
            && value.is_object()
        {
            is_refused("PUT", &format!("{host}/{name}"), value);
            if kind != "TlsEdge" {
                is_refused("PATCH", host, &spec);
            }
        }
    }
    let commit = json!({
        "source": "a",
        "files": [{"name": format!("{token}.yaml"), "text": "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: a}\nspec: {}\n"}],
        "commit": token,
        "commit_author_name": format!("Ada {token}"),
        "commit_author_email": format!("{token}@example.com"),
        "commit_message": token,
    });
    let applied = serve.call("POST", "/reconciliations", &commit.to_string());
    assert!(applied.status < 300, "{}", applied.body);
    said += &applied.body;
    for path in ["/history", "/edges/https", "/api_keys", "/sources"] {
        said += &serve.get(path).body;
    }
    let history = serve.get("/history").json();
    said += &serve.get(&format!("/history/{}", history["history"][0]["id"].as_str().unwrap())).body;
    said += &serve.stop().all();
    assert!(!said.contains(secret), "{said}");
    assert_eq!(is_kept(&folder, secret), [""; 0]);
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
    folder.write("m/a.yaml", "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: a}\nspec: {}\n");
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
    let edge = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: b}\nspec: {}\n";
    folder.write(&format!("good/{token}.yaml"), edge);
    git(&folder, "init -q good");
    git(&folder, "-C good add .");
    git(&folder, &format!("-C good -c user.name={token} -c user.email={token}@example.com commit -q -m {token}"));
    said += &folder.ok("reconcile good").all();
    said += &folder.ok("history").all();
    said += &folder.ok("history --format json").all();
    assert!(!said.contains(secret), "{said}");
    let store = is_kept(&folder, secret).into_iter().filter(|path| path.contains("/store/")).collect::<Vec<_>>();
    assert_eq!(store, [""; 0]);
}

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
fn forge(path: &std::path::Path, from: &[u8], to: &[u8]) {
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
    let in_log: Vec<String> = is_kept(&folder, secret).into_iter().filter(|path| path.contains("/log.")).collect();
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

    assert_eq!(is_kept(&folder, secret), [""; 0]);
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
