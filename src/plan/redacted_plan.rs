//! A plan without secrets, for output and for clients.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::behaviour::BehaviourDiff;
use super::change::{Change, ChangeIdentity, Plan};
use super::changed_lines::changed_lines;
use super::effect::Effect;
use super::summary::{Summary, is_zero};
use crate::background::yield_to_requests;
use crate::model::secrets::serialization_mode::Review;
use crate::model::{AnyResource, Drift, JsonError, Kind, Operation, Secrets, Slot};

/// A plan without its secrets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Plan")]
pub struct RedactedPlan {
    /// The revision the plan is based on.
    pub base: u64,
    /// The number of unchanged resources.
    pub unchanged: usize,
    /// The changes by resource, in execution order.
    pub changes: Vec<RedactedChange>,
    /// The number of changes whose drift was not looked up, because the plan is large and has drift.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unexamined_drift: usize,
    /// How requests are treated differently; absent unless it was asked for, and for a plan with refusals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behaviour: Option<BehaviourDiff>,
}

/// A terminal shows an overview of a plan with more changes, unless every change is asked for.
pub(crate) const LARGE: usize = 200;

/// The detail of each change in a redacted plan. Lines and bodies take most of its memory, and only some formats show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// The effect, without the calls.
    Effects,
    /// What a terminal shows: of a large plan the effects, and otherwise the calls with their changed lines.
    Terminal,
    /// The calls with their changed lines.
    Lines,
    /// The bodies of the calls as well.
    Bodies,
}

/// Redacts the changes of a plan, each by itself.
struct Redactor<'p> {
    detail: Detail,
    plan: &'p Plan,
    /// For a replacement, a reviewer wants the difference between the old and the new resource.
    replaced: HashMap<ChangeIdentity<'p>, &'p Option<Arc<dyn AnyResource>>>,
}

/// The change of one resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PlannedChange")]
pub struct RedactedChange {
    /// The effect on the resource.
    pub effect: Effect,
    /// The kind of resource.
    pub kind: String,
    /// The name in the manifests, prefixed with the parent's name.
    pub name: String,
    /// The identifier.
    pub id: String,
    /// Notes for the reviewer, such as a changed name or protection.
    pub notes: Vec<String>,
    /// The equivalent API calls, in order; empty if only ownership changes.
    pub calls: Vec<Call>,
    /// The changes that others have made to the resource since its source applied it; absent if there are none or they
    /// are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,
}

/// An API call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    /// The method.
    pub method: String,
    /// The path.
    pub path: String,
    /// The request body with secrets masked; null if there is none.
    pub body: Value,
    /// The changed lines: each starts with `+ `, `- ` or two spaces; `…` stands for omitted lines.
    pub lines: Vec<String>,
}

impl RedactedPlan {
    /// Returns a plan without its secrets.
    pub fn from_plan(plan: &Plan) -> Result<Self, JsonError> {
        Self::new(plan, Detail::Bodies)
    }

    /// Like [`RedactedPlan::from_plan`], with less detail.
    pub(crate) fn new(plan: &Plan, detail: Detail) -> Result<Self, JsonError> {
        let is_large = plan.changes.len() > LARGE;
        let changes: Vec<RedactedChange> = if detail == Detail::Effects || (detail == Detail::Terminal && is_large) {
            // Without calls nothing can fail, so that each change is made where it stays.
            plan.changes.par_iter().map(Redactor::head).collect()
        } else {
            let redactor = Redactor::new(plan, detail);
            let changes = plan.changes.par_iter().map(|change| {
                yield_to_requests();
                redactor.redact(change)
            });
            changes.collect::<Result<Vec<RedactedChange>, JsonError>>()?
        };
        let (base, unchanged, unexamined_drift) = (plan.base, plan.unchanged, plan.unexamined_drift);
        Ok(Self { base, unchanged, changes, unexamined_drift, behaviour: plan.effects.behaviour.clone() })
    }

    /// Whether the plan has no changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The kinds of changed resources that can have an effect which the behaviour diff does not compare.
    pub(crate) fn uncompared(&self) -> BTreeSet<&'static str> {
        let is_changed = |kind: Kind| {
            let is_of_kind = |change: &&RedactedChange| change.kind == kind.facts().name;
            // All others have the same content.
            let is_same =
                |change: &RedactedChange| matches!(change.effect, Effect::Adopt | Effect::Rename | Effect::Protect);
            self.changes.iter().filter(is_of_kind).any(|change| !is_same(change))
        };
        let uncompared = Kind::EVERY.iter().copied().filter(|kind| !is_compared(*kind));
        uncompared.filter(|kind| is_changed(*kind)).map(|kind| kind.facts().name).collect()
    }

    /// The number of changes by effect.
    pub fn summary(&self) -> Summary {
        let changes = self.changes.iter();
        Summary::count(changes.map(|change| (change.effect, change.drift.as_ref())), self.unchanged)
    }
}

/// Whether the behaviour diff has all that a resource of a kind does.
fn is_compared(kind: Kind) -> bool {
    match kind {
        Kind::HttpsEdge | Kind::HttpsEdgeRoute | Kind::TlsEdge | Kind::CertificateAuthority => true,
        // Of restrictions, those of endpoints are compared, and the others are not.
        Kind::IpRestriction | Kind::TlsCertificate => false,
        // What they refuse is no request.
        Kind::Invariant => false,
        // They do nothing to requests.
        Kind::Owner | Kind::ApiKey | Kind::EventSubscription | Kind::EventSource => true,
    }
}

