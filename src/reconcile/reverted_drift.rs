//! What the history says of drift that a plan puts back (D85).

use super::fight::put_back;
use crate::{
    model::{drift::Drift, operation::Author},
    plan::{Change, Plan},
    store::{
        Attempt,
        history::{Places, RevertedDrift},
    },
};

/// The most fields that a note names.
const MOST_NAMED: usize = 20;

/// Starts the attempt to apply a plan. Whoever committed last has changed nothing of what a plan only puts back, and is not
/// named.
pub(super) fn attempt(author: Author, plan: Option<&Plan>, places: Places) -> Attempt {
    let Some(plan) = plan else { return Attempt { places, ..Attempt::new(author) } };
    let author = if plan.only_reverts_drift() { author.without_committer() } else { author };
    let mut reverted_drift = RevertedDrift::new();
    for (key, field) in put_back(plan) {
        reverted_drift.entry(key).or_default().push(field);
    }
    Attempt { places, reverted_drift, note: note(plan), ..Attempt::new(author) }
}

/// Names the fields that a plan puts back, and the revisions that had set them.
fn note(plan: &Plan) -> String {
    let named: Vec<String> = plan.changes.iter().flat_map(named).collect();
    let more = match named.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let shown: Vec<&str> = named.iter().take(MOST_NAMED).map(String::as_str).collect();
    if shown.is_empty() { String::new() } else { format!("drift put back: {}{more}", shown.join("; ")) }
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
