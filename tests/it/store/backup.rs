//! Backups and restores: a restored store is the one that was backed up, or there is none (D100).

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Stdio,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use edgewright::{
    Store,
    resources::{
        AnyResource, Author, HttpsEdge, HttpsEdgeRoute, Id, Key, Kind, MatchType, Operation, Role, Secrets, now,
    },
    storage::{Attempt, MEMORY, Query, Verified},
};

use jiff::{SignedDuration, Timestamp};

use crate::support::{
    program::{Folder, MadeFolder, Run, beside, rounds},
    server::Server,
    users::client,
};

const BACKUP: &str = "one.backup";
const WEBHOOK_SECRET: &str = "stripe-webhook-secret";

/// Everything in a store, with its secrets.
#[derive(Debug, PartialEq)]
struct Everything {
    revision: u64,
    resources: Vec<String>,
    root: [u8; 32],
    history: Verified,
}

fn resources(snapshot: &edgewright::Snapshot) -> Vec<String> {
    let line = |entry: &Arc<edgewright::resources::Entry>| {
        let spec = serde_json::Value::Object(entry.spec().to_json(Secrets::Revealed).unwrap());
        let token = entry.token.as_ref().map(|token| token.expose().to_owned());
        format!("{} {spec} {:?} {token:?} {} {}", entry.key, entry.claim, entry.created_at, entry.order)
    };
    snapshot.iter().map(line).collect()
}

fn everything(store: &Path) -> Everything {
    let store = Store::open_to_read(store).unwrap_or_else(|error| panic!("{}: {error}", error.code));
    let snapshot = store.snapshot();
    let (revision, resources) = (snapshot.revision, resources(&snapshot));
    Everything { revision, resources, root: store.root_secret(), history: store.verify().unwrap() }
}

/// A store with a history of several files, with keys, secrets, and a deletion.
fn eventful() -> Folder {
    static MADE: LazyLock<MadeFolder> = LazyLock::new(|| made_eventful().content());
    Folder::like(&MADE)
}

fn made_eventful() -> Folder {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    let doomed = folder.ok("keys create --role viewer").out;
    folder.ok("store rekey");
    folder.write(&format!("storefront/secrets/{WEBHOOK_SECRET}.txt"), "hunter2-changed");
    folder.ok("reconcile storefront");
    folder.ok("store rekey");
    folder.ok(&format!("keys revoke {}", doomed.trim()[3..].rsplit_once('_').unwrap().0));
    folder.ok("keys create --role admin");
    folder
}

/// Puts the master key beside the folder of a store that is going to be restored.
fn hand_key(folder: &Folder, to: &str) {
    fs::copy(beside(&folder.path("store")), beside(&folder.path(to))).unwrap();
}

fn refused(run: &Run, code: &str, says: &str) {
    assert!(run.code == 1 && run.err.contains(code) && run.err.contains(says), "{code} {says}\n{}", run.all());
}

/// The data keys of a store have a copy, and its state is in one database.
fn is_kept_twice(folder: &Folder, store: &str) {
    let names = fs::read_dir(folder.path(store)).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    assert_eq!(names.iter().filter(|name| name.starts_with("state.")).count(), 1, "{names:?}");
    let read = |name: &str| fs::read(folder.path(store).join(name)).unwrap();
    assert!(read("keys") == read("keys.copy"));
    assert_eq!(folder.mode(&format!("{store}/keys.copy")), 0o600);
}