impl<'p> Redactor<'p> {
    /// Prepares to redact the changes of a plan.
    fn new(plan: &'p Plan, detail: Detail) -> Self {
        let replaced = plan.changes.iter().filter(|change| change.effect == Effect::Replaced);
        Self { detail, plan, replaced: replaced.map(|change| (change.identity(), &change.before)).collect() }
    }

    /// Returns a change without its secrets.
    fn redact(&self, change: &Change) -> Result<RedactedChange, JsonError> {
        let calls = change.operations.iter().filter_map(|operation| {
            let (method, path) = operation.call()?;
            Some(self.call(change, operation, method, path))
        });
        Ok(RedactedChange { calls: calls.collect::<Result<Vec<Call>, JsonError>>()?, ..Self::head(change) })
    }

    /// Returns a change without its calls.
    fn head(change: &Change) -> RedactedChange {
        RedactedChange {
            effect: change.effect,
            kind: change.key.kind.to_string(),
            name: change.name.clone(),
            id: change.key.id.to_string(),
            notes: change.notes.clone(),
            calls: Vec::new(),
            drift: change.drift.clone(),
        }
    }

    fn call(&self, change: &Change, operation: &Operation, method: &str, path: String) -> Result<Call, JsonError> {
        let lines = self.lines(change, operation)?;
        let body = match self.detail {
            Detail::Bodies => self.plan.reviewed(operation).body(Secrets::Planned)?,
            Detail::Lines | Detail::Terminal | Detail::Effects => Value::Null,
        };
        Ok(Call { method: method.to_owned(), path, body, lines })
    }

    /// The changed lines of an operation. Secrets show only as "(secret)" and whether they changed.
    fn lines(&self, change: &Change, operation: &Operation) -> Result<Vec<String>, JsonError> {
        let before = match change.effect {
            // Claims are shown with the new resource.
            Effect::Replaced => return Ok(Vec::new()),
            Effect::Replace => self.replaced.get(&change.identity()).copied().unwrap_or(&None),
            _ => &change.before,
        };
        let (old, new) = forms(before.as_deref(), &self.plan.reviewed(operation))?;
        Ok(changed_lines(&old, &new))
    }
}

/// The YAML of what an operation changes, before and after. Secrets show only as "(secret)" and whether they changed.
fn forms(before: Option<&dyn AnyResource>, operation: &Operation) -> Result<(String, String), JsonError> {
    let review = Review::default();
    let whole = |spec: &dyn AnyResource, secrets: Secrets<'_>| spec.to_json(secrets).map(Value::Object);
    let old = || before.map(|before| whole(before, review.before()));
    let old_module = |slot: &Slot| before.and_then(|before| before.module(slot)).map(|it| it.to_json(review.before()));
    let (old, new) = match operation {
        Operation::Create { spec, .. } => (old(), Some(whole(spec.as_ref(), review.after()))),
        Operation::Patch { spec, fields, .. } => {
            let given = |spec: &dyn AnyResource, secrets: Secrets<'_>| -> Result<Map<String, Value>, JsonError> {
                Ok(spec.to_json(secrets)?.into_iter().filter(|(field, _)| fields.contains(field)).collect())
            };
            let old = before.map(|before| given(before, review.before())).transpose()?;
            return patched(old.unwrap_or_default(), given(spec.as_ref(), review.after())?);
        }
        Operation::PutModule { slot, module, .. } => (old_module(slot), Some(module.to_json(review.after()))),
        Operation::DeleteModule { slot, .. } => (old_module(slot), None),
        Operation::Delete { .. } => (old(), None),
        Operation::Claim { .. } => (None, None),
    };
    Ok((yaml(old.transpose()?)?, yaml(new.transpose()?)?))
}

/// The YAML of the fields of a PATCH, before and after. What was set and is not any longer has its unset value, so that it is
/// seen which field the request clears.
fn patched(mut old: Map<String, Value>, mut new: Map<String, Value>) -> Result<(String, String), JsonError> {
    old.values_mut().chain(new.values_mut()).for_each(prune_unset);
    old.retain(|_, value| is_set(value));
    new.retain(|field, value| is_set(value) || old.contains_key(field));
    let text = |fields: Map<String, Value>| match fields.is_empty() {
        true => Ok(String::new()),
        false => serde_yaml::to_string(&fields).map_err(JsonError::new),
    };
    Ok((text(old)?, text(new)?))
}

/// YAML without unset values: null, "", [], {} and 0 mean unset (D14). No value is an empty text.
pub(crate) fn yaml(value: Option<Value>) -> Result<String, JsonError> {
    let Some(mut value) = value else { return Ok(String::new()) };
    prune_unset(&mut value);
    serde_yaml::to_string(&value).map_err(JsonError::new)
}

fn prune_unset(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(prune_unset);
            map.retain(|_, value| is_set(value));
        }
        Value::Array(items) => items.iter_mut().for_each(prune_unset),
        _ => {}
    }
}

fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Bool(_) => true,
    }
}
