//! The states of earlier revisions, restored from what undoes the later ones (D79).

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use edgewright::{
    Snapshot, Store,
    resources::{Entry, Kind, Operation},
    storage::{MEMORY, MasterKeySource, Retention, RevisionError},
};

use super::{commit, deleted, described, edge, small};

/// Everything that a state has, also in the order of lists and of what was deleted.
fn told(state: &Snapshot) -> Vec<String> {
    let entry = |entry: &Arc<Entry>| {
        format!("{} {:?} {} {} {:?}", entry.key, entry.spec(), entry.order, entry.created_at, entry.claim)
    };
    let listed = state.newest_first(Kind::IpRestriction, None, u64::MAX).map(|it| it.key.to_string());
    let gone = state.tombstones().map(|(key, it)| format!("{key} {it:?}"));
    let end = format!("revision {} next {}", state.revision, state.next_order());
    state.iter().map(entry).chain(listed).chain(gone).chain([end]).collect()
}

/// Creates, changes, deletes, and creates what was deleted again.
fn commits() -> Vec<Vec<Operation>> {
    vec![
        vec![small(1), small(2)],
        edge(1, 3),
        vec![described(1, "second")],
        vec![deleted(1), small(3)],
        vec![small(1)],
        vec![described(1, "third"), deleted(2)],
        vec![deleted(1)],
    ]
}

fn grown(store: &Store) -> BTreeMap<u64, Vec<String>> {
    let mut states = BTreeMap::from([(store.snapshot().revision, told(&store.snapshot()))]);
    for operations in commits() {
        let state = commit(store, operations).unwrap();
        states.insert(state.revision, told(&state));
    }
    states
}

fn has_all(store: &Store, states: &BTreeMap<u64, Vec<String>>) {
    // Newest first, so that no earlier state is kept in memory when it is asked for.
    for (revision, expected) in states.iter().rev() {
        assert_eq!(told(&store.snapshot_at(*revision).unwrap()), *expected, "revision {revision}");
    }
}

#[test]
fn every_revision_is_restored_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    for address in [folder.path().join("store"), MEMORY.into()] {
        let store = Store::open(&address).unwrap();
        let states = grown(&store);
        assert_eq!(states.len(), commits().len() + 1);
        has_all(&store, &states);
        let current = store.snapshot().revision;
        let future = store.snapshot_at(current + 1);
        assert!(matches!(future, Err(RevisionError::Future { current: at, .. }) if at == current));
        drop(store);
        if address != Path::new(MEMORY) {
            has_all(&Store::open(&address).unwrap(), &states);
            has_all(&Store::open_to_read(&address).unwrap(), &states);
        }
    }
}

#[test]
fn a_checkpoint_keeps_earlier_states_and_the_retention_of_records_ends_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let retention = |records| Retention { records, ..Retention::default() };
    let open = |records| Store::open_encrypted(&path, retention(records), &MasterKeySource::Beside).unwrap();
    let store = open(u64::MAX);
    let mut states = grown(&store);
    let state = commit(&store, edge(7, 10)).unwrap();
    states.insert(state.revision, told(&state));
    // Closing a store writes a checkpoint.
    drop((state, store));
    assert!(path.join("state.0000000002").exists(), "no checkpoint was written");
    let store = open(u64::MAX);
    has_all(&store, &states);
    drop(store);
    // The state before the newest one and the log after it are always kept.
    for number in [8, 9] {
        let store = open(1);
        commit(&store, edge(number, 20)).unwrap();
    }
    assert!(!path.join("log.0000000001").exists(), "no checkpoint was written");
    let store = open(1);
    let Err(RevisionError::Gone { revision: 1, oldest }) = store.snapshot_at(1) else { panic!("revision 1 is kept") };
    assert!(oldest > 1 && store.snapshot_at(oldest).is_ok());
    assert!(matches!(store.snapshot_at(oldest - 1), Err(RevisionError::Gone { .. })));
}

#[test]
fn the_files_of_the_history_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::open(&path).unwrap();
    commit(&store, edge(1, 10)).unwrap();
    drop(store);
    // It has former states, with their secrets.
    let mode = fs::metadata(path.join("log.0000000001")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
