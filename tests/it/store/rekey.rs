//! `edgewright store rekey --server`: a store gets new keys while clients read and write, and whatever interrupts it (D96).

use std::{
    fs,
    path::Path,
    process::Stdio,
    sync::{
        LazyLock,
        atomic::{AtomicBool, Ordering},
    },
};

use edgewright::{
    Code, Store,
    resources::{Kind, Secrets},
    storage::{MasterKeySource, Retention},
};
use serde_json::{Value, json};

use crate::support::{
    http::{HttpAnswer, http},
    program::{Folder, MadeFolder, Run, Serve, beside, copy, finish, rounds, until},
};

const ROUTE: &str = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: a}\nspec:\n  \
    hostports: ['a.example.com:443']\n  routes:\n    - {name: hook, match_type: path_prefix, match: /, \
    webhook_verification: {provider: github, secret: {from_file: s.txt}}}\n";
const FIRST: &str = "hunter2-first";
const SECOND: &str = "hunter2-second";
const MASK: &str = "********";

/// A store whose webhook secret has changed once: revision 1 has the first one.
fn changed_secret() -> Folder {
    static MADE: LazyLock<MadeFolder> = LazyLock::new(|| made_changed_secret().content());
    Folder::like(&MADE)
}

fn made_changed_secret() -> Folder {
    let folder = Folder::new();
    folder.write("m/a.yaml", ROUTE);
    for secret in [FIRST, SECOND] {
        folder.write("m/s.txt", secret);
        folder.ok("reconcile m");
    }
    folder
}

fn rekey_as(folder: &Folder, serve: &Serve, token: &str, options: &str) -> Run {
    let mut command = folder.command(&format!("store rekey --server http://{} {options}", serve.address));
    command.env("EDGEWRIGHT_TOKEN", token);
    finish(command, "")
}

fn rekey(folder: &Folder, serve: &Serve, options: &str) -> Run {
    rekey_as(folder, serve, &serve.token, options)
}

fn source(folder: &Folder, key: &str) -> MasterKeySource {
    MasterKeySource::File(folder.path(key))
}

fn opened(folder: &Folder, source: &MasterKeySource) -> Option<Store> {
    Store::open_encrypted(folder.path("store"), Retention::default(), source).ok()
}

/// The webhook secret at a revision.
fn secret_at(store: &Store, revision: u64) -> String {
    let state = store.snapshot_at(revision).unwrap();
    let route = state.iter().find(|entry| entry.key.kind == Kind::HttpsEdgeRoute).unwrap();
    let spec = route.spec().to_json(Secrets::Revealed).unwrap();
    spec["webhook_verification"]["secret"].as_str().unwrap().to_owned()
}

fn events(folder: &Folder, name: &str) -> Vec<Value> {
    let log = folder.read("store/security.log");
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["event"] == name).collect()
}

