//! Secrets at rest (D96): no file of a store has one in clear, and only the master key of the store opens it.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use edgewright::{
    Code, Store,
    resources::{Author, Kind, Operation, Secrets},
    storage::{MasterKeySource, Query, Retention},
};
use sha2::{Digest, Sha256};

use crate::support::program::{CONFIG_VARIABLE, Folder, Run, beside, finish};

/// The files of a store.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries =
        walkdir::WalkDir::new(folder).into_iter().map(Result::unwrap).filter(|entry| entry.file_type().is_file());
    entries.map(|entry| (entry.path().to_owned(), fs::read(entry.path()).unwrap())).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn base64(bytes: &[u8]) -> String {
    let symbols = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks_exact(3) {
        let bits = u32::from(chunk[0]) << 16 | u32::from(chunk[1]) << 8 | u32::from(chunk[2]);
        text.extend([18, 12, 6, 0].map(|shift| char::from(symbols[(bits >> shift) as usize & 63])));
    }
    text
}

/// The forms in which a file could have a secret. What is left of its last two bytes does not matter.
fn forms(secret: &str) -> Vec<String> {
    let json = serde_json::to_string(secret).unwrap();
    let json = json.trim_matches('"').to_owned();
    let bases = (0..3).map(|from| base64(secret.as_bytes().get(from..).unwrap_or_default()));
    let mut forms: Vec<String> = bases.chain([secret.to_owned(), json, hex(secret.as_bytes())]).collect();
    forms.extend(forms.clone().iter().map(|form| form.to_uppercase()));
    assert!(forms.iter().all(|form| form.len() > 5), "{secret} is too short to look for");
    forms
}

/// The files of a store that have one of these secrets.
fn clear_files(store: &Path, secrets: &[String]) -> Vec<String> {
    let (mut found, forms) = (Vec::new(), secrets.iter().map(|secret| forms(secret)).collect::<Vec<_>>());
    for (path, bytes) in files(store) {
        let text = String::from_utf8_lossy(&bytes);
        for (secret, forms) in secrets.iter().zip(&forms) {
            if forms.iter().any(|form| text.contains(form.as_str())) {
                found.push(format!("{}: {secret:.12}", path.display()));
            }
        }
    }
    found
}

/// The hash of a token, which is all that a store keeps of it.
fn hash_of(token: &str) -> String {
    let (_, secret) = token.trim().rsplit_once('_').unwrap();
    hex(&Sha256::digest(secret.as_bytes()))
}

/// Every secret in a store, read through the library.
fn revealed(store: &Path) -> Vec<String> {
    let snapshot = Store::open_to_read(store).unwrap().snapshot();
    let mut found: Vec<String> = Vec::new();
    for entry in snapshot.iter() {
        let masked = serde_json::Value::Object(entry.spec().to_json(Secrets::Masked).unwrap());
        let whole = serde_json::Value::Object(entry.spec().to_json(Secrets::Revealed).unwrap());
        found.extend(entry.token.iter().map(|token| token.expose().to_owned()));
        differences(&masked, &whole, &mut found);
    }
    found
}

fn differences(masked: &serde_json::Value, whole: &serde_json::Value, found: &mut Vec<String>) {
    match (masked, whole) {
        (serde_json::Value::Object(one), serde_json::Value::Object(other)) => {
            one.iter().for_each(|(name, value)| differences(value, &other[name], found));
        }
        (serde_json::Value::Array(one), serde_json::Value::Array(other)) => {
            one.iter().zip(other).for_each(|(one, other)| differences(one, other, found));
        }
        (one, other) if one != other => found.push(other.as_str().unwrap().to_owned()),
        _ => {}
    }
}

const ROUTE: &str = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: a}\nspec:\n  \
    hostports: ['a.example.com:443']\n  routes:\n    - {name: hook, match_type: path_prefix, match: /, \
    webhook_verification: {provider: github, secret: {from_file: s.txt}}}\n";

/// A store with a webhook secret, which is the content of `m/s.txt`.
fn with_secret(secret: &str) -> Folder {
    let folder = Folder::new();
    folder.write("m/a.yaml", ROUTE);
    folder.write("m/s.txt", secret);
    folder.ok("reconcile m");
    folder
}

fn refused(run: &Run, code: &str) {
    assert!(run.code != 0 && run.err.contains(code), "{}", run.all());
}

