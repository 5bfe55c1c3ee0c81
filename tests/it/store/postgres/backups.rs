//! Copies, backups and restores, between folders and databases.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use edgewright::{Store, storage::MasterKeySource};

use crate::store::{commit, content, small};
use crate::support::{
    postgres::Postgres,
    program::{Folder, has, until},
    users::{client, run_with_token},
};

#[test]
fn a_store_is_copied_into_a_database_and_back() {
    let Some(postgres) = Postgres::shared() else { return };
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    folder.write("store/suspensions", "{}\n");
    let (database, key) = (postgres.database(), "--master-key-file store.master.key");
    let url = postgres.url(&database);
    has(&folder.ok(&format!("store copy store {url}")), &["Copied revision"]);
    has(&folder.run(&format!("store copy store {url}")), &["is not empty"]);
    folder.ok(&format!("store copy {url} back {key}"));
    let source = MasterKeySource::File(folder.path("store.master.key"));
    let open = |address: &str| Store::open_encrypted_to_read(address, &source).unwrap();
    let path = |name: &str| folder.path(name).display().to_string();
    let stores = [open(&path("store")), open(&url), open(&path("back"))];
    for copied in &stores {
        assert_eq!(content(copied), content(&stores[0]));
        assert_eq!(copied.verify().unwrap(), stores[0].verify().unwrap());
        assert_eq!(copied.root_secret(), stores[0].root_secret());
    }
    drop(stores);
    for options in [format!("--store {url}"), "--store back".to_owned()] {
        folder.ok(&format!("store check {options} {key}"));
        folder.ok(&format!("history verify {options} {key}"));
        assert!(folder.ok(&format!("plan storefront {options} {key}")).all().contains("No changes"));
    }
    assert_eq!(folder.read("back/suspensions"), folder.read("store/suspensions"));
}

#[test]
fn a_database_that_a_server_writes_to_is_not_copied() {
    let Some(postgres) = Postgres::shared() else { return };
    let folder = Folder::new();
    let (url, key) = (postgres.url(&postgres.database()), postgres.master_key());
    let key = format!("--master-key-file {}", key.display());
    let serve = folder.serve(&format!("--store {url} {key} --security-log security.log"));
    let copy = format!("store copy {url} copied {key}");
    let refused = folder.run(&copy);
    assert_eq!(refused.code, 1, "{}", refused.all());
    has(&refused, &["STORE_LOCKED", "is in use by another process", "Stop the other process."]);
    assert!(!folder.path("copied").exists());
    serve.stop();
    has(&folder.ok(&copy), &["Copied revision"]);
}

#[test]
fn a_copy_that_lacks_the_commit_of_a_brief_writer_is_refused() {
    let Some(postgres) = Postgres::shared() else { return };
    let (folder, [from, to]) = (Folder::new(), [(); 2].map(|()| postgres.database()));
    commit(&postgres.open(&from).unwrap(), vec![small(1)]).unwrap();
    // The lock under which tables are made, until there is a row in `go`.
    let hold = "DO $$ BEGIN PERFORM pg_advisory_xact_lock(x'65776d69'::bigint); \
                FOR round IN 1..3000 LOOP EXIT WHEN EXISTS (SELECT 1 FROM go); PERFORM pg_sleep(0.02); END LOOP; END $$";
    let locks = |is_granted: &str| {
        let sql = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = x'65776d69'::bigint::oid \
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND";
        postgres.psql(&to, &format!("{sql} {is_granted}")).unwrap()
    };
    postgres.psql(&to, "CREATE TABLE go (one integer)").unwrap();
    let copy = format!(
        "store copy {} {} --master-key-file {}",
        postgres.url(&from),
        postgres.url(&to),
        postgres.master_key().display()
    );
    let refused = std::thread::scope(|scope| {
        scope.spawn(|| postgres.psql(&to, hold).unwrap());
        until("the lock", || (locks("granted") == "1").then_some(()));
        let copying = scope.spawn(|| folder.run(&copy));
        until("the copy", || (locks("NOT granted") == "1").then_some(()));
        commit(&postgres.open(&from).unwrap(), vec![small(2)]).unwrap();
        postgres.psql(&to, "INSERT INTO go VALUES (1)").unwrap();
        copying.join().unwrap()
    });
    assert_eq!(refused.code, 1, "{}", refused.all());
    has(&refused, &["STORE_LOCKED", "was written meanwhile by another process", "remove it"]);
    postgres.psql(&to, "DROP SCHEMA edgewright CASCADE").unwrap();
    has(&folder.ok(&copy), &["Copied revision 2"]);
}

