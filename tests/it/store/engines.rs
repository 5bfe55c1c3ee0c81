//! One suite for every engine: what a store promises does not depend on where it keeps its log.

use std::sync::Arc;

use edgewright::{
    Store,
    resources::Author,
    storage::{
        Attempt, ChangeEvent, CommitError, Declined, MEMORY, MemoryEngine, Outcome, Query, Record, Retention, Revision,
    },
};

use super::{commit, content, deleted, described, edge, small, small_key};
use crate::support::postgres::Postgres;

/// Runs a case on every engine, each time on an empty store. Skips PostgreSQL where it is not installed.
fn on_every_engine(case: impl Fn(&Store)) {
    let folder = tempfile::tempdir().unwrap();
    case(&Store::open(folder.path().join("store")).unwrap());
    case(&Store::open(MEMORY).unwrap());
    if let Some(postgres) = Postgres::shared() {
        case(&postgres.open(&postgres.database()).unwrap());
    }
}

fn history(store: &Store) -> Vec<Record> {
    store.history(&Query::All, u64::MAX, 100).unwrap()
}

#[test]
fn a_commit_is_visible_and_in_the_history() {
    on_every_engine(|store| {
        assert_eq!(commit(store, vec![small(1)]).unwrap().revision, 1);
        commit(store, vec![described(1, "other")]).unwrap();
        commit(store, vec![deleted(1)]).unwrap();
        assert_eq!((store.snapshot().revision, store.snapshot().len()), (3, 0));
        let records = history(store);
        let told: Vec<_> = records.iter().map(|it| (it.position, it.revision, it.outcome)).collect();
        let applied = Outcome::Applied;
        assert_eq!(told, [(3, Some(3), applied), (2, Some(2), applied), (1, Some(1), applied)]);
        let patched = &records[1].resources[0];
        assert_eq!(patched.path, small_key(1).path());
        assert_eq!(patched.before.as_ref().unwrap()["description"], "number 1");
        assert_eq!(patched.after.as_ref().unwrap()["description"], "other");
        assert_eq!(patched.after.as_ref().unwrap().as_object().unwrap().len(), 1, "only what differs");
        assert!(records[0].resources[0].after.is_none() && records[2].resources[0].before.is_none());
    });
}

#[test]
fn a_refused_commit_changes_nothing_and_is_in_the_history() {
    on_every_engine(|store| {
        commit(store, vec![small(1)]).unwrap();
        let before = content(store);
        assert!(matches!(commit(store, vec![small(2), small(1)]), Err(CommitError::Refused(_))));
        assert_eq!(content(store), before);
        let last = history(store).remove(0);
        assert_eq!((last.outcome, last.revision, last.calls.len()), (Outcome::Refused, None, 2));
        assert!(last.message.contains("exist"), "{}", last.message);
        store.note(Attempt::new(Author::source("docs", None)), Outcome::Failed, "the folder is empty".into()).unwrap();
        assert_eq!(history(store)[0].message, "the folder is empty");
        assert_eq!(store.snapshot().revision, 1);
        assert!(store.history(&Query::Reconciliations, u64::MAX, 9).unwrap().is_empty(), "it applied nothing");
    });
}

#[test]
fn operations_can_be_computed_on_the_revision_they_apply_to() {
    on_every_engine(|store| {
        commit(store, vec![small(1)]).unwrap();
        let counted =
            store.commit_with(Attempt::new(Author::Local), |current| Ok::<_, ()>(vec![small(current.len() + 1)]));
        assert_eq!(counted.unwrap().len(), 2);
        let declined = store.commit_with(Attempt::new(Author::Local), |_| Err("no"));
        assert!(matches!(declined, Err(Declined::Declined("no"))));
        assert_eq!(store.snapshot().revision, 2);
    });
}

#[test]
fn history_is_found_by_revision_source_and_resource() {
    on_every_engine(|store| {
        commit(store, vec![small(1)]).unwrap();
        let author = Author::source("docs", None);
        store.commit(author, vec![small(2)]).unwrap();
        commit(store, vec![described(1, "other")]).unwrap();
        let positions = |query: &Query, before, limit| -> Vec<u64> {
            store.history(query, before, limit).unwrap().iter().map(|it| it.position).collect()
        };
        assert_eq!(positions(&Query::All, u64::MAX, 2), [3, 2]);
        assert_eq!(positions(&Query::All, 3, 9), [2, 1]);
        assert_eq!(positions(&Query::Reconciliations, u64::MAX, 9), [2]);
        let of_one = store.history_of(&small_key(1).path(), u64::MAX, 9).unwrap();
        assert_eq!(of_one.iter().map(|it| it.position).collect::<Vec<_>>(), [3, 1]);
        assert_eq!(store.record(3).unwrap().unwrap().position, 3);
        assert!(store.record(4).unwrap().is_none());
        assert_eq!(store.verify().unwrap().records, 3);
    });
}

#[test]
fn a_subscriber_follows_every_revision() {
    on_every_engine(|store| {
        commit(store, edge(1, 3)).unwrap();
        let revisions = store.subscribe();
        commit(store, vec![small(1), small(2)]).unwrap();
        commit(store, vec![deleted(1)]).unwrap();
        let (first, second) = (revisions.recv().unwrap(), revisions.recv().unwrap());
        assert_eq!((first.snapshot.revision, second.snapshot.revision), (2, 3));
        let told =
            |revision: &Revision| revision.changed.iter().map(|it| (it.key.clone(), it.event)).collect::<Vec<_>>();
        let created = |number| (small_key(number), ChangeEvent::Created);
        assert_eq!(told(&first), [created(1), created(2)]);
        assert_eq!(told(&second), [(small_key(1), ChangeEvent::Deleted)]);
        assert_eq!(second.author, Author::Local);
    });
}

#[test]
fn a_second_store_on_the_same_engine_reads_what_the_first_wrote() {
    let engine = Arc::new(MemoryEngine::default());
    let first = Store::with_engine(engine.clone(), Retention::default()).unwrap();
    commit(&first, edge(1, 3)).unwrap();
    commit(&first, vec![small(1)]).unwrap();
    commit(&first, vec![deleted(1)]).unwrap();
    let second = Store::with_engine(engine, Retention::default()).unwrap();
    assert_eq!(content(&second), content(&first));
    assert_eq!(second.root_secret(), first.root_secret());
}

#[test]
fn an_address_that_no_engine_knows_is_an_error() {
    let error = Store::open("mysql://db.example.com/edge").err().unwrap();
    assert!(error.message.contains("mysql://"), "{}", error.message);
}