#[test]
fn no_file_of_a_store_has_a_secret() {
    let folder = Folder::with_storefront();
    let store = folder.path("store");
    let mut secrets = vec![hash_of(&folder.ok("keys create --role admin").out)];
    folder.ok("reconcile storefront");
    secrets.extend(revealed(&store));
    // Every place of a secret, and a key that is deleted.
    assert!(secrets.len() >= 6 && secrets.iter().any(|it| it.contains("PRIVATE KEY")), "{}", secrets.len());
    let doomed = folder.ok("keys create --role viewer").out;
    secrets.push(hash_of(&doomed));
    for name in ["stripe-webhook-secret", "customer-oidc-client-secret"] {
        folder.write(&format!("storefront/secrets/{name}.txt"), &format!("changed-{name}-hunter2"));
    }
    folder.ok("reconcile storefront");
    folder.ok(&format!("keys revoke {}", doomed[3..].rsplit_once('_').unwrap().0));
    secrets.extend(revealed(&store));
    let opened = Store::open(&store).unwrap();
    let root = opened.root_secret();
    assert!(opened.history(&Query::All, u64::MAX, 9).unwrap().len() >= 5);
    drop(opened);
    let has_none = |when: &str| {
        assert_eq!(clear_files(&store, &secrets), [""; 0], "{when}");
        for (path, bytes) in files(&store) {
            let text = String::from_utf8_lossy(&bytes);
            let is_root = bytes.windows(root.len()).any(|window| window[0] == root[0] && window == root);
            let is_text = text.contains(&hex(&root)) || text.contains(&base64(&root));
            assert!(!is_root && !is_text, "{when}: {} has the root secret", path.display());
        }
    };
    has_none("in the log");
    let before = revealed(&store);
    folder.ok("store rekey");
    assert!(files(&store).keys().any(|path| path.ends_with("db")), "no checkpoint was written");
    has_none("after a checkpoint");
    assert_eq!(revealed(&store), before, "nothing is lost");
    // The test finds what it looks for.
    fs::write(store.join("probe"), format!("x{}x", base64(secrets[1].as_bytes()))).unwrap();
    assert!(!clear_files(&store, &secrets).is_empty());
}

#[test]
fn a_store_opens_with_its_master_key_only() {
    let folder = with_secret("hunter2-first");
    let (store, key) = (folder.path("store"), beside(&folder.path("store")));
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let before = files(&store);
    let commands = ["get routes", "history", "keys create --role admin", "reconcile --no-cache m"];
    let all_refused = |options: &str, expected: &[&str]| {
        for command in commands {
            let run = folder.run(&format!("{command} {options}"));
            refused(&run, "ERR_EDGEWRIGHT_MASTER_KEY");
            assert!(expected.iter().all(|expected| run.err.contains(expected)), "{}", run.all());
        }
        assert_eq!(files(&store), before, "a refused store was changed");
    };
    let whole = fs::read(&key).unwrap();
    fs::remove_file(&key).unwrap();
    all_refused("", &["does not exist", "store.master.key"]);
    folder.write("other.key", &"0123456789abcdef".repeat(4));
    all_refused("--master-key-file other.key", &["open to other users", "chmod 600"]);
    fs::set_permissions(folder.path("other.key"), fs::Permissions::from_mode(0o600)).unwrap();
    all_refused("--master-key-file other.key", &["other.key is not the master key of the store"]);
    folder.write("short.key", "hunter2");
    fs::set_permissions(folder.path("short.key"), fs::Permissions::from_mode(0o600)).unwrap();
    all_refused("--master-key-file short.key", &["not 32 bytes"]);
    all_refused("--master-key-file other.key --master-key-command true", &["more than one master key"]);
    // It opens wherever the key comes from.
    fs::write(folder.path("moved.key"), &whole).unwrap();
    fs::set_permissions(folder.path("moved.key"), fs::Permissions::from_mode(0o600)).unwrap();
    folder.ok("get routes --master-key-file moved.key");
    let text = String::from_utf8(whole).unwrap();
    for (variable, value) in [
        ("EDGEWRIGHT_MASTER_KEY", text.as_str()),
        ("EDGEWRIGHT_MASTER_KEY_FILE", "moved.key"),
        ("EDGEWRIGHT_MASTER_KEY_COMMAND", "cat moved.key"),
    ] {
        let output = folder.command("get routes").env(variable, value).output().unwrap();
        assert!(output.status.success(), "{variable}: {}", String::from_utf8_lossy(&output.stderr));
    }
    for name in ["keys", "keys.copy"] {
        fs::remove_file(store.join(name)).unwrap();
    }
    let error = Store::open(&store).err().unwrap();
    assert_eq!((error.code, error.message.contains("keys")), (Code::StoreCorrupt, true), "{error}");
}

