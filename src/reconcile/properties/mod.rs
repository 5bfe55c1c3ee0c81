//! Property tests of planning and committing, on generated desired states with resources of every kind.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod drift;
mod incremental;
mod lint_memo;
mod plan_cache;
mod rollback;
mod specs;
mod worlds;

use std::{path::Path, sync::Arc, thread, time::Duration};

use jiff::Timestamp;
use proptest::{prelude::*, test_runner::FileFailurePersistence};
use serde_json::{Value, json};

use super::{Options, run::apply::apply_plan};
use crate::manifest::tree::Disk;
use crate::model::secrets::text::Text;
use crate::model::{
    AnyResource, ApiKey, Author, CertificateAuthority, Claim, Code, Desired, Entry, EventSource, Fault, HttpsEdge, Id,
    Key, Kind, MASK, Operation, Secret, Secrets, Snapshot,
};
use crate::plan::format::text::plan_text;
use crate::plan::{DeletionBudget, DigestProtection, Plan, PlanConditions, RedactedPlan, SavedPlan, diff};
use crate::store::{Attempt, Places, Query, Record, Store, clock};
use crate::syntax::yaml::Tape;
use specs::{AUTHORITIES, AUTHORITY_PEMS, MARKER, PRIVATE_KEYS, Spec, any_spec, host_and_two_modules, two_of_a_kind};
use worlds::{Estate, SOURCE, changing_worlds, some_fields, worlds};

type Law = Result<(), TestCaseError>;