/// A store in a folder with a history, keys of two times, a secret, and a suspended source. Returns the option of its master key.
fn eventful(folder: &Folder) -> &'static str {
    folder.ok("reconcile storefront");
    folder.ok("keys create --role viewer");
    folder.ok("store rekey");
    folder.ok("keys create --role admin");
    folder.write("store/suspensions", "{}\n");
    "--master-key-file store.master.key"
}

/// Opens stores for reading, all of which must be the same: their states, also earlier ones, their histories and their secrets.
fn are_same(folder: &Folder, addresses: &[String]) {
    let source = MasterKeySource::File(folder.path("store.master.key"));
    let stores: Vec<Store> =
        addresses.iter().map(|address| Store::open_encrypted_to_read(address, &source).unwrap()).collect();
    for store in &stores {
        assert_eq!(content(store), content(&stores[0]));
        assert_eq!(store.verify().unwrap(), stores[0].verify().unwrap());
        assert_eq!(store.root_secret(), stores[0].root_secret());
        for revision in 0..stores[0].snapshot().revision {
            let told = |store: &Store| {
                let state = store.snapshot_at(revision).unwrap();
                state
                    .iter()
                    .map(|entry| format!("{} {:?} {}", entry.key, entry.spec(), entry.order))
                    .collect::<Vec<_>>()
            };
            assert_eq!(told(store), told(&stores[0]), "{revision}");
        }
    }
}

#[test]
fn a_backup_is_restored_into_either_engine() {
    let Some(postgres) = Postgres::shared() else { return };
    let folder = Folder::with_storefront();
    let key = eventful(&folder);
    let [one, two, earlier] = [(); 3].map(|()| postgres.url(&postgres.database()));
    folder.ok("backup a.backup");
    let run = folder.ok(&format!("restore a.backup --store {one} {key}"));
    has(&run, &["Restored revision"]);
    assert!(!run.all().contains("Copy store.master.key"), "{}", run.all());
    folder.ok(&format!("backup b.backup --store {one} {key}"));
    folder.ok(&format!("restore b.backup --store {two} {key}"));
    folder.ok(&format!("backup c.backup --store {two} {key}"));
    folder.ok(&format!("restore c.backup --store back {key}"));
    let path = |name: &str| folder.path(name).display().to_string();
    are_same(&folder, &[path("store"), one.clone(), two.clone(), path("back")]);
    assert_eq!(folder.read("back/suspensions"), "{}\n");
    assert_eq!(folder.mode("b.backup"), 0o600);
    for name in ["a.backup", "b.backup", "c.backup"] {
        has(&folder.ok(&format!("store check {name} {key}")), &["revision", "No problems found."]);
        let bytes = std::fs::read(folder.path(name)).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("BEGIN PRIVATE KEY"), "{name}");
    }
    for options in [format!("--store {one}"), format!("--store {two}"), "--store back".to_owned()] {
        folder.ok(&format!("store check {options} {key}"));
        folder.ok(&format!("history verify {options} {key}"));
        assert!(folder.ok(&format!("plan storefront {options} {key}")).all().contains("No changes"));
    }
    folder.ok(&format!("restore b.backup --store {earlier} --to 1 {key}"));
    folder.ok(&format!("restore b.backup --store first --to 1 {key}"));
    are_same(&folder, &[path("first"), earlier]);
}

