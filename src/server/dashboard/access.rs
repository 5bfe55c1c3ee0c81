//! Who has access: what protects a route, and whether a change has taken or added protection.

use maud::{Markup, html};
use serde::de::DeserializeOwned;

use super::elements::{Tone, badge};
use crate::model::{AnyResource, Entry, HttpsEdge, HttpsEdgeRoute};
use crate::routing::behaviour::{Protections, protections};
use crate::server::prelude::*;
use crate::store::{OWNED_BY, ResourceChange};

/// The modules of a route and of its edge that restrict access.
pub(super) fn locks(edge: Option<&Entry>, route: &Entry) -> Vec<&'static str> {
    let of = |entry: &Entry| protections(entry.spec().modules());
    edge.map(of).unwrap_or_default().into_values().chain(of(route).into_values()).collect()
}

/// Shows what protects a route, or that it is open.
pub(super) fn lock_list(locks: &[&str]) -> Markup {
    html! {
        @if locks.is_empty() { (badge(Tone::Warning, "open to everybody")) }
        @for lock in locks { (badge(Tone::Good, format_args!("\u{1f512} {lock}"))) " " }
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
        Self { lost: only_in(&before, &after), gained: only_in(&after, &before), is_new_and_open }
    }

    /// Adds the effect of another change.
    pub(super) fn add(&mut self, other: Self) {
        self.lost.extend(other.lost);
        self.gained.extend(other.gained);
        self.is_new_and_open |= other.is_new_and_open;
    }

    /// Shows the effect; nothing if there is none.
    pub(super) fn shown(&self) -> Markup {
        let names = |modules: &[&str]| {
            modules.iter().copied().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
        };
        html! {
            @if !self.lost.is_empty() { (badge(Tone::Bad, format_args!("opens access: without {}", names(&self.lost)))) " " }
            @if self.is_new_and_open { (badge(Tone::Warning, "new open route")) " " }
            @if !self.gained.is_empty() { (badge(Tone::Good, format_args!("closes access: with {}", names(&self.gained)))) }
        }
    }
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
