//! Laws of rollbacks and of earlier revisions, on generated worlds.

use super::*;
use crate::reconcile::ApplyError;
use crate::reconcile::run::{planned_change::PlannedChange, rollback::Rollback};

/// The part of a resource that a rollback brings back. Specs are compared as plans compare them: by what they mean.
#[derive(Debug)]
struct Essence(Key, Arc<dyn AnyResource>, Option<Arc<Claim>>);

impl PartialEq for Essence {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 && self.1.same(other.1.as_ref()) && self.2 == other.2
    }
}

/// The content of a revision without what a rollback leaves as it is, and without times and places in lists: a resource
/// that is created again is a new one.
fn essence(snapshot: &Snapshot) -> Vec<Essence> {
    let of_people = |key: &Key| matches!(key.kind, Kind::Owner | Kind::ApiKey);
    let entries = snapshot.iter().filter(|entry| !of_people(&entry.key));
    entries.map(|entry| Essence(entry.key.clone(), Arc::clone(entry.spec()), entry.claim.clone())).collect()
}

/// Applies worlds one after another. Returns the state after each.
fn history_of(store: &Store, worlds: &[&Estate]) -> Vec<Arc<Snapshot>> {
    let applied = worlds.iter().map(|world| {
        let plan = planned(&store.snapshot(), world);
        apply_plan(store, &plan, None, Places::new(), Author::source(SOURCE, None)).unwrap();
        store.snapshot()
    });
    applied.collect()
}

fn rolled_back(store: &Store, to: u64, source: Option<&str>) -> (Plan, Arc<Snapshot>) {
    let target = store.snapshot_at(to).unwrap();
    let source = source.map(str::to_owned);
    let author = Author::rollback_to(to, source.clone());
    let rollback = Rollback { target, source, budget: DeletionBudget::Percent(100.0) };
    let accept = |_: &Snapshot, planned: crate::reconcile::PlanResult| Ok::<_, ApplyError>(planned);
    let (planned, _) = rollback.apply(store, &author, accept).unwrap();
    let plan = planned.plan.unwrap();
    assert!(plan.refusals.is_empty(), "{:?}", plan.refusals);
    (plan, store.snapshot())
}

fn tombstones(snapshot: &Snapshot) -> Vec<String> {
    snapshot.tombstones().map(|(key, tombstone)| format!("{key} {tombstone:?}")).collect()
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn every_revision_is_restored_and_rolled_back_to_exactly(
        (a, b) in changing_worlds(),
        c in worlds(),
        order in Just(vec![0_usize, 1, 2, 3, 4]).prop_shuffle(),
        one_source in any::<bool>(),
    ) {
        let store = Store::open("memory:").unwrap();
        let states = history_of(&store, &[&a, &b, &c, &Estate::new(), &b]);
        for at in order {
            let then = &states[at];
            let restored = store.snapshot_at(then.revision).unwrap();
            prop_assert_eq!(state(&restored), state(then));
            prop_assert_eq!(found_by(&restored), found_by(then));
            prop_assert_eq!(tombstones(&restored), tombstones(then));
            prop_assert_eq!((restored.revision, restored.next_order()), (then.revision, then.next_order()));
            let (plan, now) = rolled_back(&store, then.revision, one_source.then_some(SOURCE).filter(|_| !essence(then).is_empty()));
            prop_assert_eq!(essence(&now), essence(then));
            every_reference_resolves(&now)?;
            tells_no_secret(&shown(&plan))?;
            let (again, _) = rolled_back(&store, then.revision, None);
            prop_assert!(again.is_empty(), "{}", shown(&again));
        }
        for record in recent(&store, 100) {
            tells_no_secret(&String::from_utf8(record.to_bytes().unwrap()).unwrap())?;
        }
        store.verify().unwrap();
    }

    #[test]
    fn a_rollback_leaves_the_manifests_of_before_and_no_others((a, b) in changing_worlds()) {
        let store = Store::open("memory:").unwrap();
        let states = history_of(&store, &[&a, &b]);
        prop_assume!(essence(&states[0]) != essence(&states[1]));
        let (_, now) = rolled_back(&store, states[0].revision, None);
        let after = |world: &Estate| applied(&planned(&now, world), &now, time(60));
        prop_assert!(store.is_rejected(&now, SOURCE, None, None, Some(&after(&b))).unwrap());
        prop_assert!(!store.is_rejected(&now, SOURCE, None, None, Some(&after(&a))).unwrap());
        prop_assert!(!store.is_rejected(&now, "another", None, None, Some(&after(&b))).unwrap());
        history_of(&store, &[&b]);
        let applied = store.snapshot();
        prop_assert!(!store.is_rejected(&applied, SOURCE, None, None, Some(&applied)).unwrap());
        let (_, now) = rolled_back(&store, now.revision, None);
        prop_assert_eq!(essence(&now), essence(&states[0]));
    }
}