#[test]
fn a_restored_store_is_the_one_that_was_backed_up() {
    let folder = eventful();
    let before = everything(&folder.path("store"));
    let run = folder.ok(&format!("backup {BACKUP}"));
    assert!(run.err.contains(&format!("Backed up revision {}", before.revision)), "{}", run.err);
    assert!(run.err.contains("master key"), "{}", run.err);
    assert_eq!(folder.mode(BACKUP), 0o600);
    assert_eq!(everything(&folder.path("store")), before, "a backup changes nothing");
    let bytes = fs::read(folder.path(BACKUP)).unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("hunter2-changed"));
    refused(&folder.run(&format!("backup {BACKUP}")), "ERR_EDGEWRIGHT_CONFLICT", "already exists");
    folder.ok(&format!("backup --force {BACKUP}"));
    let piped = folder.command("backup -").output().unwrap();
    assert!(piped.status.success() && piped.stdout.starts_with(b"ewback2\n"), "{piped:?}");

    hand_key(&folder, "again");
    let run = folder.ok(&format!("restore {BACKUP} --store again"));
    assert!(run.err.contains(&format!("Restored revision {}", before.revision)), "{}", run.err);
    assert_eq!(everything(&folder.path("again")), before);
    assert_eq!(folder.mode("again"), 0o700);
    is_kept_twice(&folder, "again");
    for name in ["again", BACKUP] {
        let line = if name == BACKUP { format!("store check {BACKUP}") } else { format!("store check --store {name}") };
        let run = folder.ok(&line);
        assert!(run.out.contains(&format!("revision {}", before.revision)), "{}", run.out);
        assert!(run.out.contains(&format!("{} records from record 1", before.history.records)), "{}", run.out);
    }
    // It goes on as the other one does.
    folder.ok("plan --detailed-exitcode storefront --store again");
    folder.ok("keys create --role viewer --store again");
    folder.ok("rollback --to 1 --max-deletes 100% --store again");
    folder.ok("history verify --store again");
    for says in ["not empty", "choose a new or empty folder with `--store`"] {
        refused(&folder.run(&format!("restore {BACKUP} --store again")), "ERR_EDGEWRIGHT_STORE_FORMAT", says);
    }
}

#[test]
fn only_the_master_key_restores_a_backup() {
    let folder = eventful();
    folder.ok(&format!("backup {BACKUP}"));
    folder.write("other.key", &"0123456789abcdef".repeat(4));
    fs::set_permissions(folder.path("other.key"), fs::Permissions::from_mode(0o600)).unwrap();
    for options in ["", "--master-key-file other.key"] {
        let run = folder.run(&format!("restore {BACKUP} --store again {options}"));
        refused(&run, "ERR_EDGEWRIGHT_MASTER_KEY", "");
        assert!(!folder.path("again").exists(), "a restore that fails leaves nothing");
    }
    let run = folder.ok(&format!("restore {BACKUP} --store again --master-key-file store.master.key"));
    assert!(run.err.contains("Copy store.master.key to ") && run.err.contains("again.master.key, or"), "{}", run.err);
    assert!(!beside(&folder.path("again")).exists(), "no key is made or copied");
}

#[test]
fn a_damaged_backup_is_told_and_never_restored() {
    let folder = eventful();
    folder.ok(&format!("backup {BACKUP}"));
    let bytes = fs::read(folder.path(BACKUP)).unwrap();
    let flipped = (0..bytes.len()).step_by(bytes.len() / rounds(9, 25)).map(|at| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        bytes
    });
    let cut = (0..bytes.len()).step_by(bytes.len() / rounds(4, 10)).map(|length| bytes[..length].to_vec());
    let longer = [bytes.iter().copied().chain([0]).collect::<Vec<u8>>()];
    hand_key(&folder, "again");
    for (number, damaged) in flipped.chain(cut).chain(longer).enumerate() {
        fs::write(folder.path("damaged.backup"), damaged).unwrap();
        for line in ["store check damaged.backup", "restore damaged.backup --store again"] {
            let run = folder.run(line);
            let is_told = run.err.contains("STORE_CORRUPT") || run.err.contains("STORE_FORMAT");
            // A repair works on stores.
            assert!(run.code == 1 && is_told && !run.err.contains("repair"), "{number}: {line}\n{}", run.all());
        }
        assert!(!folder.path("again").exists(), "{number}");
    }
    refused(&folder.run("restore storefront --store again"), "ERR_EDGEWRIGHT_STORE_FAILED", "not a regular file");
}

