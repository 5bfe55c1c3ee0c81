//! An address that leads to a standby, as it can during a failover.

use edgewright::Code;

use super::failed;
use crate::store::{commit, small};
use crate::support::{
    postgres::Postgres,
    program::{Folder, has},
};

#[test]
fn a_writer_waits_for_its_primary_at_a_standby_that_knows_an_earlier_one() {
    let Some(postgres) = Postgres::start() else { return };
    let database = postgres.database();
    commit(&postgres.open(&database).unwrap(), vec![small(1)]).unwrap();
    postgres.keep_standby();
    let store = postgres.open(&database).unwrap();
    commit(&store, vec![small(2)]).unwrap();
    postgres.swap_with_standby();
    for error in [failed(commit(&store, vec![small(3)])), postgres.open(&database).err().unwrap()] {
        assert_eq!(error.code, Code::StoreUnavailable, "{error}");
        assert!(error.message.contains("accepts no writes"), "{error}");
    }
    assert!(store.readiness().is_err() && store.health().is_ok());
    assert_eq!(postgres.open_to_read(&database).unwrap().snapshot().revision, 1);
    postgres.swap_with_standby();
    commit(&store, vec![small(3)]).unwrap();
    assert_eq!((store.snapshot().revision, store.verify().unwrap().records), (3, 3));
}

#[test]
fn only_a_standby_is_copied_without_the_lock_of_a_writer() {
    let Some(postgres) = Postgres::start() else { return };
    let (folder, database) = (Folder::new(), postgres.database());
    let (url, key) = (postgres.url(&database), postgres.master_key());
    let copy = |url: &str, to: &str| format!("store copy {url} {to} --master-key-file {}", key.display());
    commit(&postgres.open(&database).unwrap(), vec![small(1)]).unwrap();
    postgres.keep_standby();
    postgres.swap_with_standby();
    has(&folder.ok(&copy(&url, "standby")), &["Copied revision 1"]);
    postgres.swap_with_standby();
    let store = postgres.open(&database).unwrap();
    let alter = |what: &str| postgres.psql("postgres", &format!("ALTER DATABASE {database} {what}")).unwrap();
    // From now on, who asks for a host that allows writes is not connected, and who reads is.
    alter("SET default_transaction_read_only = on");
    let (base, place) = url.split_once("?host=").unwrap();
    let (host, port) = place.split_once("&port=").unwrap();
    let several = format!("{base}?host={host},{host}&port={port}");
    for url in [&several, &url] {
        let refused = folder.run(&copy(url, "copied"));
        assert_ne!(refused.code, 0, "{}", refused.all());
        has(&refused, &["STORE_UNAVAILABLE"]);
        assert!(!folder.path("copied").exists());
    }
    drop(store);
    alter("RESET default_transaction_read_only");
    has(&folder.ok(&copy(&url, "copied")), &["Copied revision 1"]);
}