#[test]
fn an_admin_rekeys_the_store_of_a_running_server() {
    let folder = changed_secret();
    let serve = folder.serve("");
    let local = folder.run("store rekey");
    assert!(local.code == 1 && local.err.contains("STORE_LOCKED"), "{}", local.all());
    let run = rekey(&folder, &serve, "");
    assert_eq!(run.code, 0, "{}", run.all());
    // Those of the route and of the first admin's key.
    assert!(run.err.contains("Encrypted the secrets of 2 resources with the new data key"), "{}", run.all());
    assert!(run.err.contains("decrypts earlier revisions until 2"), "{}", run.all());
    assert!(!run.err.contains("master key") && !run.err.contains("Destroyed"), "{}", run.all());

    let editor = serve.call("POST", "/api_keys", r#"{"owner_id": "usr_ed"}"#).json();
    let refused = rekey_as(&folder, &serve, editor["token"].as_str().unwrap(), "");
    assert!(refused.code == 1 && refused.err.contains("ERR_EDGEWRIGHT_FORBIDDEN"), "{}", refused.all());
    let sent = rekey(&folder, &serve, "--new-master-key-file new.key");
    assert!(sent.code == 1 && sent.err.contains("cannot be sent to a server"), "{}", sent.all());
    serve.stop();

    let done = events(&folder, "store_rekeyed");
    assert_eq!(done.len(), 1, "{done:?}");
    let told = ["method", "path", "status", "peer"].map(|field| done[0][field].clone());
    assert_eq!(told, [json!("POST"), json!("/store/rekey"), json!(200), json!("127.0.0.1")]);
    assert!(done[0]["key"].is_string() && done[0]["request_id"].is_string() && done[0].get("reason").is_none());
    let denied = events(&folder, "permission_refused");
    assert_eq!((&denied[0]["owner"], &denied[0]["path"]), (&json!("usr_ed"), &json!("/store/rekey")));
    let store = Store::open(folder.path("store")).unwrap();
    assert_eq!((secret_at(&store, 1), secret_at(&store, store.snapshot().revision)), (FIRST.into(), SECOND.into()));
}

#[test]
fn a_server_takes_over_the_master_key_that_it_finds() {
    let folder = changed_secret();
    let serve = folder.serve("");
    let (key, keys) = (beside(&folder.path("store")), folder.path("store/keys"));
    fs::copy(&key, folder.path("former.key")).unwrap();
    let before = fs::read(&keys).unwrap();
    fs::write(&key, "hunter2").unwrap();
    let refused = rekey(&folder, &serve, "--forget-secrets");
    assert!(refused.code == 1 && refused.err.contains("ERR_EDGEWRIGHT_MASTER_KEY"), "{}", refused.all());
    assert!(!refused.err.contains("hunter2") && !refused.err.contains("store.master.key"), "{}", refused.all());
    serve.wait_for("not 32 bytes");
    assert_eq!(fs::read(&keys).unwrap(), before, "nothing was changed");

    fs::write(&key, "1f2e".repeat(16)).unwrap();
    let run = rekey(&folder, &serve, "");
    assert!(run.code == 0 && run.err.contains("The new master key"), "{}", run.all());
    let again = rekey(&folder, &serve, "");
    assert!(again.code == 0 && !again.err.contains("master key"), "{}", again.all());
    assert_eq!(serve.call("POST", "/api_keys", "{}").status, 201);
    serve.stop();
    assert_eq!(events(&folder, "store_rekeyed")[0]["reason"], "failed");
    let former = Store::open_encrypted(folder.path("store"), Retention::default(), &source(&folder, "former.key"));
    assert_eq!(former.err().unwrap().code, Code::MasterKey);
    let store = Store::open(folder.path("store")).unwrap();
    assert_eq!((secret_at(&store, 1), secret_at(&store, store.snapshot().revision)), (FIRST.into(), SECOND.into()));
}

#[test]
fn forgotten_secrets_are_in_no_answer() {
    let folder = changed_secret();
    let serve = folder.serve("");
    // The server keeps the page, and the state of the revision.
    let former = || serve.get("/edges/https?at=1").body;
    assert!(former().contains(FIRST), "{}", former());
    let run = rekey(&folder, &serve, "--forget-secrets");
    assert!(run.code == 0 && run.err.contains("Destroyed the former data keys"), "{}", run.all());
    assert!(!run.err.contains("until"), "{}", run.all());
    assert!(!former().contains(FIRST) && former().contains(MASK), "{}", former());
    assert!(serve.get("/edges/https").body.contains(SECOND));
    let rolled = serve.call("POST", "/rollbacks", r#"{"to": 1}"#);
    assert!(rolled.body.contains("ERR_EDGEWRIGHT_SECRETS_GONE"), "{}", rolled.body);
    serve.stop();
    assert_eq!(events(&folder, "store_rekeyed")[0]["reason"], "former keys destroyed");
}

#[test]
fn a_destroyed_key_is_in_no_copy() {
    let folder = changed_secret();
    let [keys, copy] = ["store/keys", "store/keys.copy"].map(|name| folder.path(name));
    let former = fs::read(&copy).unwrap();
    folder.ok("store rekey --forget-secrets");
    let now = fs::read(&keys).unwrap();
    assert!(now != former && fs::read(&copy).unwrap() == now);
    // As if the change had been interrupted between the two files: the first one counts.
    fs::write(&copy, former).unwrap();
    let store = Store::open(folder.path("store")).unwrap();
    assert_eq!((secret_at(&store, 1), secret_at(&store, 2)), (MASK.into(), SECOND.into()));
    assert!(store.warnings().is_empty(), "{:?}", store.warnings());
    drop(store);
    assert!(fs::read(&copy).unwrap() == now);
    fs::remove_file(&keys).unwrap();
    let store = Store::open(folder.path("store")).unwrap();
    assert_eq!((secret_at(&store, 1), secret_at(&store, 2)), (MASK.into(), SECOND.into()));
    assert_eq!(store.warnings().len(), 1, "{:?}", store.warnings());
    assert!(fs::read(&keys).unwrap() == now);
}

fn call(address: &str, token: &str, method: &str, path: &str, body: &Value) -> HttpAnswer {
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", bearer.as_str()), ("Service-Version", "2")];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    http(address, method, path, &headers, &body)
}

/// Changes the secret of a route of its own until it is told to stop. Returns the path and the last secret.
fn write(
    address: &str,
    token: &str,
    edge: &str,
    writer: usize,
    is_over: &AtomicBool,
) -> Result<(String, String), String> {
    let route = json!({"match_type": "path_prefix", "match": format!("/{writer}")});
    let made = call(address, token, "POST", &format!("/edges/https/{edge}/routes"), &route);
    if made.status != 201 {
        return Err(made.body);
    }
    let path = format!("/edges/https/{edge}/routes/{}/webhook_verification", made.json()["id"].as_str().unwrap());
    for number in 0.. {
        let secret = format!("hunter2-{writer}-{number}");
        let put = call(address, token, "PUT", &path, &json!({"provider": "github", "secret": secret}));
        let read = call(address, token, "GET", &path, &Value::Null);
        if (put.status, read.status) != (200, 200) || !read.body.contains(&secret) {
            return Err(format!("{secret}: {} {}", put.body, read.body));
        }
        if is_over.load(Ordering::Relaxed) {
            return Ok((path, secret));
        }
    }
    Err("unreachable".to_owned())
}

#[test]
fn clients_read_and_write_meanwhile() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let edge = serve.call("POST", "/edges/https", "{}").json()["id"].as_str().unwrap().to_owned();
    let (address, token) = (serve.address.clone(), serve.token.clone());
    let is_over = AtomicBool::new(false);
    let (answers, written) = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (address, token, edge, is_over) = (&address, &token, &edge, &is_over);
                scope.spawn(move || write(address, token, edge, writer, is_over))
            })
            .collect();
        let rekeys = [false, true, false, true, true, false];
        let answers = rekeys.map(|forgets| {
            let answer = call(&address, &token, "POST", "/store/rekey", &json!({"forget_secrets": forgets}));
            (answer.status, answer.body)
        });
        is_over.store(true, Ordering::Relaxed);
        (answers, writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>())
    });
    for (status, body) in &answers {
        assert_eq!(*status, 200, "{body}");
    }
    let written: Vec<(String, String)> = written.into_iter().map(Result::unwrap).collect();
    serve.stop();
    let store = Store::open(folder.path("store")).unwrap();
    assert!(store.verify().is_ok());
    let state = store.snapshot();
    for (path, secret) in written {
        let route = state.iter().find(|entry| path.contains(&format!("/routes/{}/", entry.key.id))).unwrap();
        let spec = route.spec().to_json(Secrets::Revealed).unwrap();
        assert_eq!(spec["webhook_verification"]["secret"], secret.as_str());
    }
}

