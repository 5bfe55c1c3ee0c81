//! The rows of the state, which a server serves: only commits write them.

use edgewright::Code;

use crate::store::{commit, content, deleted, described, small};
use crate::support::{
    postgres::Postgres,
    program::{Folder, has},
};

#[test]
fn a_row_that_no_commit_has_written_is_refused_by_everything_that_reads_the_state() {
    let Some(postgres) = Postgres::shared() else { return };
    let (folder, database) = (Folder::new(), postgres.database());
    let options = postgres.options(&database);
    let store = postgres.open(&database).unwrap();
    commit(&store, vec![small(1), small(2), small(3)]).unwrap();
    let before = content(&store);
    drop(store);
    postgres.psql(&database, "CREATE TABLE kept AS SELECT * FROM edgewright.state").unwrap();
    let first = "key = (SELECT key FROM kept ORDER BY key LIMIT 1)";
    let last = "SELECT value, digest FROM kept ORDER BY key DESC LIMIT 1";
    let (changed, moved) = ("record `", "added to or removed from its state");
    for (change, said) in [
        (format!("UPDATE edgewright.state SET value = set_byte(value, 9, 0) WHERE {first}"), changed),
        (format!("UPDATE edgewright.state SET (value, digest) = ({last})"), changed),
        (format!("UPDATE edgewright.state SET digest = digest + 1 WHERE {first}"), changed),
        (
            format!(
                "INSERT INTO edgewright.state (key, position, value, digest) \
                 SELECT key || 'a', position, value, digest FROM kept WHERE {first}"
            ),
            changed,
        ),
        (format!("DELETE FROM edgewright.state WHERE {first}"), moved),
        ("UPDATE edgewright.head SET state_digest = state_digest + 1".to_owned(), moved),
    ] {
        let keep = "CREATE TABLE kept_sum AS SELECT state_digest FROM edgewright.head";
        postgres.psql(&database, &format!("{keep}; {change}")).unwrap();
        for error in [postgres.open(&database).err().unwrap(), postgres.open_to_read(&database).err().unwrap()] {
            assert_eq!(error.code, Code::StoreCorrupt, "{change}");
            assert!(error.message.contains(said), "{change}: {error}");
        }
        for run in ["store check", "backup a.backup", "export", "history"] {
            let run = folder.run(&format!("{run} {options}"));
            assert_ne!(run.code, 0, "{change}");
            has(&run, &["STORE_CORRUPT", "is damaged", "restore a backup into an empty database"]);
        }
        let (url, key) = (postgres.url(&database), postgres.master_key());
        has(&folder.run(&format!("store copy {url} copied --master-key-file {}", key.display())), &["STORE_CORRUPT"]);
        let served = folder.try_serve(&format!("{options} --security-log security.log"), &[]).err().unwrap();
        has(&served, &["STORE_CORRUPT", "is damaged"]);
        let back = "DELETE FROM edgewright.state; INSERT INTO edgewright.state SELECT * FROM kept; \
                    UPDATE edgewright.head SET state_digest = (SELECT state_digest FROM kept_sum); DROP TABLE kept_sum";
        postgres.psql(&database, back).unwrap();
        assert_eq!(content(&postgres.open_to_read(&database).unwrap()), before);
        folder.ok(&format!("store check {options}"));
    }
}

#[test]
fn the_sum_of_the_state_follows_every_write() {
    let Some(postgres) = Postgres::shared() else { return };
    let (folder, database) = (Folder::new(), postgres.database());
    let options = postgres.options(&database);
    for number in 1..=3 {
        let store = postgres.open(&database).unwrap();
        commit(&store, vec![small(2 * number), small(2 * number + 1)]).unwrap();
        commit(&store, vec![described(2 * number, "changed"), deleted(2 * number + 1)]).unwrap();
        commit(&store, vec![described(2 * number, "changed again")]).unwrap();
        let before = content(&store);
        drop(store);
        // Seals the state again, and forgets the deleted ones with the history.
        folder.ok(&format!("store rekey --forget-secrets --history-records 2 {options}"));
        folder.ok(&format!("store check {options}"));
        assert_eq!(content(&postgres.open_to_read(&database).unwrap()), before);
    }
    let sum = "SELECT state_digest = (SELECT sum(digest) FROM edgewright.state) FROM edgewright.head";
    assert_eq!(postgres.psql(&database, sum).unwrap(), "t");
    let copy = postgres.database();
    let (from, to) = (postgres.url(&database), postgres.url(&copy));
    folder.ok(&format!("store copy {from} {to} --master-key-file {}", postgres.master_key().display()));
    assert_eq!(postgres.psql(&copy, sum).unwrap(), "t");
    assert_eq!(content(&postgres.open(&copy).unwrap()), content(&postgres.open(&database).unwrap()));
}