#[test]
fn who_makes_a_master_key_says_so_once() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &ROUTE.replace("{from_file: s.txt}", "{from_env: HOOK}"));
    let output = folder.command("reconcile m").env("HOOK", "hunter2-first").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("Created the master key") && said.contains("store.master.key"), "{said}");
    assert!(!folder.ok("keys create --role admin").err.contains("master key"));
    let served = Folder::new();
    let serve = served.serve("");
    assert!(serve.said().contains("Created the master key"), "{}", serve.said());
    // Where the key comes from elsewhere, none is made.
    let other = Folder::new();
    let command = format!("printf {}", "0123456789abcdef".repeat(4));
    let made =
        other.command("keys create --role admin").env("EDGEWRIGHT_MASTER_KEY_COMMAND", command).output().unwrap();
    assert!(made.status.success() && made.stderr == b"New store: store\n", "{made:?}");
    assert!(other.path("store").exists() && !other.path("store.master.key").exists());
}

#[test]
fn a_configuration_file_that_was_found_cannot_choose_the_key() {
    let folder = Folder::new();
    folder.write("edgewright.config.yaml", "options: {master-key-command: 'touch hunter2; cat k'}\n");
    let mut command = folder.command("keys create --role admin");
    command.env_remove(CONFIG_VARIABLE);
    refused(&finish(command, ""), "ERR_EDGEWRIGHT_NOT_ALLOWED");
    assert!(!folder.path("hunter2").exists() && !folder.path("store").exists());
}

#[test]
fn a_new_master_key_replaces_the_former_one() {
    let folder = with_secret("hunter2-first");
    let key = |name: &str, digits: &str| {
        folder.write(name, &digits.repeat(16));
        fs::set_permissions(folder.path(name), fs::Permissions::from_mode(0o600)).unwrap();
    };
    key("new.key", "1f2e");
    let run = folder.ok("store rekey --new-master-key-file new.key");
    assert!(run.err.contains("new data key") && run.err.contains("new master key"), "{}", run.all());
    refused(&folder.run("get routes"), "ERR_EDGEWRIGHT_MASTER_KEY");
    folder.ok("get routes --master-key-file new.key");
    // A run that was interrupted behind the change is repeated as it was.
    folder.ok("store rekey --new-master-key-file new.key");
    let revealed = |source: &MasterKeySource| {
        let store = Store::open_encrypted(folder.path("store"), Retention::default(), source).unwrap();
        let snapshot = store.snapshot();
        let routes = snapshot.iter().filter(|entry| entry.key.kind == Kind::HttpsEdgeRoute);
        let specs: Vec<_> = routes.map(|entry| entry.spec().to_json(Secrets::Revealed).unwrap()).collect();
        serde_json::to_string(&specs).unwrap()
    };
    assert!(revealed(&MasterKeySource::File(folder.path("new.key"))).contains("hunter2-first"));
    key("newer.key", "2e3d");
    let mut again = folder.command("store rekey --master-key-file new.key");
    assert!(again.env("EDGEWRIGHT_NEW_MASTER_KEY_COMMAND", "cat newer.key").status().unwrap().success());
    assert!(revealed(&MasterKeySource::File(folder.path("newer.key"))).contains("hunter2-first"));
}

#[test]
fn a_rollback_does_not_bring_back_destroyed_secrets() {
    let folder = with_secret("hunter2-first");
    folder.write("m/s.txt", "hunter2-second");
    folder.ok("reconcile m");
    folder.ok("store rekey");
    let secret_at = |revision: u64| {
        let store = Store::open_to_read(folder.path("store")).unwrap();
        let state = store.snapshot_at(revision).unwrap();
        let route = state.iter().find(|entry| entry.key.kind == Kind::HttpsEdgeRoute).unwrap();
        let spec = route.spec().to_json(Secrets::Revealed).unwrap();
        spec["webhook_verification"]["secret"].as_str().unwrap().to_owned()
    };
    assert_eq!((secret_at(1), secret_at(2)), ("hunter2-first".into(), "hunter2-second".into()));
    folder.ok("rollback --to 1");
    assert_eq!(secret_at(3), "hunter2-first", "a former data key still decrypts");
    folder.ok("rollback --to 2");
    let run = folder.ok("store rekey --forget-secrets");
    assert!(run.err.contains("Destroyed the former data keys"), "{}", run.all());
    assert_eq!((secret_at(4), secret_at(3).as_str()), ("hunter2-second".into(), "********"));
    assert_eq!(secret_at(2), "hunter2-second", "the current state has the same one");
    assert!(folder.ok("get routes --at 1 -o json").out.contains("********"));
    for dry in ["", "--dry-run"] {
        let run = folder.run(&format!("rollback --to 1 {dry}"));
        assert_eq!(run.code, 4, "{}", run.all());
        for expected in ["ERR_EDGEWRIGHT_SECRETS_GONE", "edghtsrt_", "its secrets at revision 1 were destroyed"] {
            assert!(run.all().contains(expected), "{expected}: {}", run.all());
        }
    }
    assert_eq!(secret_at(4), "hunter2-second", "nothing was changed");
    // What was committed since has its secrets again.
    folder.write("m/s.txt", "hunter2-third");
    folder.ok("reconcile m");
    let before = Store::open(folder.path("store")).unwrap().snapshot().revision;
    let delete = |store: &Store| {
        let key = store.snapshot().iter().find(|it| it.key.kind == Kind::HttpsEdgeRoute).unwrap().key.clone();
        let operations = vec![Operation::Delete { key, with_children: true }];
        store.commit(Author::Local, operations).unwrap()
    };
    delete(&Store::open(folder.path("store")).unwrap());
    folder.ok(&format!("rollback --to {before} --max-deletes 9"));
    assert_eq!(secret_at(before), "hunter2-third");
}

