//! A plan as text for a terminal: by resource, each call on a line of its own, and what it changes (D30).

use std::fmt::Write;

use owo_colors::OwoColorize;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::{Change, Effect, Plan};
use crate::model::{operation::Operation, resource::AnyResource, secret::Review};

/// Unchanged lines that are shown around a changed one.
const CONTEXT: usize = 2;

/// The plan with colour; whoever prints it strips the colour where it has no place.
pub fn text(plan: &Plan) -> String {
    let mut out = String::new();
    for change in &plan.changes {
        let _ = write_change(&mut out, change);
    }
    if plan.is_empty() {
        let _ = writeln!(out, "No changes: {} unchanged.", plan.unchanged);
    } else {
        let _ = writeln!(out, "{}", plan.summary().bold());
    }
    out
}

/// The sign in front of a change, and what is said behind its name.
pub fn mark(effect: Effect) -> (&'static str, &'static str) {
    match effect {
        Effect::Create => ("+", ""),
        Effect::Replace => ("±", " takes the place of the one that is deleted below"),
        Effect::Change => ("~", ""),
        Effect::Adopt => ("=", " is adopted as it is"),
        Effect::Rename => ("=", " is known by this name from now on"),
        Effect::Protect => ("=", " has another `prevent_destroy` from now on"),
        Effect::Delete => ("-", ""),
        Effect::Replaced => ("-", " was replaced"),
    }
}

fn write_change(out: &mut String, change: &Change) -> std::fmt::Result {
    let title = format!("{} {}", change.key.kind, change.name);
    let (sign, note) = mark(change.effect);
    let sign = match change.effect {
        Effect::Create | Effect::Replace => sign.green().to_string(),
        Effect::Delete | Effect::Replaced => sign.red().to_string(),
        _ => sign.yellow().to_string(),
    };
    writeln!(out, "{sign} {}  {}{note}", title.bold(), change.key.id.dimmed())?;
    for operation in &change.operations {
        if let Some((method, path)) = operation.call() {
            writeln!(out, "    {method} {path}")?;
            write_diff(out, change.before.as_deref(), operation)?;
        }
    }
    writeln!(out)
}

fn write_diff(out: &mut String, before: Option<&dyn AnyResource>, operation: &Operation) -> std::fmt::Result {
    for (sign, line) in lines(before, operation) {
        match sign {
            Sign::Skipped => writeln!(out, "      {}", "…".dimmed())?,
            Sign::Same => writeln!(out, "        {}", line.dimmed())?,
            Sign::Added => writeln!(out, "      {}", format!("+ {line}").green())?,
            Sign::Removed => writeln!(out, "      {}", format!("- {line}").red())?,
        }
    }
    Ok(())
}

/// What a line of a difference is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// On both sides; shown around what differs.
    Same,
    /// Only after.
    Added,
    /// Only before.
    Removed,
    /// Stands for lines on both sides that are left out; its text is empty.
    Skipped,
}

/// What an operation changes, line by line. Secrets are only "(secret)" and "changed".
pub fn lines(before: Option<&dyn AnyResource>, operation: &Operation) -> Vec<(Sign, String)> {
    let (old, new) = forms(before, operation);
    let diff = TextDiff::from_lines(old.as_str(), new.as_str());
    let mut lines = Vec::new();
    for (index, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if index > 0 {
            lines.push((Sign::Skipped, String::new()));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Equal => Sign::Same,
                ChangeTag::Insert => Sign::Added,
                ChangeTag::Delete => Sign::Removed,
            };
            lines.push((sign, change.value().trim_end_matches('\n').to_owned()));
        }
    }
    lines
}

/// The YAML write form of what an operation changes, before and after. Secrets are only "(secret)" and "changed".
pub fn forms(before: Option<&dyn AnyResource>, operation: &Operation) -> (String, String) {
    let review = Review::default();
    let empty = String::new;
    match operation {
        Operation::Create { spec, .. } => (empty(), yaml(review.after(|| Value::Object(spec.to_json())))),
        Operation::Patch { spec, fields, .. } => {
            let given = |spec: &dyn AnyResource| {
                let all = spec.to_json().into_iter().filter(|(field, _)| fields.contains(field));
                Value::Object(all.collect())
            };
            let old = before.map(|before| yaml(review.before(|| given(before)))).unwrap_or_default();
            (old, yaml(review.after(|| given(spec.as_ref()))))
        }
        Operation::PutModule { slot, module, .. } => {
            let old = before.and_then(|before| before.module(slot));
            let old = old.map(|old| yaml(review.before(|| old.to_json()))).unwrap_or_default();
            (old, yaml(review.after(|| module.to_json())))
        }
        Operation::DeleteModule { slot, .. } => {
            let old = before.and_then(|before| before.module(slot));
            (old.map(|old| yaml(review.before(|| old.to_json()))).unwrap_or_default(), empty())
        }
        Operation::Delete { .. } => {
            let old = before.map(|before| yaml(review.before(|| Value::Object(before.to_json()))));
            (old.unwrap_or_default(), empty())
        }
        Operation::Claim { .. } => (empty(), empty()),
    }
}

/// YAML without what is unset: null, "", [], {} and 0 say the same as nothing (D14).
fn yaml(mut value: Value) -> String {
    prune_unset(&mut value);
    serde_yaml::to_string(&value).unwrap_or_default()
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
