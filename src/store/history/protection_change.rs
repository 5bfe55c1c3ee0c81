//! What a change in the history did to access: the modules that restricted it before and after.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::change_description::OWNED_BY;
use crate::model::{AnyResource, HttpsEdge, HttpsEdgeRoute, Kind};
use crate::routing::behaviour::{Protections, missing_protections, protections};
use crate::store::commit::header::ResourceChange;

/// The effect of a change of a resource on access.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ProtectionChange {
    /// The modules that no longer restrict access.
    pub lost: Vec<&'static str>,
    /// The modules that restrict access from then on.
    pub gained: Vec<&'static str>,
    /// Whether the change made a route without any.
    pub is_new_and_open: bool,
}

impl ProtectionChange {
    /// The effect of a change of a resource.
    pub(crate) fn new(change: &ResourceChange) -> Self {
        let names_module = |side: &Option<Value>| {
            let has = |name: &str| side.as_ref().is_some_and(|fields| fields.get(name).is_some());
            change.kind.info().slots.iter().any(|slot| has(slot.name))
        };
        let is_new = change.before.is_none() && change.kind == Kind::HttpsEdgeRoute;
        // Who deletes a route serves nothing there. Most other changes are of fields that are no modules, and need not be parsed.
        if change.after.is_none() || (!is_new && !names_module(&change.before) && !names_module(&change.after)) {
            return Self::default();
        }
        let side = |side: &Option<Value>| match change.kind {
            Kind::HttpsEdge => side.as_ref().and_then(restrictions::<HttpsEdge>),
            Kind::HttpsEdgeRoute => side.as_ref().and_then(restrictions::<HttpsEdgeRoute>),
            _ => None,
        };
        let (before, after) = (side(&change.before), side(&change.after));
        let is_new_and_open = is_new && after.as_ref().is_some_and(Protections::is_empty);
        let (Some(before), Some(after)) = (before, after) else { return Self { is_new_and_open, ..Self::default() } };
        let (lost, gained) = (missing_protections(&before, &after), missing_protections(&after, &before));
        Self { lost, gained, is_new_and_open }
    }
}

/// The restrictions of access in the fields of a resource that a record of the history has.
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

    fn effect(before: Option<Value>, after: Option<Value>) -> ProtectionChange {
        ProtectionChange::new(&ResourceChange {
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
            assert_eq!(same, ProtectionChange::default());
        }
    }
}