#[test]
fn a_master_key_command_ends_with_the_program_and_has_none_of_its_secrets() {
    let folder = Folder::new();
    let fifo = folder.path("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut command = folder.command("keys create --role admin");
    command.env("EDGEWRIGHT_TOKEN", "hunter2-token");
    command.env("EDGEWRIGHT_MASTER_KEY_COMMAND", "exec 4>fifo; env >&4; sleep 60; echo late >&4");
    let mut program = command.spawn().unwrap();
    // This waits for the command.
    let mut said = BufReader::new(fs::File::open(&fifo).unwrap());
    let mut text = String::new();
    said.read_line(&mut text).unwrap();
    program.kill().unwrap();
    program.wait().unwrap();
    // This waits for the end of every process that can write.
    said.read_to_string(&mut text).unwrap();
    assert!(!text.contains("late") && !text.contains("hunter2") && !text.contains("4>fifo"), "{text}");
}

#[test]
fn a_rollback_keeps_a_secret_that_has_not_changed() {
    let folder = with_secret("hunter2-first");
    for description in ["one", "two", "three"] {
        folder.write("m/a.yaml", &ROUTE.replace("match: /,", &format!("match: /, description: {description},")));
        folder.ok("reconcile m");
    }
    folder.ok("store rekey --forget-secrets");
    let run = folder.ok("rollback --to 2");
    assert!(!run.all().contains("(secret, changed)"), "{}", run.all());
    let store = Store::open_to_read(folder.path("store")).unwrap();
    let state = store.snapshot();
    let route = state.iter().find(|entry| entry.key.kind == Kind::HttpsEdgeRoute).unwrap();
    let spec = route.spec().to_json(Secrets::Revealed).unwrap();
    assert_eq!(spec["webhook_verification"]["secret"], "hunter2-first");
    assert_eq!(spec["description"], "one");
}

#[test]
fn rekey_says_where_the_new_master_key_belongs() {
    let folder = with_secret("hunter2-first");
    let key = |name: &str, digits: &str, mode: u32| {
        folder.write(name, &digits.repeat(16));
        fs::set_permissions(folder.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    key("open.key", "3f2e", 0o644);
    let run = folder.run("store rekey --new-master-key-file open.key");
    assert!(run.code == 1 && run.err.contains("openssl rand") && !run.err.contains("is lost"), "{}", run.all());
    key("new.key", "1f2e", 0o600);
    let run = folder.ok("store rekey --new-master-key-file new.key");
    let told = ["Move new.key to ", "store.master.key, or name it with --master-key-file"];
    assert!(told.iter().all(|told| run.err.contains(told)), "{}", run.all());
    fs::rename(folder.path("new.key"), beside(&folder.path("store"))).unwrap();
    folder.ok("get routes");
    let run = folder.run("get routes --store store.master.key");
    assert!(run.code == 1 && run.err.contains("store.master.key is not a folder"), "{}", run.all());
    let run = folder.ok("store rekey --new-master-key-file store.master.key");
    assert!(run.err.contains("already has this master key") && !run.err.contains("Move"), "{}", run.all());
}

#[test]
fn empty_variables_of_the_master_key_count_as_unset() {
    let folder = with_secret("hunter2-first");
    let mut command = folder.command("get routes");
    for name in ["EDGEWRIGHT_MASTER_KEY", "EDGEWRIGHT_MASTER_KEY_FILE", "EDGEWRIGHT_MASTER_KEY_COMMAND"] {
        command.env(name, "");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
