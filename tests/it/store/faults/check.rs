//! What the disk must have after a fault: everything that was acknowledged, in one history, and whole revisions.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use edgewright::{
    Store,
    resources::{Author, Entry, Kind, Secrets},
    storage::{Outcome, Query},
};

use super::load::{EDGES, Text, Written};

/// Opens a store as the next start does, and holds it to what was acknowledged.
pub(super) fn check(path: &Path, written: &Written) -> Result<(), String> {
    let store = Store::open(path).map_err(|error| format!("it does not open: {error}"))?;
    check_history(&store, written, &[])?;
    let (mut declared, mut edges) = (BTreeSet::new(), 0);
    let snapshot = store.snapshot();
    for entry in snapshot.iter().filter(|entry| entry.key.kind == Kind::HttpsEdge) {
        declared.insert(description(entry)?);
        edges += 1;
    }
    if declared.len() != 1 || edges != EDGES {
        return Err(format!("a run was half applied: {edges} edges with {declared:?}"));
    }
    Ok(())
}

fn description(entry: &Entry) -> Result<String, String> {
    let body = entry.spec().to_json(Secrets::Masked).map_err(|error| error.to_string())?;
    Ok(body.get("description").and_then(|it| it.as_str()).unwrap_or_default().to_owned())
}

/// Holds the state and the history of a store to what was acknowledged: everything is there, once, and in order. `created` are the
/// texts of resources that were only created.
pub(super) fn check_history(store: &Store, written: &Written, created: &[Text]) -> Result<(), String> {
    let snapshot = store.snapshot();
    let verified = store.verify().map_err(|error| format!("its history is broken: {error}"))?;
    let records = store.history(&Query::All, u64::MAX, usize::MAX).map_err(|error| error.to_string())?;
    if verified.records != records.len() as u64 {
        return Err(format!("{} of {} records are found", records.len(), verified.records));
    }
    let applied: Vec<_> = records.iter().filter(|record| record.outcome == Outcome::Applied).collect();
    let revisions: Vec<u64> = applied.iter().filter_map(|record| record.revision).collect();
    if revisions != (1..=snapshot.revision).rev().collect::<Vec<u64>>() {
        return Err("a revision has no record, or two".to_owned());
    }

    let mut current = BTreeMap::new();
    for entry in snapshot.iter().filter(|entry| entry.key.kind == Kind::IpRestriction) {
        current.insert(format!("/ip_restrictions/{}", entry.key.id), description(entry)?);
    }

    let mut recorded: BTreeMap<(String, String), usize> = BTreeMap::new();
    for record in applied.iter().filter(|record| matches!(record.author, Author::Api { .. })) {
        for resource in &record.resources {
            let text = resource.after.as_ref().and_then(|after| after["description"].as_str());
            if let Some(text) = text {
                *recorded.entry((resource.path.clone(), text.to_owned())).or_default() += 1;
            }
        }
    }
    for (path, texts) in written {
        let last = texts.iter().rposition(|text| text.is_acknowledged).unwrap_or_default();
        let now = current.get(path).ok_or_else(|| format!("{path} is lost"))?;
        if !texts.get(last..).unwrap_or_default().iter().any(|text| text.text == *now) {
            return Err(format!("{path} has `{now}`, older than the acknowledged `{}`", texts[last].text));
        }
        for text in texts {
            let times = recorded.remove(&(path.clone(), text.text.clone())).unwrap_or_default();
            if times > 1 || (times == 0 && text.is_acknowledged) {
                return Err(format!("{path}: {text:?} is in the history {times} times"));
            }
        }
    }
    for text in created {
        let found: Vec<_> = recorded.keys().filter(|(_, recorded)| *recorded == text.text).cloned().collect();
        let times: usize = found.iter().filter_map(|found| recorded.remove(found)).sum();
        if times > 1 || (times == 0 && text.is_acknowledged) {
            return Err(format!("{text:?} was created {times} times"));
        }
    }
    match recorded.keys().next() {
        Some(invented) => Err(format!("nobody has written {invented:?}")),
        None => Ok(()),
    }
}
