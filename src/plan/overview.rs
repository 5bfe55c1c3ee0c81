//! The overview of a large plan: how many resources of each kind change, and the first changes of each sort (D30).

use std::fmt::Write;

use super::{
    change::Change,
    effect::Effect,
    redacted_plan::{RedactedChange, Redactor},
    render::{Colour, Content, conclusion, sign, write_head},
    summary::Summary,
};
use crate::syntax::text::escaped;

/// A plan with more changes is shown as an overview, unless every change is asked for.
pub(crate) const LARGE: usize = 200;
/// The number of changes of each sort that are listed.
const LISTED: usize = 10;
/// The signs of changes, in the order in which a reviewer needs them.
const SIGNS: [&str; 5] = ["-", "±", "~", "=", "+"];

/// Returns the overview of a plan.
pub(crate) fn overview(content: Content<'_>, colour: Colour) -> String {
    let changes = match content {
        Content::Plan(plan) => {
            let facts = |change: &Change| (change.effect, change.key.kind.facts().name);
            counts(&plan.changes, facts) + &listed(&plan.changes, |change| change.effect, Redactor::head, colour)
        }
        Content::Redacted(plan) => {
            let names: Vec<(Effect, &str)> =
                plan.changes.iter().map(|change| (change.effect, change.kind.as_str())).collect();
            counts(&names, |(effect, kind)| (*effect, *kind))
                + &listed(&plan.changes, |change| change.effect, RedactedChange::clone, colour)
        }
    };
    let how = "Not every change is shown: add --full, or write a report with --format json --output FILE.";
    format!("{changes}{how}\n\n{}", conclusion(content, colour))
}

/// The number of changes of each kind, on a line each.
fn counts<'k, C>(changes: &[C], facts: impl Fn(&C) -> (Effect, &'k str)) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for (_, kind) in changes.iter().map(&facts) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let width = kinds.iter().map(|kind| kind.len()).max().unwrap_or_default();
    let mut text = String::new();
    for kind in kinds {
        let of_kind = changes.iter().map(&facts).filter(|(_, of)| *of == kind);
        let Summary { create, change, replace, adopt, delete, .. } = Summary::count(of_kind.map(|it| (it.0, None)), 0);
        let counts =
            [(create, "create"), (change, "change"), (replace, "replace"), (adopt, "adopt"), (delete, "delete")];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let counts: Vec<String> = counts.map(|(count, what)| format!("{count} to {what}")).collect();
        let _ = writeln!(text, "{:width$}  {}", escaped(kind), counts.join(", "));
    }
    text + "\n"
}

/// The first changes of each sort, without their calls. What is replaced is shown with what replaces it.
fn listed<C>(
    changes: &[C],
    effect: impl Fn(&C) -> Effect,
    head: impl Fn(&C) -> RedactedChange,
    colour: Colour,
) -> String {
    let mut text = String::new();
    for wanted in SIGNS {
        let all = changes.iter().filter(|change| effect(change) != Effect::Replaced && sign(effect(change)) == wanted);
        let mut count = 0;
        for change in all {
            if count < LISTED {
                let _ = write_head(&mut text, &head(change), colour);
            }
            count += 1;
        }
        if count > LISTED {
            let _ = writeln!(text, "{wanted} … and {} more", count - LISTED);
        }
        if count > 0 {
            text.push('\n');
        }
    }
    text
}
