//! Repairs of damaged stores: a copy first, then exactly what cannot be read is given up, and said (D100).

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, LazyLock},
    time::SystemTime,
};

use edgewright::{
    Store,
    resources::{Author, Id, IpRestriction, Key, Kind, Operation, Traffic},
    storage::Query,
};

use crate::support::program::{Folder, MadeFolder, Run, copy, rounds};

/// The records in the log before the state, and all of them.
const FORMER: usize = 5;
const RECORDS: usize = 9;

fn path_of(number: usize) -> String {
    format!("/ip_restrictions/ipx_{number:027}")
}

fn add(store: &Store, number: usize) {
    let key = Key::new(Kind::IpRestriction, Id::new(&format!("ipx_{number:027}")));
    let spec = IpRestriction {
        r#type: Some(Traffic::Api),
        description: format!("number {number}"),
        ..IpRestriction::default()
    };
    let operations = vec![Operation::Create { key, spec: Arc::new(spec), claim: None, token: None }];
    store.commit(Author::Local, operations).unwrap();
}

/// A store whose revision N made resource N: some in its state, the others in the log after it. Its process was killed.
fn sound() -> Folder {
    static MADE: LazyLock<MadeFolder> = LazyLock::new(|| made_sound().content());
    Folder::like(&MADE)
}

fn made_sound() -> Folder {
    let folder = Folder::new();
    let store = Store::open(folder.path("store")).unwrap();
    (1..=FORMER).for_each(|number| add(&store, number));
    drop(store);
    folder.ok("store rekey");
    let store = Store::open(folder.path("store")).unwrap();
    (FORMER + 1..=RECORDS).for_each(|number| add(&store, number));
    assert_eq!(store.history(&Query::All, u64::MAX, 100).unwrap().len(), RECORDS);
    copy(&folder.path("store"), &folder.path("killed"));
    drop(store);
    fs::remove_dir_all(folder.path("store")).unwrap();
    fs::rename(folder.path("killed"), folder.path("store")).unwrap();
    folder.ok("store check");
    assert_eq!(frames(&former(&folder)).len(), FORMER);
    assert_eq!(frames(&newest(&folder, "log")).len(), RECORDS - FORMER);
    folder
}

/// The part of the log before the state.
fn former(folder: &Folder) -> PathBuf {
    folder.path("store/log.0000000001")
}

/// Changes a bit of a resource in the state.
fn flip_state(folder: &Folder) {
    let found: Vec<(PathBuf, usize)> = states(folder)
        .filter_map(|path| {
            let at = fs::read(&path).unwrap().windows(8).position(|part| part == b"number 3")?;
            Some((path, at))
        })
        .collect();
    assert!(!found.is_empty());
    found.iter().for_each(|(path, at)| flip(path, *at));
}

/// The newest database of the state.
fn state(folder: &Folder) -> PathBuf {
    states(folder).max().unwrap()
}

/// The databases of the state. One before may be half removed: the server was killed.
fn states(folder: &Folder) -> impl Iterator<Item = PathBuf> {
    let folders = fs::read_dir(folder.path("store")).unwrap().map(|entry| entry.unwrap().path());
    let states = folders.filter(|path| path.display().to_string().contains("/state."));
    states.map(|path| path.join("db")).filter(|path| path.exists())
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = walkdir::WalkDir::new(folder).into_iter().map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().is_file());
    let name = |path: &Path| path.strip_prefix(folder).unwrap().display().to_string();
    files.map(|entry| (name(entry.path()), fs::read(entry.path()).unwrap())).collect()
}

/// The file of a kind with the highest number.
fn newest(folder: &Folder, kind: &str) -> PathBuf {
    let names = files(&folder.path("store"));
    let name = names.keys().rfind(|name| name.starts_with(&format!("{kind}."))).unwrap().clone();
    folder.path("store").join(name)
}

/// Where the frames of a part of the log begin.
fn frames(path: &Path) -> Vec<usize> {
    let bytes = fs::read(path).unwrap();
    bytes.windows(4).enumerate().filter(|(_, window)| *window == b"ewf3").map(|(at, _)| at).collect()
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn copies(folder: &Folder) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.to_string_lossy().contains("store.damaged-")).collect()
}

/// What a repair has to say and to leave.
struct Expected<'e> {
    says: &'e [&'e str],
    revision: usize,
    oldest: u64,
    is_open: bool,
}