#[test]
fn a_point_in_time_is_restored_with_the_history_up_to_it() {
    let folder = Folder::new();
    let manifest = |text: &str| {
        let route = "{name: hook, match_type: path_prefix, match: /, webhook_verification: \
                     {provider: github, secret: {from_file: s.txt}}}";
        format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: a}}\nspec:\n  description: {text}\n  \
             hostports: ['a.example.com:443']\n  routes:\n    - {route}\n"
        )
    };
    let mut states = vec![(Vec::new(), Verified::default())];
    for revision in 1..=6 {
        folder.write("m/a.yaml", &manifest(&format!("number{revision}")));
        folder.write("m/s.txt", &format!("hunter2-{revision}"));
        folder.ok("reconcile m");
        let now = everything(&folder.path("store"));
        assert_eq!(now.revision, revision);
        states.push((now.resources, now.history));
        if revision % 2 == 0 {
            folder.ok("store rekey");
        }
    }
    // An attempt that changed nothing belongs to its revision.
    folder.write("m/a.yaml", "kind: Nothing\n");
    folder.run("reconcile m");
    folder.ok(&format!("backup {BACKUP}"));
    // A usual run has the start, and a revision right before and right behind a rekey.
    let is_tried = |revision: &usize| rounds([0, 1, 4].contains(revision), true);
    for (revision, (resources, history)) in states.iter().enumerate().take(6).filter(|(revision, _)| is_tried(revision))
    {
        let store = format!("to-{revision}");
        hand_key(&folder, &store);
        folder.ok(&format!("restore {BACKUP} --store {store} --to {revision}"));
        is_kept_twice(&folder, &store);
        let restored = everything(&folder.path(&store));
        assert_eq!((restored.revision, &restored.resources), (revision as u64, resources), "{revision}");
        assert_eq!(restored.root, everything(&folder.path("store")).root);
        assert_eq!(&restored.history, history, "the chain ends at the record of revision {revision}");
        folder.ok(&format!("store check --store {store}"));
        let opened = Store::open_to_read(folder.path(&store)).unwrap();
        for (earlier, (resources, _)) in states.iter().enumerate().take(revision) {
            let state = opened.snapshot_at(earlier as u64).unwrap();
            assert_eq!(&self::resources(&state), resources, "{earlier} of {revision}");
        }
        drop(opened);
        // The store has the next revision again, another one.
        folder.ok(&format!("keys create --role viewer --store {store}"));
        assert_eq!(everything(&folder.path(&store)).revision, revision as u64 + 1);
        folder.ok(&format!("history verify --store {store}"));
    }
    hand_key(&folder, "at");
    let at = |to: &str| folder.run(&format!("restore {BACKUP} --store at --to {to}"));
    refused(&at("1970-01-01T00:00:00Z"), "ERR_EDGEWRIGHT_REVISION_GONE", "begins after");
    refused(&at("1970-01-01T00:00:00Z"), "ERR_EDGEWRIGHT_REVISION_GONE", "help: use an older backup");
    refused(&at("7"), "ERR_EDGEWRIGHT_REVISION_NOT_FOUND", "does not exist");
    assert!(!folder.path("at/head").exists());
    assert_eq!(at("2999-01-01T00:00:00Z").code, 0);
    assert_eq!(everything(&folder.path("at")), everything(&folder.path("store")));
}

/// A backup of a store with a record of each of these minutes.
fn recorded_at(minutes: &[i64], time: impl Fn(i64) -> Timestamp) -> Folder {
    let folder = Folder::new();
    let store = Store::open(folder.path("store")).unwrap();
    for (number, minute) in minutes.iter().enumerate() {
        let operations = with_routes(number, 0);
        let attempt = Attempt { at: time(*minute), ..Attempt::new(Author::Local) };
        store.commit_with(attempt, |_| Ok::<_, ()>(operations)).unwrap();
    }
    drop(store);
    folder.ok(&format!("backup {BACKUP}"));
    folder
}

#[test]
fn a_time_is_restored_without_what_came_after_the_first_later_record() {
    let start = now();
    let time = |minute: i64| start.checked_add(SignedDuration::from_mins(minute - 200)).unwrap();
    // The third record is of a run that took long, and the fifth one of a server with another clock.
    let folder = recorded_at(&[0, 10, 5, 20, 15, 30], time);
    for (minute, revision) in [(0, 1), (5, 1), (10, 3), (15, 3), (20, 5), (31, 6)] {
        let store = format!("to-{minute}");
        hand_key(&folder, &store);
        let run = folder.ok(&format!("restore {BACKUP} --store {store} --to {}", time(minute)));
        assert!(run.err.contains(&format!("Restored revision {revision} ")), "{minute}: {}", run.err);
    }
    // One clock was a day ahead, or behind.
    for wrong in [24 * 60, -24 * 60] {
        let minutes = if wrong > 0 { [0, wrong, 10, 30] } else { [0, 20, wrong, 30] };
        let folder = recorded_at(&minutes, time);
        hand_key(&folder, "again");
        let run = folder.run(&format!("restore {BACKUP} --store again --to {}", time(15)));
        refused(&run, "ERR_EDGEWRIGHT_CONFLICT", "the clock went back: record 2 is of ");
        refused(&run, "ERR_EDGEWRIGHT_CONFLICT", "1 is the one before record 2, and 3 the one at record 3");
        folder.ok(&format!("restore {BACKUP} --store again --to 3"));
    }
}

