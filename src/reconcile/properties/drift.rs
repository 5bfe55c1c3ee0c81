//! Laws of drift, on generated worlds that others have changed.

use super::*;
use crate::model::DriftState;
use crate::reconcile::PlanResult;
use crate::reconcile::sync_loop::plan_drift::{find_drift, hold};

/// Plans a world, and tells drift.
fn told(store: &Store, world: &Estate) -> PlanResult {
    let snapshot = store.snapshot();
    let planned = PlanResult::without_manifests(&snapshot, planned(&snapshot, world));
    assert!(planned.plan.as_ref().is_some_and(|plan| plan.refusals.is_empty()));
    let mut planned = PlanResult { desired: Arc::new(world.clone()), ..planned };
    find_drift(store, SOURCE, &snapshot, &mut planned, None).unwrap();
    planned
}

fn apply_as(store: &Store, planned: &PlanResult, author: Author) {
    let plan = planned.plan.as_ref().unwrap();
    apply_plan(store, plan, planned.tried.as_ref(), Places::new(), author).unwrap();
}

/// Changes resources of the source as the API would, each by a revision of its own: towards another world, as far as rules
/// allow it.
fn meddle(store: &Store, world: &Estate) {
    let snapshot = store.snapshot();
    for operation in planned(&snapshot, world).operations() {
        let is_by_hand = match &operation {
            Operation::Claim { .. } | Operation::Create { .. } => false,
            Operation::Patch { key, .. } | Operation::Delete { key, .. } => key.kind != Kind::ApiKey,
            _ => true,
        };
        let is_owned = snapshot.get(operation.key()).is_some_and(|entry| entry.is_owned_by(SOURCE));
        if is_by_hand && is_owned {
            let attempt = Attempt { at: time(1), ..Attempt::new(Author::Local) };
            let _ = store.commit_with(attempt, |_| Ok::<_, ()>(vec![operation]));
        }
    }
}

/// A field at the top of a resource, or null.
fn field(snapshot: &Snapshot, key: &Key, name: &str) -> Value {
    let spec = snapshot.get(key).map(|entry| revealed(entry.spec()));
    spec.and_then(|spec| spec.get(name).cloned()).unwrap_or_default()
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn what_only_others_have_changed_is_drift_and_is_left_or_put_back((a, b) in changing_worlds()) {
        let store = Store::open("memory:").unwrap();
        apply_as(&store, &told(&store, &a), Author::source(SOURCE, None));
        meddle(&store, &b);
        let now = store.snapshot();
        let owned = |change: &&crate::plan::Change| {
            change.key.kind != Kind::Owner && now.get(&change.key).is_none_or(|entry| entry.is_owned_by(SOURCE))
        };
        let mut planned = told(&store, &a);
        for change in planned.plan.as_ref().unwrap().changes.iter().filter(owned) {
            let drift = change.drift.as_ref();
            prop_assert_eq!(drift.map(|drift| drift.state), Some(DriftState::Drift), "{}: {:?}", change.key, drift);
        }
        let whole = told(&store, &a);
        let held = hold(&now, &mut planned).unwrap();
        prop_assert_eq!(held.is_empty(), !whole.plan.as_ref().unwrap().changes.iter().any(|it| it.drift.is_some()));
        for change in planned.plan.as_ref().unwrap().changes.iter() {
            prop_assert!(change.drift.is_none(), "{} is left as it is", change.key);
        }
        apply_as(&store, &whole, Author::source(SOURCE, None));
        holds_exactly(&store.snapshot(), &a)?;
    }

    #[test]
    fn a_plan_without_drift_changes_no_drifted_field((a, b) in changing_worlds(), c in worlds()) {
        let store = Store::open("memory:").unwrap();
        apply_as(&store, &told(&store, &a), Author::source(SOURCE, None));
        prop_assert!(told(&store, &c).plan.unwrap().changes.iter().all(|it| it.drift.is_none()), "all is pending");
        meddle(&store, &b);
        let before = store.snapshot();
        let mut planned = told(&store, &c);
        let whole = planned.plan.clone().unwrap();
        hold(&before, &mut planned).unwrap();
        if !planned.plan.as_ref().unwrap().is_empty() {
            apply_as(&store, &planned, Author::source(SOURCE, None));
        }
        let after = store.snapshot();
        for change in &whole.changes {
            let Some(drift) = &change.drift else { continue };
            if drift.is_deletion() && drift.state == DriftState::Drift {
                prop_assert!(after.get(&change.key).is_none(), "{} is created again", change.key);
            }
            // A reference to a resource that is replaced is not left.
            let refers_to_gone = |entry: &Arc<Entry>| {
                entry.lazy_spec.references().iter().any(|target| after.get(target).is_none())
            };
            let is_put_back = before.get(&change.key).is_some_and(refers_to_gone);
            for name in drift.units().into_iter().filter(|name| !is_put_back || *name != "mutual_tls") {
                let (then, now) = (field(&before, &change.key, name), field(&after, &change.key, name));
                prop_assert_eq!(then, now, "{} of {}", name, change.key);
            }
        }
    }
}