/// Repairs a damaged store: first without `--apply`, which changes nothing.
fn repaired(folder: &Folder, expected: &Expected<'_>) {
    let damaged = files(&folder.path("store"));
    let check = folder.run("store check");
    assert!(check.code == 1 && !check.out.contains("from record 0"), "{}", check.all());
    assert_eq!(Store::open_to_read(folder.path("store")).is_ok(), expected.is_open);
    let shown = folder.run("store repair");
    assert!(shown.code == 2 && shown.err.contains("Nothing was changed"), "{}", shown.all());
    for text in expected.says {
        assert!(shown.out.contains(text), "{text} is missing\n{}", shown.all());
    }
    let without_lock = |mut files: BTreeMap<String, Vec<u8>>| {
        files.remove("lock");
        files
    };
    assert_eq!(without_lock(files(&folder.path("store"))), without_lock(damaged.clone()), "nothing was changed");
    assert!(copies(folder).is_empty());
    let run = folder.ok("store repair --apply");
    assert_eq!(run.out, shown.out, "what was shown is what was done");
    let copies = copies(folder);
    assert_eq!(copies.len(), 1, "{copies:?}");
    assert_eq!(without_lock(files(&copies[0])), without_lock(damaged), "the copy is complete");
    sound_with(folder, expected.revision, expected.oldest);
}

/// A store that has the resources up to a number, and goes on.
fn sound_with(folder: &Folder, revision: usize, oldest: u64) {
    folder.ok("store check");
    let again = folder.ok("store repair");
    assert!(again.err.contains("Nothing to repair"), "{}", again.all());
    let store = Store::open(folder.path("store")).unwrap();
    let snapshot = store.snapshot();
    assert_eq!((snapshot.revision, snapshot.len()), (revision as u64, revision));
    assert_eq!(store.verify().unwrap().oldest, oldest);
    let records = store.history(&Query::All, u64::MAX, 100).unwrap();
    assert_eq!(records.len() as u64, revision as u64 + 1 - oldest);
    add(&store, RECORDS + 1);
    drop(store);
    folder.ok("store rekey");
    folder.ok("store check");
}

#[test]
fn a_damaged_end_of_the_log_is_given_up() {
    let folder = sound();
    let log = newest(&folder, "log");
    let bytes = fs::read(&log).unwrap();
    fs::write(&log, &bytes[..bytes.len() - 10]).unwrap();
    let says = ["record 9 in `log.", "record 9: unreadable", "acknowledges record 9", "at revision 8, record 8"];
    repaired(&folder, &Expected { says: &says, revision: 8, oldest: 1, is_open: false });
}

#[test]
fn records_after_damage_in_the_log_are_named() {
    let folder = sound();
    let log = newest(&folder, "log");
    flip(&log, frames(&log)[1] + 110);
    let (eighth, ninth) = (path_of(8), path_of(9));
    let says = [
        "record 7 in `log.",
        "record 7: unreadable",
        "record 8, revision 8",
        eighth.as_str(),
        ninth.as_str(),
        "at revision 6",
    ];
    repaired(&folder, &Expected { says: &says, revision: 6, oldest: 1, is_open: false });
}

#[test]
fn a_log_whose_header_is_damaged_loses_nothing() {
    let folder = sound();
    flip(&newest(&folder, "log"), 20);
    let says = ["the header of `log.", "Nothing is lost", "at revision 9, record 9"];
    repaired(&folder, &Expected { says: &says, revision: 9, oldest: 1, is_open: false });
}

#[test]
fn a_missing_part_of_the_log_is_given_up_as_a_whole() {
    let folder = sound();
    fs::remove_file(newest(&folder, "log")).unwrap();
    let says = ["is missing", "records 6 to 9: unreadable", "at revision 5, record 5"];
    repaired(&folder, &Expected { says: &says, revision: 5, oldest: 1, is_open: false });
}

#[test]
fn damage_in_the_history_costs_no_state() {
    let folder = sound();
    let history = former(&folder);
    flip(&history, frames(&history)[1] + 110);
    // Record 3 is what is left to continue from.
    let says = ["the history before record 4 cannot be read", "records 1 to 3", "at revision 9, record 9"];
    repaired(&folder, &Expected { says: &says, revision: 9, oldest: 4, is_open: true });

    let folder = sound();
    flip(&former(&folder), 20);
    let says = ["the header of `log.", "Nothing is lost", "at revision 9"];
    repaired(&folder, &Expected { says: &says, revision: 9, oldest: 1, is_open: true });

    let folder = sound();
    fs::remove_file(former(&folder)).unwrap();
    let says = ["the history before record 6 is missing", "records 1 to 5"];
    repaired(&folder, &Expected { says: &says, revision: 9, oldest: 6, is_open: true });
}

