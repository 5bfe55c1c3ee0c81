//! Tests of local copies, of stores in folders in the place of those in a database.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::model::kind::ip_restriction::Traffic;
use crate::model::{Author, Id, IpRestriction, Key, Kind, Operation, Secret};
use crate::store::disk::files;
use crate::store::{Attempt, CommitError, MasterChange};

const DATABASE: &str = "postgres://edge@db/edge";
const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

fn source() -> MasterKeySource {
    MasterKeySource::Value(Secret::new(KEY), "a test".into())
}

/// A store that takes the place of one in a database.
fn store_in(outer: &Path, name: &str) -> Store {
    Store::open_encrypted(outer.join(name), Retention::default(), &source()).unwrap()
}

fn copy_in(outer: &Path, of: &str) -> LocalCopy {
    LocalCopy::new(&outer.join("copy"), Path::new(of), source(), Retention::default()).unwrap()
}

fn catch_up(copy: &LocalCopy, store: &Store) {
    let feed = Arc::clone(store.copy.get_or_init(Arc::default));
    copy.catch_up(store, &feed, &|| false).unwrap();
    assert_eq!(store.copy_lag(), 0);
}

fn commit(store: &Store, operation: Operation) -> Result<(), CommitError> {
    store.commit(Author::Local, vec![operation]).map(drop)
}

fn key(name: &str) -> Key {
    Key::new(Kind::IpRestriction, Id::new(&format!("ipx_{name}")))
}

