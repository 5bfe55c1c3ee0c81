//! Who has access: what protects a route, and whether a change has taken or added protection.

use maud::{Markup, html};
use serde::de::DeserializeOwned;

use super::elements::{Tone, badge, locked};
use crate::model::{AnyResource, Entry, HttpsEdge, HttpsEdgeRoute};
use crate::plan::exposure::opened_requests::opened_requests;
use crate::routing::behaviour::{Protections, protections};
use crate::server::prelude::*;
use crate::store::{OWNED_BY, ResourceChange};

/// How many revisions ago one is whose requests are compared: the state of an older one takes long to restore.
const MOST_REVISIONS: u64 = 100;
/// The most routes of the edges of a revision whose requests are compared.
const MOST_ROUTES: usize = 400;
/// The most findings of a revision that are shown.
const MOST_SHOWN: usize = 3;

/// The modules of a route and of its edge that restrict access.
pub(super) fn locks(edge: Option<&Entry>, route: &Entry) -> Vec<&'static str> {
    let of = |entry: &Entry| protections(entry.spec().modules());
    edge.map(of).unwrap_or_default().into_values().chain(of(route).into_values()).collect()
}

/// Shows what protects a route, or that it is open.
pub(super) fn lock_list(locks: &[&str]) -> Markup {
    html! {
        @if locks.is_empty() { (badge(Tone::Warning, "open to everybody")) }
        @for lock in locks { (locked(lock)) " " }
    }
}

/// What a change does to access.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct AccessEffect {
    /// The modules that no longer restrict access.
    pub lost: Vec<&'static str>,
    /// The modules that restrict access from then on.
    pub gained: Vec<&'static str>,
    /// Whether the change made a route without any.
    pub is_new_and_open: bool,
    /// What the change opens although no resource loses a module: another route has the requests of a protected one.
    pub taken_over: Vec<String>,
}

impl AccessEffect {
    /// The effect of a change of a resource.
    pub(super) fn of(change: &ResourceChange) -> Self {
        let side = |side: &Option<Value>| match change.kind {
            Kind::HttpsEdge => side.as_ref().and_then(restrictions::<HttpsEdge>),
            Kind::HttpsEdgeRoute => side.as_ref().and_then(restrictions::<HttpsEdgeRoute>),
            _ => None,
        };
        let (before, after) = (side(&change.before), side(&change.after));
        let is_new = change.before.is_none() && change.kind == Kind::HttpsEdgeRoute;
        let is_new_and_open = is_new && after.as_ref().is_some_and(Protections::is_empty);
        // Who deletes a route serves nothing there.
        let (Some(before), Some(after)) = (before, after) else { return Self { is_new_and_open, ..Self::default() } };
        let only_in = |one: &Protections, other: &Protections| {
            one.iter().filter(|(sort, _)| !other.contains_key(*sort)).map(|(_, module)| *module).collect()
        };
        let (lost, gained) = (only_in(&before, &after), only_in(&after, &before));
        Self { lost, gained, is_new_and_open, taken_over: Vec::new() }
    }

    /// The effect of a revision with these changes.
    pub(super) fn of_revision(store: &Store, revision: u64, changes: &[ResourceChange]) -> Self {
        let keys: BTreeSet<Key> = changes.iter().filter_map(|change| Key::at_path(change.kind, &change.path)).collect();
        let mut effect = Self::default();
        for change in changes {
            effect.add(Self::of(change));
        }
        if effect.lost.is_empty() {
            effect.taken_over = taken_over(store, revision, &keys).unwrap_or_default();
        }
        effect
    }

    /// Adds the effect of another change.
    pub(super) fn add(&mut self, other: Self) {
        self.lost.extend(other.lost);
        self.gained.extend(other.gained);
        self.is_new_and_open |= other.is_new_and_open;
        self.taken_over.extend(other.taken_over);
    }

    /// Shows the effect; nothing if there is none.
    pub(super) fn shown(&self) -> Markup {
        let names = |modules: &[&str]| {
            modules.iter().copied().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
        };
        html! {
            @if !self.lost.is_empty() { (badge(Tone::Bad, format_args!("opens access: without {}", names(&self.lost)))) " " }
            @if !self.taken_over.is_empty() { (badge(Tone::Bad, "opens access")) " " (self.taken_over.join("; ")) " " }
            @if self.is_new_and_open { (badge(Tone::Warning, "new open route")) " " }
            @if !self.gained.is_empty() { (badge(Tone::Good, format_args!("closes access: with {}", names(&self.gained)))) }
        }
    }
}

/// What a revision opens, from all requests that the edges of changed resources serve. Returns none for an older revision, and
/// for edges with so many routes that nobody would wait for it.
fn taken_over(store: &Store, revision: u64, changed: &BTreeSet<Key>) -> Option<Vec<String>> {
    let edges: BTreeSet<Key> = changed
        .iter()
        .filter_map(|key| match key.kind {
            Kind::HttpsEdge => Some(key.clone()),
            Kind::HttpsEdgeRoute => key.parent_key(),
            _ => None,
        })
        .collect();
    let current = store.snapshot();
    if edges.is_empty() || current.revision.saturating_sub(revision) > MOST_REVISIONS {
        return None;
    }
    let (before, after) = (store.snapshot_at(revision.checked_sub(1)?).ok()?, store.snapshot_at(revision).ok()?);
    let routes: usize = [&before, &after]
        .into_iter()
        .flat_map(|state| edges.iter().map(move |edge| state.children_after(edge, None).take(MOST_ROUTES + 1).count()))
        .sum();
    let opened = (routes <= MOST_ROUTES).then(|| opened_requests(changed, &before, &after))?;
    Some(opened.iter().take(MOST_SHOWN).map(ToString::to_string).collect())
}

/// What restricts access in the fields of a resource that a record of the history has.
fn restrictions<R: AnyResource + DeserializeOwned>(fields: &Value) -> Option<Protections> {
    let mut fields = fields.as_object()?.clone();
    fields.remove(OWNED_BY);
    let spec: R = serde_json::from_value(Value::Object(fields)).ok()?;
    let spec: &dyn AnyResource = &spec;
    Some(protections(spec.modules()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn effect(before: Option<Value>, after: Option<Value>) -> AccessEffect {
        AccessEffect::of(&ResourceChange {
            kind: Kind::HttpsEdgeRoute,
            path: String::new(),
            name: None,
            source: None,
            declared_at: None,
            reverted_drift: Vec::new(),
            before,
            after,
        })
    }

    #[test]
    fn a_change_opens_or_closes() {
        let mut restricting = 0;
        for slot in Kind::HttpsEdgeRoute.info().slots {
            let (with, without) = (json!({slot.name: (slot.example)()}), json!({slot.name: null}));
            let (opened, closed) =
                (effect(Some(with.clone()), Some(without.clone())), effect(Some(without), Some(with)));
            assert_eq!(opened.lost, closed.gained);
            assert!(opened.gained.is_empty() && closed.lost.is_empty());
            restricting += opened.lost.len();
            assert!(opened.lost.iter().all(|lost| *lost == slot.name));
        }
        assert!(restricting > 3, "{restricting}");
        let whole = json!({"match_type": "exact_path", "match": "/", OWNED_BY: {"source": "shop"}});
        assert!(effect(None, Some(whole.clone())).is_new_and_open);
        for same in [effect(Some(whole), None), effect(Some(json!({"match": "/a"})), Some(json!({"match": "/"})))] {
            assert_eq!(same, AccessEffect::default());
        }
    }
}