#[test]
fn a_lost_head_is_written_again() {
    for is_missing in [true, false] {
        let folder = sound();
        let head = folder.path("store/head");
        match is_missing {
            true => fs::remove_file(&head).unwrap(),
            false => fs::write(&head, vec![7; 8192]).unwrap(),
        }
        let says = ["head", "records after the last readable one may have been acknowledged"];
        repaired(&folder, &Expected { says: &says, revision: 9, oldest: 1, is_open: false });
    }
}

#[test]
fn a_wrong_index_is_built_again() {
    let (folder, other) = (sound(), Folder::new());
    let store = Store::open(other.path("store")).unwrap();
    (1..=FORMER).for_each(|number| add(&store, 10 + number));
    assert_eq!(store.history(&Query::All, u64::MAX, 100).unwrap().len(), FORMER);
    drop(store);
    fs::remove_dir_all(folder.path("store/index")).unwrap();
    copy(&other.path("store/index"), &folder.path("store/index"));
    let says = ["index", "Nothing is lost"];
    repaired(&folder, &Expected { says: &says, revision: 9, oldest: 1, is_open: true });
}

#[test]
fn a_damaged_state_is_built_again_from_the_log() {
    let lost = |folder: &Folder| fs::remove_dir_all(state(folder).parent().unwrap()).unwrap();
    for damage in [flip_state as fn(&Folder), lost] {
        let folder = sound();
        damage(&folder);
        let says = ["state.", "Nothing is lost", "at revision 9, record 9"];
        repaired(&folder, &Expected { says: &says, revision: 9, oldest: 1, is_open: true });
    }
}

/// The files of which another one has the content.
fn kept_twice(folder: &Folder) -> [PathBuf; 2] {
    ["keys", "keys.copy"].map(|name| folder.path("store").join(name))
}

#[test]
fn damage_of_what_is_kept_twice_costs_nothing() {
    for number in 0..2 {
        let folder = sound();
        let path = kept_twice(&folder)[number].clone();
        let length = fs::read(&path).unwrap().len();
        for at in [3, 6, length / 2, length - 5].into_iter().skip(rounds(number, 0)).step_by(rounds(2, 1)) {
            let before = fs::read(&path).unwrap();
            flip(&path, at);
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let run = folder.run("store check");
            assert!(run.code == 1 && run.err.contains(&name), "{name} byte {at}: {}", run.all());
            fs::write(&path, before).unwrap();
        }
        flip(&path, length / 3);
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let says = [name.as_str(), "Nothing is lost", "at revision 9, record 9"];
        repaired(&folder, &Expected { says: &says, revision: 9, oldest: 1, is_open: true });
    }
    let folder = sound();
    for path in [state(&folder), folder.path("store/keys")] {
        fs::remove_file(path).unwrap();
    }
    let says = ["state.", "keys", "the file is missing", "Nothing is lost"];
    repaired(&folder, &Expected { says: &says, revision: 9, oldest: 1, is_open: true });
    for number in 0..2 {
        let folder = sound();
        let path = kept_twice(&folder)[number].clone();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        fs::remove_file(path).unwrap();
        let run = folder.run("store check");
        let is_told = run.err.contains(&name) && run.err.contains("the file is missing");
        assert!(run.code == 1 && is_told && !run.err.contains("No problems found"), "{name}: {}", run.all());
        // A backup has one file of each pair, in any case.
        folder.ok("backup one.backup");
        folder.ok("store check one.backup");
        let says = [name.as_str(), "the file is missing", "Nothing is lost"];
        repaired(&folder, &Expected { says: &says, revision: 9, oldest: 1, is_open: true });
    }
}

#[test]
fn a_check_of_what_is_no_backup_says_what_to_name() {
    let folder = sound();
    for (line, said) in [
        ("store check store", "use `--store store`; an argument without --store is a backup file"),
        ("store check nosuch.backup", "check the path of the backup"),
        ("store check --store postgre://edge:hunter2@db/edge", "did you mean `postgres://`?"),
        ("keys create --store postgre://edge:hunter2@db/edge", "did you mean `postgres://`?"),
    ] {
        let run = folder.run(line);
        assert!(run.code == 1 && run.err.contains(said) && !run.all().contains("hunter2"), "{line}: {}", run.all());
    }
}

