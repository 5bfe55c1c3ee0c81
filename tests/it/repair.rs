//! Repairs of damaged stores: a copy first, then exactly what cannot be read is given up, and said (D100).

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::SystemTime,
};

use edgewright::{
    Store,
    resources::{Author, Id, IpRestriction, Key, Kind, Operation, Traffic, now},
    storage::{Commit, Query},
};

use crate::cli::{Folder, Run, copy};

/// The records in the history file and in the journal.
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
    store.commit(Commit { base: None, operations, author: Author::Local, at: now() }).unwrap();
}

/// A store whose revision N made resource N: some in a history file, the others in the journal.
fn sound() -> Folder {
    let folder = Folder::new();
    let store = Store::open(folder.path("store")).unwrap();
    (1..=FORMER).for_each(|number| add(&store, number));
    drop(store);
    folder.ok("store rekey");
    let store = Store::open(folder.path("store")).unwrap();
    (FORMER + 1..=RECORDS).for_each(|number| add(&store, number));
    assert_eq!(store.history(&Query::All, u64::MAX, 100).unwrap().len(), RECORDS);
    drop(store);
    folder.ok("store check");
    assert_eq!(files(&folder.path("store")).keys().filter(|name| name.starts_with("history")).count(), 1);
    folder
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

/// Where the frames of a journal or history file begin.
fn frames(path: &Path) -> Vec<usize> {
    let bytes = fs::read(path).unwrap();
    bytes.windows(4).enumerate().filter(|(_, window)| *window == b"ewf2").map(|(at, _)| at).collect()
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
    assert_eq!(check.code, 1, "{}", check.all());
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
fn a_damaged_end_of_the_journal_is_given_up() {
    let folder = sound();
    let journal = newest(&folder, "journal");
    let bytes = fs::read(&journal).unwrap();
    fs::write(&journal, &bytes[..bytes.len() - 10]).unwrap();
    let says = ["record 9 in `journal.", "record 9: unreadable", "acknowledges record 9", "at revision 8, record 8"];
    repaired(&folder, &Expected { says: &says, revision: 8, oldest: 1, is_open: false });
}

#[test]
fn records_after_damage_in_the_journal_are_named() {
    let folder = sound();
    let journal = newest(&folder, "journal");
    flip(&journal, frames(&journal)[1] + 110);
    let (eighth, ninth) = (path_of(8), path_of(9));
    let says = [
        "record 7 in `journal.",
        "record 7: unreadable",
        "record 8, revision 8",
        eighth.as_str(),
        ninth.as_str(),
        "at revision 6",
    ];
    repaired(&folder, &Expected { says: &says, revision: 6, oldest: 1, is_open: false });
}

#[test]
fn a_journal_whose_header_is_damaged_loses_nothing() {
    let folder = sound();
    flip(&newest(&folder, "journal"), 20);
    let says = ["the header of `journal.", "Nothing is given up", "at revision 9, record 9"];
    repaired(&folder, &Expected { says: &says, revision: 9, oldest: 1, is_open: false });
}

#[test]
fn a_missing_journal_is_given_up_as_a_whole() {
    let folder = sound();
    fs::remove_file(newest(&folder, "journal")).unwrap();
    let says = ["is missing", "records 6 to 9: unreadable", "at revision 5, record 5"];
    repaired(&folder, &Expected { says: &says, revision: 5, oldest: 1, is_open: false });
}

#[test]
fn damage_in_the_history_costs_no_state() {
    let folder = sound();
    let history = newest(&folder, "history");
    flip(&history, frames(&history)[1] + 110);
    // Record 3 is what is left to continue from.
    let says = ["the history before record 4 cannot be read", "records 1 to 3", "at revision 9, record 9"];
    repaired(&folder, &Expected { says: &says, revision: 9, oldest: 4, is_open: true });

    let folder = sound();
    flip(&newest(&folder, "history"), 20);
    let says = ["the header of `history.", "Nothing is given up", "at revision 9"];
    repaired(&folder, &Expected { says: &says, revision: 9, oldest: 1, is_open: true });

    let folder = sound();
    fs::remove_file(newest(&folder, "history")).unwrap();
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
        let says = ["head", "whether more records than the readable ones had been acknowledged is unknown"];
        repaired(&folder, &Expected { says: &says, revision: 9, oldest: 1, is_open: false });
    }
}

#[test]
fn a_wrong_index_is_built_again() {
    let (folder, other) = (sound(), sound());
    fs::remove_dir_all(folder.path("store/index")).unwrap();
    copy(&other.path("store/index"), &folder.path("store/index"));
    let says = ["index", "Nothing is given up"];
    repaired(&folder, &Expected { says: &says, revision: 9, oldest: 1, is_open: true });
}

#[test]
fn an_older_base_takes_the_place_of_a_damaged_one() {
    let folder = sound();
    let base = newest(&folder, "base");
    fs::copy(&base, folder.path("store/base.0000000009")).unwrap();
    flip(&folder.path("store/base.0000000009"), 100);
    let says = ["base.0000000009", "an older base takes its place", "at revision 9"];
    repaired(&folder, &Expected { says: &says, revision: 9, oldest: 1, is_open: false });
}

/// The files of which another one has the content.
fn kept_twice(folder: &Folder) -> [PathBuf; 4] {
    let keys = ["keys", "keys.copy"].map(|name| folder.path("store").join(name));
    let [data, copy] = keys;
    [newest(folder, "base"), newest(folder, "copy"), data, copy]
}

#[test]
fn damage_of_what_is_kept_twice_costs_nothing() {
    for number in 0..4 {
        let folder = sound();
        let path = kept_twice(&folder)[number].clone();
        let length = fs::read(&path).unwrap().len();
        for at in [3, 6, length / 2, length - 5] {
            let before = fs::read(&path).unwrap();
            flip(&path, at);
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let run = folder.run("store check");
            assert!(run.code == 1 && run.err.contains(&name), "{name} byte {at}: {}", run.all());
            fs::write(&path, before).unwrap();
        }
        flip(&path, length / 3);
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let says = [name.as_str(), "Nothing is given up", "at revision 9, record 9"];
        repaired(&folder, &Expected { says: &says, revision: 9, oldest: 1, is_open: true });
    }
    let folder = sound();
    for path in [newest(&folder, "base"), folder.path("store/keys")] {
        fs::remove_file(path).unwrap();
    }
    let says = ["base.", "keys", "the file is missing", "Nothing is given up"];
    repaired(&folder, &Expected { says: &says, revision: 9, oldest: 1, is_open: true });
    for number in 0..4 {
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
        let says = [name.as_str(), "the file is missing", "Nothing is given up"];
        repaired(&folder, &Expected { says: &says, revision: 9, oldest: 1, is_open: true });
    }
}

#[test]
fn a_command_tells_of_damage_and_one_that_writes_restores_the_file() {
    let folder = sound();
    // The copy of the base is verified by `store check`, not by each command.
    for path in kept_twice(&folder).into_iter().filter(|path| *path != newest(&folder, "copy")) {
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
    flip(&newest(&folder, "base"), 100);
    flip(&newest(&folder, "copy"), 110);
    assert_eq!(unrepairable(&folder, "STORE_CORRUPT", "no older base").code, 1);
    let folder = sound();
    for name in ["store/keys", "store/keys.copy"] {
        fs::remove_file(folder.path(name)).unwrap();
    }
    assert_eq!(unrepairable(&folder, "STORE_CORRUPT", "keys").code, 1);
    let folder = sound();
    fs::remove_file(folder.path("store.master.key")).unwrap();
    assert_eq!(unrepairable(&folder, "MASTER_KEY", "there is no file").code, 1);
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
    let journal = newest(&folder, "journal");
    flip(&journal, frames(&journal)[1] + 110);
    let history = newest(&folder, "history");
    flip(&history, frames(&history)[1] + 110);
    let damaged = files(&folder.path("store"));
    let mut whole = None;
    for round in 0..12 {
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