fn time(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn planned(snapshot: &Snapshot, world: &Estate) -> Plan {
    let plan = diff(snapshot, world, SOURCE, true, DeletionBudget::Percent(100.0), None, None);
    assert!(plan.refusals.is_empty(), "{:?}", plan.refusals);
    plan
}

fn applied(plan: &Plan, to: &Snapshot, at: Timestamp) -> Snapshot {
    to.apply(&plan.operations(), at).unwrap().0
}

/// Returns the state after applying a world to an empty store.
fn reached(world: &Estate) -> Snapshot {
    let nothing = Snapshot::default();
    applied(&planned(&nothing, world), &nothing, time(0))
}

/// Returns the stored form of a declared Spec: a key without an owner belongs to its source's bot.
fn settled(wanted: &Desired) -> Spec {
    match wanted.spec_as::<ApiKey>() {
        Some(key) if key.owner_id.is_empty() => {
            let owner_id = Id::derived("bot_", [SOURCE.as_bytes()]).to_string();
            Arc::new(ApiKey { owner_id, ..key.clone() })
        }
        _ => Arc::clone(&wanted.spec),
    }
}

fn revealed(spec: &Spec) -> Value {
    Value::Object(spec.to_json(Secrets::Revealed).unwrap())
}

/// Returns the content of a revision, including secrets.
fn state(snapshot: &Snapshot) -> Vec<(Key, Value)> {
    let whole = |entry: &Arc<Entry>| {
        let Entry { created_at, order, claim, token, .. } = entry.as_ref();
        let token = token.as_ref().map(|token| token.expose().to_owned());
        let created_at = created_at.to_string();
        let spec = revealed(entry.spec());
        let value = json!({"spec": spec, "created_at": created_at, "order": order, "claim": claim, "token": token});
        (entry.key.clone(), value)
    };
    snapshot.iter().map(whole).collect()
}

/// The look-ups of a snapshot other than by key: users, children in order, and addresses without the parent.
fn found_by(snapshot: &Snapshot) -> Vec<(Key, Vec<Key>, Vec<Key>, bool)> {
    let found = |entry: &Arc<Entry>| {
        let key = entry.key.clone();
        let children = snapshot.children(&key).map(|child| child.key.clone()).collect();
        let users = snapshot.users(&key).cloned().collect();
        let is_listed = snapshot.newest_first(key.kind, key.parent.as_ref(), u64::MAX).any(|other| other.key == key);
        let is_known = key.parent.is_none() || snapshot.find_child(key.kind, &key.id).is_some();
        (key, users, children, is_listed && is_known)
    };
    snapshot.iter().map(found).collect()
}

fn holds_exactly(snapshot: &Snapshot, world: &Estate) -> Law {
    for wanted in world.values() {
        let key = &wanted.key;
        let entry = snapshot.get(key).ok_or_else(|| TestCaseError::fail(format!("{key} is missing")))?;
        let settled = settled(wanted);
        prop_assert!(entry.spec().same(settled.as_ref()), "{key} is {:?}, not {settled:?}", entry.spec());
        prop_assert_eq!(entry.claim.as_ref(), Some(&wanted.claim), "the claim of {}", key);
    }
    for entry in snapshot.iter() {
        let key = &entry.key;
        let known = match key.kind {
            // Owners stay when their keys are deleted, and subscriptions exist as long as their sources.
            Kind::Owner => entry.claim.is_none(),
            Kind::EventSubscription => snapshot.children(key).next().is_some(),
            _ => world.contains_key(key),
        };
        prop_assert!(known, "{key} is left over");
    }
    Ok(())
}

fn what_stays_keeps_its_birth(before: &Snapshot, after: &Snapshot, worlds: [&Estate; 2]) -> Law {
    for key in worlds[0].keys().filter(|key| worlds[1].contains_key(key)) {
        let birth = |snapshot: &Snapshot| snapshot.get(key).map(|entry| (entry.created_at, entry.order));
        prop_assert_eq!(birth(before), birth(after), "{}", key);
    }
    Ok(())
}

fn every_reference_resolves(snapshot: &Snapshot) -> Law {
    for entry in snapshot.iter() {
        let mut named: Vec<Key> = entry.key.parent_key().into_iter().collect();
        entry.spec().references(&mut |reference| named.push(reference.target));
        for target in named {
            prop_assert!(snapshot.get(&target).is_some(), "{} names {target}, which is not there", entry.key);
        }
    }
    Ok(())
}

/// Returns a store with a Spec and everything that it references.
fn planted(spec: &Spec) -> (Snapshot, Key) {
    let create = |key: Key, spec: Spec| Operation::create(key, spec);
    let parent = Id::new("edghts_soil");
    let mut soil = vec![create(Key::new(Kind::HttpsEdge, parent.clone()), Arc::new(HttpsEdge::default()))];
    for (id, pem) in AUTHORITIES.into_iter().zip(AUTHORITY_PEMS) {
        let authority = CertificateAuthority { ca_pem: Text::new(pem), ..CertificateAuthority::default() };
        soil.push(create(Key::new(Kind::CertificateAuthority, Id::new(id)), Arc::new(authority)));
    }
    let (soil, _) = Snapshot::default().apply(&soil, time(0)).unwrap();
    let info = spec.kind().info();
    let source = spec.as_any().downcast_ref::<EventSource>();
    let id = source.map_or_else(|| Id::new(&format!("{}planted", info.prefix)), |source| Id::new(&source.r#type));
    let key = Key { kind: info.kind, parent: info.parent.map(|_| parent), id };
    let claim = Arc::new(Claim::new(SOURCE, "planted"));
    let desired = Desired::new(key.clone(), Arc::clone(spec), claim);
    let plan = diff(&soil, &Estate::from([(key.clone(), desired)]), SOURCE, false, DeletionBudget::Normal, None, None);
    (applied(&plan, &soil, time(1)), key)
}

fn outcome(base: &Snapshot, operations: &[Operation]) -> Result<Vec<(Key, Value)>, Vec<Fault>> {
    base.apply(operations, time(2)).map(|(next, _)| state(&next)).map_err(|refusal| refusal.faults)
}

fn is_read_back(spec: &Spec, content: &Tape) -> Law {
    let (read, faults) = (spec.kind().info().decode)(content.root(), &[], None);
    prop_assert!(faults.is_empty(), "{faults:?}");
    let read = read.unwrap();
    prop_assert_eq!(revealed(&read), revealed(spec));
    prop_assert!(read.same(spec.as_ref()), "{read:?} is not {spec:?}");
    Ok(())
}

fn tells_no_secret(text: &str) -> Law {
    prop_assert!(!text.contains(MARKER), "a secret is in {text}");
    for line in PRIVATE_KEYS.iter().flat_map(|key| key.lines()).filter(|line| !line.is_empty()) {
        prop_assert!(!text.contains(line), "a private key is in {text}");
    }
    Ok(())
}

/// Opens a store that this process has just closed; sled may release its lock a moment later.
fn reopened(path: &Path) -> Store {
    for _ in 0..250 {
        match Store::open(path) {
            Err(error) if error.code == Code::StoreLocked => thread::sleep(Duration::from_millis(20)),
            opened => return opened.unwrap(),
        }
    }
    panic!("{} stays locked", path.display());
}

/// Returns the last records of the history, newest first.
fn recent(store: &Store, limit: usize) -> Vec<Record> {
    store.history(&Query::All, u64::MAX, limit).unwrap()
}

/// Returns the plan as text.
fn shown(plan: &Plan) -> String {
    plan_text(&RedactedPlan::from_plan(plan).unwrap())
}

fn calls(plan: &Plan) -> Vec<String> {
    plan.operations().iter().map(ToString::to_string).collect()
}

/// Returns the calls in a plan's text; the changed lines below them are indented further.
fn shown_calls(plan: &Plan) -> Vec<String> {
    let text = shown(plan);
    let lines = text.lines().filter_map(|line| line.strip_prefix("    ")).filter(|line| !line.starts_with(' '));
    lines.map(String::from).collect()
}

/// Returns the saved form of a plan for a world.
fn saved(store: &Store, plan: &Plan, world: &Estate) -> SavedPlan {
    let protection = DigestProtection::Store(store.root_secret());
    let conditions = PlanConditions { protection, source: SOURCE, commit: None, is_masked: false };
    SavedPlan::new(plan, world.values(), &conditions).unwrap()
}

/// Returns the calls in the document of a saved plan.
fn saved_calls(document: &str) -> Vec<String> {
    let document: Value = serde_json::from_str(document).unwrap();
    let operations = document["operations"].as_array().unwrap();
    operations.iter().map(|operation| operation["call"].as_str().unwrap().to_owned()).collect()
}

/// Counterexamples are kept beside the properties, and tried first.
fn cases(cases: u32) -> ProptestConfig {
    let kept = FileFailurePersistence::Direct("src/reconcile/properties/regressions.txt");
    ProptestConfig { failure_persistence: Some(Box::new(kept)), ..ProptestConfig::with_cases(cases) }
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn what_is_as_desired_needs_no_plan(world in worlds()) {
        let plan = planned(&reached(&world), &world);
        prop_assert!(plan.is_empty(), "{}", shown(&plan));
        prop_assert_eq!(plan.unchanged, world.len());
    }

    #[test]
    fn a_plan_leads_from_any_state_to_any_other_and_then_there_is_nothing_to_do((a, b) in changing_worlds()) {
        let before = reached(&a);
        let plan = planned(&before, &b);
        let after = applied(&plan, &before, time(60));
        holds_exactly(&after, &b)?;
        what_stays_keeps_its_birth(&before, &after, [&a, &b])?;
        let again = planned(&after, &b);
        prop_assert!(again.is_empty(), "{}\nand then again\n{}", shown(&plan), shown(&again));
    }

    #[test]
    fn every_prefix_of_a_plan_keeps_references_valid((a, b) in changing_worlds()) {
        let mut here = reached(&a);
        let operations = planned(&here, &b).operations();
        let mut done = 0;
        for end in 1..=operations.len() {
            match here.apply(&operations[done..end], time(60)) {
                Ok((next, _)) => {
                    every_reference_resolves(&next)?;
                    (here, done) = (next, end);
                }
                // Rules that span resources hold only at the end, so continue with the next operation.
                Err(refusal) => {
                    let code = refusal.faults.iter().map(|fault| fault.code).find(|code| *code != Code::NotAllowed);
                    prop_assert_eq!(code, None, "{:?} at {:?}", refusal, operations[end - 1]);
                }
            }
        }
        prop_assert_eq!(done, operations.len());
    }

    #[test]
    fn a_spec_survives_json(spec in any_spec()) {
        let text = revealed(&spec).to_string();
        is_read_back(&spec, &serde_json::from_str(&text).unwrap())?;
    }

    #[test]
    fn a_spec_survives_yaml(spec in any_spec()) {
        let text = serde_yaml::to_string(&revealed(&spec)).unwrap();
        let content: Tape = serde_yaml::from_str(&text).unwrap();
        is_read_back(&spec, &content).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
    }

    #[test]
    fn a_patch_twice_is_a_patch_once((whole, spec) in two_of_a_kind(), mask in any::<u32>()) {
        let (base, key) = planted(&whole);
        let patch = Operation::Patch { key, fields: some_fields(&spec, mask), spec };
        let once = outcome(&base, std::slice::from_ref(&patch));
        prop_assert_eq!(once, outcome(&base, &[patch.clone(), patch]));
    }

    #[test]
    fn put_after_put_is_the_last_put((host, slot, first, last) in host_and_two_modules()) {
        let (base, key) = planted(&host);
        let put = |module| Operation::PutModule { host: key.clone(), slot, module };
        let once = outcome(&base, &[put(Arc::clone(&last))]);
        prop_assert_eq!(&once, &outcome(&base, &[put(first), put(Arc::clone(&last))]));
        // If the edge's other modules allow it, the module is stored unchanged.
        if let Ok(state) = once {
            let (_, value) = state.iter().find(|(it, _)| *it == key).unwrap();
            prop_assert_eq!(&value["spec"][slot.name], &last.to_json(Secrets::Revealed).unwrap());
        }
    }

    #[test]
    fn no_output_tells_a_secret((a, b) in changing_worlds()) {
        let empty = Snapshot::default();
        let whole = reached(&a);
        for plan in [planned(&empty, &a), planned(&whole, &b), planned(&whole, &Estate::new())] {
            tells_no_secret(&format!("{plan:?}"))?;
            tells_no_secret(&format!("{:?}", plan.operations()))?;
            tells_no_secret(&shown(&plan))?;
        }
        tells_no_secret(&format!("{whole:?}"))?;
        for Desired { spec, .. } in a.values().chain(b.values()) {
            let masked = Value::Object(spec.to_json(Secrets::Masked).unwrap()).to_string();
            tells_no_secret(&masked)?;
            tells_no_secret(&format!("{spec:?}"))?;
            let whole = revealed(spec).to_string();
            prop_assert_eq!(masked.contains(MASK), whole.contains(MARKER) || whole.contains("PRIVATE KEY"));
        }
    }
}

proptest! {
    #![proptest_config(cases(10))]

    #[test]
    fn a_store_gives_back_all_that_was_committed((a, b) in changing_worlds()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let store = Store::open(&path).unwrap();
        for (world, at) in [(&a, time(0)), (&b, time(60))] {
            let plan = planned(&store.snapshot(), world);
            let mut operations = plan.operations();
            for operation in &mut operations {
                if let Operation::Create { key, token, .. } = operation && key.kind == Kind::ApiKey {
                    *token = Some(Secret::new(format!("hash of {key}")));
                }
            }
            let attempt = Attempt { at, ..Attempt::new(Author::Local) };
            store.commit_with(attempt, |_| Ok::<_, ()>(operations)).unwrap();
        }
        let (kept, root_secret) = (store.snapshot(), store.root_secret());
        let tombstones = kept.tombstones().map(|(key, tombstone)| (key.clone(), tombstone.clone()));
        let entries = kept.iter().map(|entry| Entry::clone(entry));
        let restored = Snapshot::restore(kept.revision, kept.next_order(), tombstones, entries);
        prop_assert_eq!(state(&restored), state(&kept));
        prop_assert_eq!(found_by(&restored), found_by(&kept));
        prop_assert_eq!(restored.next_order(), kept.next_order());
        drop(store);
        let store = reopened(&path);
        let read = store.snapshot();
        prop_assert_eq!(state(&read), state(&kept));
        prop_assert_eq!((read.revision, read.next_order()), (kept.revision, kept.next_order()));
        prop_assert_eq!(store.root_secret(), root_secret);
        holds_exactly(&read, &b)?;
        let again = planned(&read, &b);
        prop_assert!(again.is_empty(), "{}", shown(&again));
    }

    #[test]
    fn the_plan_that_was_shown_is_the_plan_that_ran((a, b) in changing_worlds()) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("store")).unwrap();
        for world in [&a, &b] {
            let plan = planned(&store.snapshot(), world);
            let document = saved(&store, &plan, world).text().unwrap();
            tells_no_secret(&document)?;
            let reviewed = SavedPlan::read(&document).unwrap();
            let differences = || reviewed.differences(&saved(&store, &planned(&store.snapshot(), world), world));
            prop_assert_eq!(differences(), Vec::<String>::new());

            apply_plan(&store, &plan, None, Places::new(), Author::source(SOURCE, None)).unwrap();
            if plan.is_empty() {
                prop_assert_eq!(store.snapshot().revision, plan.base);
                prop_assert_eq!(differences(), Vec::<String>::new(), "nothing has run");
                continue;
            }
            let next = plan.base + 1;
            let stale = format!("the store changed (now revision {next}), so the plan would do something else");
            prop_assert_eq!(differences(), vec![stale]);

            let planned_calls = calls(&plan);
            prop_assert_eq!(&saved_calls(&document), &planned_calls, "what was reviewed");
            let record = recent(&store, 1).remove(0);
            prop_assert_eq!(&record.calls, &planned_calls, "what the history has");
            // A change of ownership is not a call: the record has it in parentheses, the text beside the resource.
            let without_words: Vec<_> = record.calls.iter().filter(|call| !call.starts_with('(')).cloned().collect();
            prop_assert_eq!(&without_words, &shown_calls(&plan));
            prop_assert_eq!(record.revision, Some(next));
            prop_assert_eq!(record.header.author, Author::source(SOURCE, None));
        }
    }
}

#[test]
fn a_dry_run_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("store")).unwrap();
    let paths = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/storefront")];
    let tree = Disk::new(paths);
    let options = Options { source: SOURCE.into(), ..Options::new(tree) };
    let dry_run = || {
        let (before, records) = (store.snapshot(), recent(&store, 10).len());
        let planned = super::plan(&options, &before);
        assert!(!planned.has_errors(), "{:?}", planned.diagnostics.iter().map(|it| &it.message).collect::<Vec<_>>());
        assert!(Arc::ptr_eq(&store.snapshot(), &before), "there is another revision");
        assert_eq!(recent(&store, 10).len(), records);
        planned.plan.unwrap()
    };
    let plan = dry_run();
    assert!(!plan.is_empty());
    assert_eq!(calls(&dry_run()), calls(&plan), "the same plan again");
    assert_eq!((store.snapshot().revision, store.snapshot().len()), (0, 0));
    apply_plan(&store, &plan, None, Places::new(), Author::source(SOURCE, None)).unwrap();
    assert!(dry_run().is_empty());
    assert_eq!((store.snapshot().revision, recent(&store, 10).len()), (1, 1));
}

/// A reader of an older revision may be the first to render an edge, which later readers must not get.
#[test]
fn an_answer_of_one_revision_is_never_that_of_another() {
    let edge = Key::new(Kind::HttpsEdge, Id::new("edghts_1"));
    let route = Key::child(Kind::HttpsEdgeRoute, edge.id.clone(), Id::new("edghtsrt_1"));
    let create = |key: &Key| Operation::create(key.clone(), spec_of(key.kind));
    let (old, _) = Snapshot::default().apply(&[create(&edge)], clock::now()).unwrap();
    let (new, _) = old.apply(&[create(&route)], clock::now()).unwrap();
    let cells = [&old, &new].map(|snapshot| Arc::clone(&snapshot.get(&edge).unwrap().rendered));
    assert!(!Arc::ptr_eq(&cells[0], &cells[1]));
}

fn spec_of(kind: Kind) -> Arc<dyn AnyResource> {
    let json = match kind {
        Kind::HttpsEdgeRoute => r#"{"match_type": "exact_path", "match": "/"}"#,
        _ => "{}",
    };
    let content: Tape = serde_json::from_str(json).unwrap();
    (kind.info().decode)(content.root(), &[], None).0.unwrap()
}