#[test]
fn a_command_tells_of_damage_and_one_that_writes_restores_the_file() {
    let folder = sound();
    for path in kept_twice(&folder) {
        let before = fs::read(&path).unwrap();
        flip(&path, before.len() / 2);
        let damaged = files(&folder.path("store"));
        let read = folder.ok("get ip-restrictions");
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(read.err.contains(&format!("{name} is damaged")), "{}", read.all());
        assert!(read.err.contains("Nothing is lost"), "{}", read.all());
        assert_eq!(files(&folder.path("store")), damaged, "a command that reads changes nothing");
        let backed_up = folder.ok("backup --force one.backup");
        assert!(backed_up.err.contains("is damaged"), "{}", backed_up.all());
        folder.ok("store check one.backup");
        let serve = folder.serve("");
        assert!(serve.said().contains("It was restored from"), "{}", serve.said());
        serve.stop();
        assert!(fs::read(&path).unwrap() == before, "{name}");
        assert!(!folder.ok("store check").err.contains("damaged"));
    }
    flip_state(&folder);
    for line in ["get ip-restrictions", "backup --force one.backup", "keys create --role viewer"] {
        let run = folder.ok(line);
        assert!(run.err.contains("state.") && run.err.contains("Nothing is lost"), "{}", run.all());
    }
    folder.ok("store check one.backup");
    assert!(!folder.ok("store check").err.contains("damaged"), "the last command has written it again");
}

fn unrepairable(folder: &Folder, code: &str, says: &str) -> Run {
    let before = files(&folder.path("store"));
    for line in ["store repair", "store repair --apply"] {
        let run = folder.run(line);
        assert!(run.code == 1 && run.err.contains(code) && run.err.contains(says), "{line}\n{}", run.all());
    }
    assert_eq!(files(&folder.path("store")), before);
    assert!(copies(folder).is_empty());
    folder.run("store check")
}

#[test]
fn what_cannot_be_repaired_is_said_and_left() {
    let folder = sound();
    flip_state(&folder);
    fs::remove_file(former(&folder)).unwrap();
    assert_eq!(unrepairable(&folder, "STORE_CORRUPT", "no older state").code, 1);
    let folder = sound();
    for name in ["store/keys", "store/keys.copy"] {
        fs::remove_file(folder.path(name)).unwrap();
    }
    assert_eq!(unrepairable(&folder, "STORE_CORRUPT", "keys").code, 1);
    let folder = sound();
    fs::remove_file(folder.path("store.master.key")).unwrap();
    assert_eq!(unrepairable(&folder, "MASTER_KEY", "does not exist").code, 1);
    // Nothing is made where there is no store.
    let empty = Folder::new();
    assert_eq!(empty.run("store repair --apply").code, 1);
    assert!(!empty.path("store").exists());
}

#[test]
fn a_sound_store_needs_no_repair() {
    let folder = sound();
    let before = files(&folder.path("store"));
    let run = folder.ok("store repair --apply");
    assert!(run.err.contains("Nothing to repair"), "{}", run.all());
    assert_eq!(files(&folder.path("store")), before);
    assert!(copies(&folder).is_empty());
    let serve = folder.serve("");
    for line in ["store check", "store repair", "store repair --apply", "serve --listen 127.0.0.1:0"] {
        let run = folder.run(line);
        assert!(run.code == 1 && run.err.contains("ERR_EDGEWRIGHT_STORE_LOCKED"), "{line}\n{}", run.all());
        // None of them works through a server.
        assert!(!run.err.contains("--server"), "{line}\n{}", run.all());
    }
    serve.stop();
}

#[test]
fn an_interrupted_repair_is_done_again() {
    let folder = sound();
    let log = newest(&folder, "log");
    flip(&log, frames(&log)[1] + 110);
    let history = former(&folder);
    flip(&history, frames(&history)[1] + 110);
    let damaged = files(&folder.path("store"));
    let mut whole = None;
    for round in (0..12).step_by(rounds(3, 1)) {
        // The master key is the same for all of them.
        let one = Folder::new();
        copy(&folder.path("store"), &one.path("store"));
        let began = SystemTime::now();
        let mut child =
            one.command("store repair --apply").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        match whole {
            Some(whole) => {
                std::thread::sleep(whole * round / 10);
                let _ = child.kill();
                child.wait().unwrap();
            }
            None => {
                assert!(child.wait().unwrap().success());
                whole = Some(began.elapsed().unwrap());
            }
        }
        let again = one.run("store repair --apply");
        assert_eq!(again.code, 0, "{round}\n{}", again.all());
        // One of the copies has everything that there was.
        let has_all = |path: &PathBuf| {
            let kept = files(path);
            damaged.iter().filter(|(name, _)| *name != "lock").all(|(name, bytes)| kept.get(name) == Some(bytes))
        };
        assert!(copies(&one).iter().any(has_all), "{round}: {:?}", copies(&one));
        sound_with(&one, 6, 4);
    }
}
