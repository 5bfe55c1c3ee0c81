//! The overview of a large plan: how many resources of each kind change, and the first changes of each sort (D30).

use std::fmt::Write;

use super::text::{Paint, conclusion, sign, write_head};
use crate::plan::effect::Effect;
use crate::plan::redacted_plan::{RedactedChange, RedactedPlan};
use crate::plan::summary::Summary;
use crate::syntax::text::escaped;

/// The number of changes of each sort that are listed.
const LISTED: usize = 10;
/// The signs of changes, in the order in which a reviewer needs them.
const SIGNS: [&str; 5] = ["-", "±", "~", "=", "+"];

/// Returns the overview of a plan.
pub(crate) fn overview(plan: &RedactedPlan, paint: Paint) -> String {
    let changes = counts(&plan.changes) + &listed(&plan.changes, paint);
    let how = "Not every change is shown: add --full, or write a report with --format json --output FILE.";
    format!("{changes}{how}\n\n{}", conclusion(plan, paint))
}

/// The number of changes of each kind, on a line each.
fn counts(changes: &[RedactedChange]) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for change in changes {
        if !kinds.contains(&change.kind.as_str()) {
            kinds.push(&change.kind);
        }
    }
    let width = kinds.iter().map(|kind| kind.len()).max().unwrap_or_default();
    let mut text = String::new();
    for kind in kinds {
        let effects = changes.iter().filter(|change| change.kind == kind).map(|change| (change.effect, None));
        let _ = writeln!(text, "{:width$}  {}", escaped(kind), Summary::count(effects, 0).changes());
    }
    text + "\n"
}

/// The first changes of each sort, without their calls. What is replaced is shown with what replaces it.
fn listed(changes: &[RedactedChange], paint: Paint) -> String {
    let mut text = String::new();
    for wanted in SIGNS {
        let is_wanted = |it: &&RedactedChange| it.effect != Effect::Replaced && sign(it.effect) == wanted;
        let all: Vec<&RedactedChange> = changes.iter().filter(is_wanted).collect();
        for change in all.iter().take(LISTED) {
            let _ = write_head(&mut text, change, paint);
        }
        if all.len() > LISTED {
            let _ = writeln!(text, "{wanted} … and {} more", all.len() - LISTED);
        }
        if !all.is_empty() {
            text.push('\n');
        }
    }
    text
}
