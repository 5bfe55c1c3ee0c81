//! Messages of the history for changes that no commit made: drift that a plan reverts (D85), and values (D28).

use super::resource_fight::reverted;
use crate::reconcile::prelude::*;
use crate::store::commit::header::{Places, RevertedDrift};

/// The most fields, or values, that a note names.
const MOST_NAMED: usize = 20;

/// Starts the attempt to apply a plan. Whoever committed last is not named if they have changed nothing of what it does.
pub(crate) fn attempt(author: Author, plan: Option<&Plan>, places: Places) -> Attempt {
    let Some(plan) = plan else { return Attempt { places, ..Attempt::new(author) } };
    let author = if plan.is_uncommitted() { author.without_committer() } else { author };
    let mut reverted_drift = RevertedDrift::new();
    for (key, field) in reverted(plan) {
        reverted_drift.entry(key).or_default().push(field);
    }
    Attempt { places, reverted_drift, note: note(plan), ..Attempt::new(author) }
}

/// Names the fields that a plan reverts, the revisions that had set them, and the values that it applies.
fn note(plan: &Plan) -> String {
    let fields: Vec<String> = plan.changes.iter().flat_map(named).collect();
    let values: &[String] = if plan.only_reverts_drift() { &[] } else { plan.changed_values.as_slice() };
    let notes = [listed("drift reverted", &fields, "; "), listed("values changed", values, ", ")];
    notes.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn listed(what: &str, names: &[String], separator: &str) -> Option<String> {
    let more = match names.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!("{separator}and {more} more"),
    };
    let shown: Vec<&str> = names.iter().take(MOST_NAMED).map(String::as_str).collect();
    (!shown.is_empty()).then(|| format!("{what}: {}{more}", shown.join(separator)))
}

fn named(change: &Change) -> impl Iterator<Item = String> {
    change.drift.iter().flat_map(Drift::reverted).map(move |field| {
        let resource = format!("{} {}", change.key.kind, change.name);
        let revision = field.revision.unwrap_or_default();
        match field.field.as_str() {
            "" => format!("{resource} (deleted in revision {revision})"),
            pointer => format!("{pointer} of {resource} (set in revision {revision})"),
        }
    })
}
