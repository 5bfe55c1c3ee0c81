//! A plan as it is told: what a person, a program or another machine gets to see of it. No secret is in it.

use std::{collections::HashMap, sync::Arc};

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::{Change, Effect, Plan, Summary};
use crate::model::{
    json::JsonError,
    operation::Operation,
    resource::AnyResource,
    secret::{Review, Secrets},
};

/// Unchanged lines that are shown around a changed one.
const CONTEXT: usize = 2;

/// What would run, from which revision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outline {
    /// The revision that the plan was computed from.
    pub base: u64,
    /// How many resources stay as they are.
    pub unchanged: usize,
    /// The changes, by resource, in the order in which they run.
    pub changes: Vec<OutlinedChange>,
}

/// What happens to one resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutlinedChange {
    /// What it comes to.
    pub effect: Effect,
    /// The kind of resource.
    pub kind: String,
    /// Its name in the manifests, with its parent's in front.
    pub name: String,
    /// Its identifier.
    pub id: String,
    /// What else a reviewer must know: another name, or another protection.
    pub notes: Vec<String>,
    /// The calls of the API that do the same, in order; none where only ownership changes.
    pub calls: Vec<Call>,
}

/// One call of the API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    /// The method.
    pub method: String,
    /// The path.
    pub path: String,
    /// What it sends, with secrets masked; null if nothing.
    pub body: Value,
    /// What it changes, line by line: each starts with `+ `, `- ` or two spaces, and `…` stands for lines left out.
    pub lines: Vec<String>,
}

impl Outline {
    /// The plan without its secrets.
    pub fn of(plan: &Plan) -> Result<Self, JsonError> {
        // One resource takes the place of another: what differs between the two is what a reviewer looks for.
        let replaced = plan.changes.iter().filter(|change| change.effect == Effect::Replaced);
        let replaced: HashMap<_, _> = replaced.map(|change| (change.identity(), &change.before)).collect();
        let changes = plan.changes.par_iter().map(|change| {
            let before = match change.effect {
                Effect::Replace => replaced.get(&change.identity()).copied().unwrap_or(&None),
                _ => &change.before,
            };
            outlined(change, before)
        });
        let changes = changes.collect::<Result<Vec<OutlinedChange>, JsonError>>()?;
        Ok(Self { base: plan.base, unchanged: plan.unchanged, changes })
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The counts.
    pub fn summary(&self) -> Summary {
        Summary::of(self.changes.iter().map(|change| change.effect), self.unchanged)
    }
}

fn outlined(change: &Change, before: &Option<Arc<dyn AnyResource>>) -> Result<OutlinedChange, JsonError> {
    let calls = change.operations.iter().filter_map(|operation| {
        let (method, path) = operation.call()?;
        Some(call(change.effect, before.as_deref(), operation, method, path))
    });
    Ok(OutlinedChange {
        effect: change.effect,
        kind: change.key.kind.to_string(),
        name: change.name.clone(),
        id: change.key.id.to_string(),
        notes: change.notes.clone(),
        calls: calls.collect::<Result<Vec<Call>, JsonError>>()?,
    })
}

fn call(
    effect: Effect,
    before: Option<&dyn AnyResource>,
    operation: &Operation,
    method: &str,
    path: String,
) -> Result<Call, JsonError> {
    let lines = match effect {
        // They are shown where the other one is created.
        Effect::Replaced => Vec::new(),
        _ => lines(before, operation)?,
    };
    Ok(Call { method: method.to_owned(), path, body: operation.body(Secrets::Masked)?, lines })
}

/// What an operation changes, line by line. Secrets are only "(secret)" and "changed".
fn lines(before: Option<&dyn AnyResource>, operation: &Operation) -> Result<Vec<String>, JsonError> {
    let (old, new) = forms(before, operation)?;
    let diff = TextDiff::from_lines(old.as_str(), new.as_str());
    let mut lines = Vec::new();
    for (index, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if index > 0 {
            lines.push("…".to_owned());
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Insert => '+',
                ChangeTag::Delete => '-',
            };
            lines.push(format!("{sign} {}", change.value().trim_end_matches('\n')));
        }
    }
    Ok(lines)
}

/// The YAML write form of what an operation changes, before and after. Secrets are only "(secret)" and "changed".
fn forms(before: Option<&dyn AnyResource>, operation: &Operation) -> Result<(String, String), JsonError> {
    let review = Review::default();
    let whole = |spec: &dyn AnyResource, secrets: Secrets<'_>| spec.to_json(secrets).map(Value::Object);
    let (old, new) = match operation {
        Operation::Create { spec, .. } => {
            let old = before.map(|before| whole(before, review.before()));
            (old, Some(whole(spec.as_ref(), review.after())))
        }
        Operation::Patch { spec, fields, .. } => {
            let given = |spec: &dyn AnyResource, secrets: Secrets<'_>| -> Result<Value, JsonError> {
                let all = spec.to_json(secrets)?.into_iter().filter(|(field, _)| fields.contains(field));
                Ok(Value::Object(all.collect()))
            };
            let old = before.map(|before| given(before, review.before()));
            (old, Some(given(spec.as_ref(), review.after())))
        }
        Operation::PutModule { slot, module, .. } => {
            let old = before.and_then(|before| before.module(slot));
            let old = old.map(|old| old.to_json(review.before()));
            (old, Some(module.to_json(review.after())))
        }
        Operation::DeleteModule { slot, .. } => {
            let old = before.and_then(|before| before.module(slot));
            (old.map(|old| old.to_json(review.before())), None)
        }
        Operation::Delete { .. } => (before.map(|before| whole(before, review.before())), None),
        Operation::Claim { .. } => (None, None),
    };
    Ok((yaml(old.transpose()?)?, yaml(new.transpose()?)?))
}

/// YAML without what is unset: null, "", [], {} and 0 say the same as nothing (D14). Nothing at all is an empty text.
fn yaml(value: Option<Value>) -> Result<String, JsonError> {
    let Some(mut value) = value else { return Ok(String::new()) };
    prune_unset(&mut value);
    serde_yaml::to_string(&value).map_err(JsonError::new)
}

fn prune_unset(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(prune_unset);
            map.retain(|_, value| match value {
                Value::Null => false,
                Value::String(text) => !text.is_empty(),
                Value::Array(items) => !items.is_empty(),
                Value::Object(map) => !map.is_empty(),
                Value::Number(number) => number.as_f64() != Some(0.0),
                Value::Bool(_) => true,
            });
        }
        Value::Array(items) => items.iter_mut().for_each(prune_unset),
        _ => {}
    }
}