#[test]
fn one_at_a_time_and_also_for_a_client_that_goes_away() {
    let folder = Folder::new();
    let key = "0123456789abcdef".repeat(4);
    folder.write("key.sh", &format!("touch began; while [ -e wait ]; do sleep 0.05; done; echo {key}\n"));
    let serve = folder.serve_with("", &[("EDGEWRIGHT_MASTER_KEY_COMMAND", "sh key.sh")]);
    fs::remove_file(folder.path("began")).unwrap();
    folder.write("wait", "");
    let mut command = folder.command(&format!("store rekey --server http://{}", serve.address));
    let mut first = command.env("EDGEWRIGHT_TOKEN", &serve.token).stderr(Stdio::null()).spawn().unwrap();
    until("the first", || folder.path("began").exists().then_some(()));
    let second = serve.call("POST", "/store/rekey", "");
    assert_eq!((second.status, second.code().as_str()), (409, "ERR_EDGEWRIGHT_CONFLICT"), "{}", second.body);
    assert_eq!(serve.call("POST", "/api_keys", "{}").status, 201);
    first.kill().unwrap();
    first.wait().unwrap();
    let before = fs::read(folder.path("store/keys")).unwrap();
    fs::remove_file(folder.path("wait")).unwrap();
    until("the event", || (!events(&folder, "store_rekeyed").is_empty()).then_some(()));
    assert_ne!(fs::read(folder.path("store/keys")).unwrap(), before);
    until("another one", || (serve.call("POST", "/store/rekey", "").status == 200).then_some(()));
}