#[test]
fn a_restore_into_a_database_replaces_nothing_and_is_whole_or_no_store() {
    let Some(postgres) = Postgres::shared() else { return };
    let folder = Folder::with_storefront();
    let key = eventful(&folder);
    folder.ok("backup a.backup");
    let database = postgres.database();
    let url = postgres.url(&database);
    for run in ["restore a.backup", "store check a.backup"] {
        has(&folder.run(&format!("{run} --store {url}")), &["MASTER_KEY", "--master-key-file"]);
    }
    has(&folder.run(&format!("plan storefront --store {url} {key}")), &["No store found"]);
    let bytes = std::fs::read(folder.path("a.backup")).unwrap();
    std::fs::write(folder.path("torn.backup"), &bytes[..bytes.len() - 100]).unwrap();
    has(&folder.run(&format!("restore torn.backup --store {url} {key}")), &["STORE_CORRUPT"]);
    folder.ok(&format!("restore a.backup --store {url} {key}"));
    let again = folder.run(&format!("restore a.backup --store {url} {key}"));
    has(&again, &["STORE_FORMAT", "empty database"]);
    // As one that was killed before its end leaves it.
    postgres.psql(&database, "UPDATE edgewright.head SET complete = false").unwrap();
    for run in ["restore a.backup", "backup b.backup", "store check", "keys create --role viewer"] {
        let run = folder.run(&format!("{run} --store {url} {key}"));
        assert_ne!(run.code, 0);
        has(&run, &["was interrupted", "DROP SCHEMA edgewright CASCADE"]);
    }
    postgres.psql(&database, "DROP SCHEMA edgewright CASCADE").unwrap();
    folder.ok(&format!("restore a.backup --store {url} {key}"));
    are_same(&folder, &[folder.path("store").display().to_string(), url]);
}

#[test]
fn a_backup_during_commits_is_one_revision() {
    let Some(postgres) = Postgres::shared() else { return };
    let (folder, database) = (Folder::new(), postgres.database());
    let store = postgres.open(&database).unwrap();
    let key = format!("--master-key-file {}", postgres.master_key().display());
    let ends = AtomicBool::new(false);
    let revisions = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut number, began) = (1, Instant::now());
            while !ends.load(Ordering::SeqCst) && began.elapsed() < Duration::from_secs(60) {
                commit(&store, vec![small(number)]).unwrap();
                number += 1;
            }
        });
        let revisions = (0..3).map(|number| {
            until("commits", || (store.snapshot().revision > 5 * number).then_some(()));
            let (mut backup, mut bytes) = (store.backup().unwrap(), Vec::new());
            while let Some(piece) = backup.next_piece().unwrap() {
                bytes.extend_from_slice(&piece);
            }
            assert_eq!(bytes.len() as u64, backup.length());
            std::fs::write(folder.path(&format!("{number}.backup")), bytes).unwrap();
            backup.revision()
        });
        let revisions: Vec<u64> = revisions.collect();
        ends.store(true, Ordering::SeqCst);
        revisions
    });
    let source = MasterKeySource::File(postgres.master_key());
    for (number, revision) in revisions.into_iter().enumerate() {
        folder.ok(&format!("restore {number}.backup --store restored{number} {key}"));
        let path = folder.path(&format!("restored{number}"));
        let restored = Store::open_encrypted_to_read(path, &source).unwrap();
        let state = restored.snapshot();
        assert_eq!((state.revision, state.len() as u64), (revision, revision));
        assert_eq!(restored.verify().unwrap().records, revision);
    }
}

#[test]
fn a_server_backs_up_its_database() {
    let Some(postgres) = Postgres::shared() else { return };
    let (folder, database) = (Folder::with_storefront(), postgres.database());
    let options = postgres.options(&database);
    folder.ok(&format!("reconcile storefront {options}"));
    let serve = folder.serve(&options);
    has(&client(&folder, &serve, "backup a.backup"), &["Backed up revision 2"]);
    // One that follows makes it, too.
    let other = Folder::new();
    let follower = other.serve(&options);
    has(&run_with_token(&folder, &follower, &serve.token, "backup b.backup"), &["Backed up revision 2"]);
    for name in ["a.backup", "b.backup"] {
        has(&folder.ok(&format!("store check {name} {options}")), &["revision 2", "No problems found."]);
    }
}