#[test]
fn a_running_server_is_backed_up_by_admins() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    let serve = folder.serve("");
    let run = client(&folder, &serve, &format!("backup {BACKUP}"));
    assert!(run.code == 0 && run.err.contains("Backed up revision 2"), "{}", run.all());
    assert_eq!(serve.call("POST", "/ip_restrictions", r#"{"type": "api"}"#).status, 201);
    serve.wait_for("an admin makes a backup");
    let other = serve.call("POST", "/api_keys", r#"{"owner_id": "bot_other"}"#).json()["token"].clone();
    let refusal = serve.call_as(other.as_str().unwrap(), "GET", "/backup", "");
    assert_eq!((refusal.status, refusal.code().as_str()), (403, "ERR_EDGEWRIGHT_FORBIDDEN"));
    serve.stop();
    hand_key(&folder, "again");
    folder.ok(&format!("restore {BACKUP} --store again"));
    assert_eq!(everything(&folder.path("again")).revision, 2);
    assert!(everything(&folder.path("store")).revision > 2);
}

#[test]
fn the_endpoint_is_for_admins_and_takes_no_parameters() {
    let server = Server::start();
    let gateway = server.key_of("bot_gateway", Role::Gateway);
    for token in [&server.editor, &server.viewer, &gateway] {
        let answer = server.call_as(token, "GET", "/backup", None);
        assert_eq!((answer.status, answer.str("/error_code")), (403, "ERR_EDGEWRIGHT_FORBIDDEN"), "{}", answer.text);
    }
    let answer = server.call_as("ew_ak_none_x", "GET", "/backup", None);
    assert_eq!(answer.status, 401);
    assert_eq!(server.call("GET", "/backup?revision=1", None).str("/error_code"), "ERR_EDGEWRIGHT_PARAMETER");
    assert_eq!(server.call("POST", "/backup", None).status, 405);
    let answer = server.call("GET", "/backup", None);
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/octet-stream")));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert!(answer.text.starts_with("ewback2\n"));
}

fn with_routes(number: usize, routes: usize) -> Vec<Operation> {
    let id = Id::new(&format!("edghts_{number:027}"));
    let create = |key: Key, spec: Arc<dyn AnyResource>| Operation::Create { key, spec, claim: None, token: None };
    let spec = HttpsEdge { hostports: vec![format!("e{number}.example.com:443")], ..HttpsEdge::default() };
    let mut operations = vec![create(Key::new(Kind::HttpsEdge, id.clone()), Arc::new(spec))];
    operations.extend((0..routes).map(|route| {
        let spec = HttpsEdgeRoute {
            match_type: Some(MatchType::PathPrefix),
            r#match: format!("/{route}"),
            metadata: "x".repeat(3000),
            ..HttpsEdgeRoute::default()
        };
        let key = Key::child(Kind::HttpsEdgeRoute, id.clone(), Id::new(&format!("edghtsrt_{number:013}_{route:013}")));
        create(key, Arc::new(spec))
    }));
    operations
}

#[test]
fn commits_and_checkpoints_during_a_backup_do_not_tear_it() {
    let folder = Folder::new();
    let store = Arc::new(Store::open(folder.path("store")).unwrap());
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (store, stop) = (Arc::clone(&store), Arc::clone(&stop));
        std::thread::spawn(move || {
            // Each commit is a third of a megabyte, so there is a checkpoint.
            let mut number = 0;
            while number < 30 || (!stop.load(Ordering::SeqCst) && number < 90) {
                let operations = with_routes(number, 100);
                store.commit(Author::Local, operations).unwrap();
                number += 1;
            }
        })
    };
    let mut backups = Vec::new();
    for number in 0..8 {
        // Otherwise all backups could be made before the first commit.
        while store.snapshot().revision < 3 * number {
            std::thread::sleep(Duration::from_millis(1));
        }
        let before = store.snapshot().revision;
        let mut backup = store.backup().unwrap();
        // It may be ahead of what is visible now: a commit is durable first.
        assert!(backup.revision() >= before);
        let (mut bytes, length) = (Vec::new(), backup.length());
        while let Some(piece) = backup.next_piece().unwrap() {
            assert!(piece.len() <= 256 << 10, "{}", piece.len());
            bytes.extend_from_slice(&piece);
            // Others get the time to change the files that are being read.
            std::thread::yield_now();
        }
        assert_eq!(bytes.len() as u64, length);
        let name = format!("{number}.backup");
        fs::write(folder.path(&name), bytes).unwrap();
        backups.push((name, backup.revision()));
    }
    stop.store(true, Ordering::SeqCst);
    writer.join().unwrap();
    drop(store);
    assert!(folder.path("store/log.0000000002").exists(), "no checkpoint was written");
    for (name, revision) in [backups.first(), backups.get(4), backups.last()].into_iter().flatten() {
        let again = format!("again-{name}");
        hand_key(&folder, &again);
        folder.ok(&format!("restore {name} --store {again}"));
        let restored = Store::open_to_read(folder.path(&again)).unwrap();
        let (snapshot, records) = (restored.snapshot(), restored.history(&Query::All, u64::MAX, 1000).unwrap());
        assert_eq!((snapshot.revision, records.len() as u64), (*revision, *revision), "{name}");
        assert_eq!(snapshot.count(Kind::HttpsEdge) as u64, *revision, "{name}");
        assert_eq!(snapshot.count(Kind::HttpsEdgeRoute) as u64, 100 * revision, "{name}");
        drop(restored);
        fs::remove_dir_all(folder.path(&again)).unwrap();
    }
}

#[test]
fn a_backup_in_a_missing_folder_is_told_by_its_own_name() {
    let folder = Folder::new();
    folder.ok("keys create --role admin");
    let run = folder.run("backup missing/x.backup");
    let words = "cannot write the backup to `missing/x.backup`: the folder missing does not exist";
    assert!(run.code == 1 && run.err.contains(words), "{}", run.all());
}

#[test]
fn a_store_in_memory_has_no_backup() {
    let error = Store::open(MEMORY).unwrap().backup().err().unwrap();
    assert!(error.message.contains("not in a folder"), "{error}");
}

/// Starts a command and kills it after a while, unless it ends before.
fn killed(folder: &Folder, line: &str, after: Duration) {
    let mut child = folder.command(line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(after);
    let _ = child.kill();
    child.wait().unwrap();
}

#[test]
fn an_interrupted_backup_leaves_no_backup_and_an_interrupted_restore_no_store() {
    let folder = eventful();
    let began = SystemTime::now();
    folder.ok(&format!("backup {BACKUP}"));
    let whole = began.elapsed().unwrap();
    let expected = everything(&folder.path("store"));
    for round in (0..12).step_by(rounds(2, 1)) {
        let name = format!("{round}.backup");
        killed(&folder, &format!("backup {name}"), whole * round / 10);
        if folder.path(&name).exists() {
            folder.ok(&format!("store check {name}"));
        }
    }
    for round in (0..12).step_by(rounds(2, 1)) {
        let store = format!("again-{round}");
        hand_key(&folder, &store);
        killed(&folder, &format!("restore {BACKUP} --store {store}"), whole * round / 8);
        // A store that opens is complete.
        if folder.run(&format!("store check --store {store}")).code != 0 {
            assert!(!folder.path(&store).join("head").exists(), "{round}");
            folder.ok(&format!("restore {BACKUP} --store {store}"));
        }
        assert_eq!(everything(&folder.path(&store)), expected, "{round}");
    }
}

#[test]
fn what_an_interrupted_restore_leaves_is_not_taken_for_a_new_store() {
    let folder = eventful();
    folder.ok(&format!("backup {BACKUP}"));
    hand_key(&folder, "again");
    folder.ok(&format!("restore {BACKUP} --store again"));
    // As after a crash right before the head.
    fs::remove_file(folder.path("again/head")).unwrap();
    fs::create_dir(folder.path("again/restore.tmp")).unwrap();
    for line in ["keys create", "get edges", "store check", "store repair --apply"] {
        let run = folder.run(&format!("{line} --store again"));
        assert_eq!(run.code, 1, "{line}\n{}", run.all());
        assert!(!folder.path("again/head").exists(), "{line}");
    }
    refused(&folder.run("keys create --store again"), "ERR_EDGEWRIGHT_STORE_FORMAT", "was interrupted");
    folder.ok(&format!("restore {BACKUP} --store again"));
    assert_eq!(everything(&folder.path("again")), everything(&folder.path("store")));
    assert!(!folder.path("again/restore.tmp").exists());
}

#[test]
fn a_store_that_is_made_again_from_git_has_the_same_ids() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    let ids = |store: &str| -> Vec<String> {
        folder.snapshot(store).iter().map(|entry| format!("{} {:?}", entry.key, entry.claim)).collect()
    };
    let before = ids("store");
    assert!(before.len() > 20);
    fs::remove_dir_all(folder.path("store")).unwrap();
    fs::remove_file(beside(&folder.path("store"))).unwrap();
    folder.ok("reconcile storefront");
    assert_eq!(ids("store"), before);
}