/// The steps at which a server is killed: each file, journal and head that is written, and each file that is removed.
const POINTS: [(&str, &str); 6] = [
    ("file.rename", "kill"),
    ("file.write", "torn"),
    ("file.remove", "kill"),
    ("folder.sync", "kill"),
    ("file.sync", "kill"),
    ("head.write", "kill"),
];
/// No step comes so often.
const MOST_HITS: usize = 60;

/// Kills a server at a step of a rekey with a new master key. Returns whether the step did not come any more.
fn killed_at(made: &Path, point: &str, action: &str, hit: usize) -> bool {
    let folder = Folder::new();
    copy(&made.join("store"), &folder.path("store"));
    fs::copy(made.join("admin.token"), folder.path("admin.token")).unwrap();
    let key = beside(&folder.path("store"));
    fs::copy(&key, folder.path("former.key")).unwrap();
    let points = format!("{point}={hit}*off->1*return({action})");
    let mut is_done = false;
    if let Ok(mut serve) = folder.try_serve("", &[("FAILPOINTS", &points)]) {
        fs::write(&key, "1f2e".repeat(16)).unwrap();
        is_done = rekey(&folder, &serve, "--forget-secrets").code == 0;
        if !is_done {
            serve.ended();
        }
    }

    let sources = ["store.master.key", "former.key"];
    let found = sources.into_iter().find_map(|name| Some((name, opened(&folder, &source(&folder, name))?)));
    let (name, store) = found.unwrap_or_else(|| panic!("{points}: no key opens the store"));
    let now = store.snapshot().revision;
    assert_eq!((secret_at(&store, now).as_str(), store.verify().is_ok()), (SECOND, true), "{points}");
    assert!([FIRST, MASK].contains(&secret_at(&store, 1).as_str()), "{points}");
    drop(store);
    folder.ok(&format!("store rekey --forget-secrets --master-key-file {name} --new-master-key-file store.master.key"));
    assert!(opened(&folder, &source(&folder, "former.key")).is_none_or(|_| !key_was_replaced(&folder)), "{points}");
    let store = Store::open(folder.path("store")).unwrap();
    assert_eq!((secret_at(&store, now).as_str(), secret_at(&store, 1).as_str()), (SECOND, MASK), "{points}");
    is_done
}

/// Whether the master key is another one than at the start: a server that was killed in its start was given none.
fn key_was_replaced(folder: &Folder) -> bool {
    folder.read("former.key") != folder.read("store.master.key")
}

#[test]
fn a_server_that_is_killed_meanwhile_loses_nothing_and_it_is_done_again() {
    let made = changed_secret();
    // It makes the first admin's key.
    made.serve("").stop();
    for (number, (point, action)) in POINTS.into_iter().enumerate() {
        // A usual run has the first hit and each third one, which are others at the next point.
        let step = rounds(3, 1);
        let is_tried = |hit: &usize| *hit == 0 || *hit % step == number % step;
        let hits = (0..MOST_HITS).filter(is_tried).find(|hit| killed_at(&made.path(""), point, action, *hit));
        assert!(hits.is_some_and(|hits| hits > 0), "{point}: {hits:?}");
    }
}