/// Creates a resource with something to encrypt.
fn create(name: &str) -> Operation {
    let spec = IpRestriction { r#type: Some(Traffic::Api), ..IpRestriction::default() };
    Operation::Create { key: key(name), spec: Arc::new(spec), claim: None, token: Some(Secret::new("hunter2")) }
}

fn delete(name: &str) -> Operation {
    Operation::Delete { key: key(name), with_children: false }
}

fn content(store: &Store) -> Vec<String> {
    let (state, verified) = (store.snapshot(), store.verify().unwrap());
    let token = |secret: &Secret| secret.expose().to_owned();
    let entries = state.iter().map(|it| format!("{} {:?} {:?}", it.key, it.spec(), it.token.as_ref().map(token)));
    entries.chain([format!("revision {} {verified:?}", state.revision)]).collect()
}

#[test]
fn a_copy_has_what_its_store_has_and_stands_in_for_it() {
    let outer = tempfile::tempdir().unwrap();
    let (outer, copy) = (outer.path(), copy_in(outer.path(), DATABASE));
    let store = store_in(outer, "store");
    assert!(copy.stand_in().unwrap().is_none());
    catch_up(&copy, &store);
    for name in ["a", "b"] {
        commit(&store, create(name)).unwrap();
    }
    assert_eq!(store.copy_lag(), 2);
    catch_up(&copy, &store);
    commit(&store, delete("a")).unwrap();
    // A record without a revision.
    assert!(commit(&store, delete("a")).is_err());
    catch_up(&copy, &store);
    drop(copy);
    let copy = copy_in(outer, DATABASE);
    let stand_in = copy.stand_in().unwrap().unwrap();
    assert_eq!(content(&stand_in), content(&store));
    assert_eq!(stand_in.root_secret(), store.root_secret());
    assert_eq!(stand_in.snapshot_at(1).unwrap().len(), 1);
    assert!(stand_in.stands_in_since().is_some() && stand_in.followed_writer().is_some());
    let refused = commit(&stand_in, create("c"));
    assert!(matches!(refused, Err(CommitError::Failed(error)) if error.code == Code::StoreUnavailable));
    // The same copy goes on when the database is back.
    commit(&store, create("d")).unwrap();
    catch_up(&copy, &store);
    drop((stand_in, copy));
    let folder = outer.join("copy");
    let refused = Store::open_encrypted(&folder, Retention::default(), &source()).err().unwrap();
    assert!(refused.message.contains("is a local copy of postgres://edge@db/edge"), "{refused}");
    let read = Store::open_encrypted_to_read(&folder, &source()).unwrap();
    assert_eq!(content(&read), content(&store));
    assert!(copy_in(outer, "postgres://edge@other/edge").stand_in().unwrap().is_none());
}

#[test]
fn a_copy_that_is_behind_goes_on_and_one_of_another_history_is_replaced() {
    let outer = tempfile::tempdir().unwrap();
    let outer = outer.path();
    let copied = || content(&Store::open_encrypted_to_read(outer.join("copy"), &source()).unwrap());
    let made = || std::fs::metadata(outer.join("copy/log.0000000001")).unwrap().created().ok();
    let store = store_in(outer, "store");
    commit(&store, create("a")).unwrap();
    catch_up(&copy_in(outer, DATABASE), &store);
    let first = made();
    drop(store);
    files::copy_folder(&outer.join("store"), &outer.join("earlier")).unwrap();
    let store = store_in(outer, "store");
    commit(&store, create("b")).unwrap();
    drop(store);
    let store = store_in(outer, "store");
    commit(&store, create("c")).unwrap();
    assert!(commit(&store, create("c")).is_err());
    catch_up(&copy_in(outer, DATABASE), &store);
    assert_eq!(copied(), content(&store));
    assert_eq!(made(), first);
    let lost = content(&store);
    // The store as a backup has it, and another one.
    for name in ["earlier", "other"] {
        let store = store_in(outer, name);
        commit(&store, create(name)).unwrap();
        catch_up(&copy_in(outer, DATABASE), &store);
        assert_eq!(copied(), content(&store));
    }
    // Only the first one may be all that is left of what it has.
    let former = Store::open_encrypted_to_read(outer.join("copy/former"), &source()).unwrap();
    assert_eq!(content(&former), lost);
    // What is damaged is made anew, too.
    std::fs::write(outer.join("copy/head"), "x").unwrap();
    assert!(copy_in(outer, DATABASE).stand_in().is_err());
    catch_up(&copy_in(outer, DATABASE), &store);
    assert_eq!(copied(), content(&store));
    let refused = LocalCopy::new(&outer.join("store"), Path::new(DATABASE), source(), Retention::default());
    assert_eq!(refused.err().unwrap().code, Code::StoreFormat);
}

#[test]
fn what_a_store_forgets_is_gone_in_its_copy() {
    let outer = tempfile::tempdir().unwrap();
    let (outer, copy) = (outer.path(), copy_in(outer.path(), DATABASE));
    let store = store_in(outer, "store");
    commit(&store, create("a")).unwrap();
    catch_up(&copy, &store);
    store.rekey(MasterChange::Keep, true).unwrap();
    catch_up(&copy, &store);
    commit(&store, create("b")).unwrap();
    catch_up(&copy, &store);
    drop(copy);
    let stand_in = copy_in(outer, DATABASE).stand_in().unwrap().unwrap();
    let keys = |store: &Store| store.keyring.as_ref().map(|keyring| (keyring.current(), keyring.former().len()));
    assert_eq!(keys(&stand_in), keys(&store));
    assert_eq!(content(&stand_in), content(&store));
}

#[test]
fn a_copy_opens_although_the_process_ends_while_a_key_is_destroyed() {
    let outer = tempfile::tempdir().unwrap();
    let (outer, copy) = (outer.path(), copy_in(outer.path(), DATABASE));
    let store = store_in(outer, "store");
    commit(&store, create("a")).unwrap();
    catch_up(&copy, &store);
    store.rekey(MasterChange::Keep, true).unwrap();
    let engine = copy.engine.lock().clone().unwrap();
    assert_eq!(engine.keyring().follow(store.keyring.as_ref().unwrap()).unwrap().len(), 1);
    drop((engine, copy));
    let copy = copy_in(outer, DATABASE);
    let stand_in = copy.stand_in().unwrap().unwrap();
    assert_eq!(content(&stand_in), content(&store));
    assert!(!stand_in.keyring.as_ref().unwrap().has_destroyed());
    catch_up(&copy, &store);
    assert!(stand_in.keyring.as_ref().unwrap().has_destroyed());
    drop((stand_in, copy));
    assert_eq!(content(&copy_in(outer, DATABASE).stand_in().unwrap().unwrap()), content(&store));
}

#[test]
fn a_copy_is_made_anew_once_the_history_is_scrubbed() {
    let outer = tempfile::tempdir().unwrap();
    let (outer, copy) = (outer.path(), copy_in(outer.path(), DATABASE));
    let secret = "Zirnp3rqEUFId13vm5Ms2LsUY6D";
    let has_secret = || {
        let log = std::fs::read(outer.join("copy/log.0000000001")).unwrap();
        log.windows(secret.len()).any(|part| part == secret.as_bytes())
    };
    let store = store_in(outer, "store");
    let note = format!("made with ew_ak_3MWmcLvtt0vjIX9kLlxuHz95QLB_{secret}");
    let attempt = Attempt { note, ..Attempt::new(Author::Local) };
    store.commit_with(attempt, |_| Ok::<_, String>(vec![create("a")])).unwrap();
    catch_up(&copy, &store);
    assert!(has_secret());
    // As when the copy catches up before the scrub is done, or after one that was interrupted.
    store.note_scrubbed(store.recorded_tokens().unwrap().records, "scrubbed".into()).unwrap();
    let feed = Arc::clone(store.copy.get().unwrap());
    let refused = copy.catch_up(&store, &feed, &|| false).unwrap_err();
    assert!(refused.message.contains("`store scrub` is changing the history"), "{refused}");
    drop(store);
    let store = Store::open_briefly(outer.join("store"), Retention::default(), &source()).unwrap();
    store.scrub(&store.recorded_tokens().unwrap()).unwrap();
    drop(store);
    let store = store_in(outer, "store");
    catch_up(&copy, &store);
    assert!(!has_secret());
    assert!(!outer.join("copy/former").exists());
    drop(copy);
    assert_eq!(content(&copy_in(outer, DATABASE).stand_in().unwrap().unwrap()), content(&store));
}
