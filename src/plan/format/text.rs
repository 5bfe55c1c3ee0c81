//! A plan as text for a terminal: each resource with its calls, one per line, and the changed lines (D30).

use std::fmt::Write;
use std::iter;

use owo_colors::{OwoColorize, Style};
use rayon::prelude::*;

use crate::model::Drift;
use crate::plan::behaviour;
use crate::plan::effect::Effect;
use crate::plan::redacted_plan::{RedactedChange, RedactedPlan};
use crate::plan::report::Report;
use crate::syntax::text::escaped;

/// How many changes one thread renders at once.
const CHANGES_AT_ONCE: usize = 128;
/// How many changes are in memory as text until they are written.
const CHANGES_TOGETHER: usize = 32 * CHANGES_AT_ONCE;

/// Whether the parts of a text have colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// With codes for a terminal.
    Coloured,
    /// Without them.
    Plain,
}

impl Paint {
    fn put(self, out: &mut String, style: Style, text: &str) -> std::fmt::Result {
        match self {
            Paint::Coloured => write!(out, "{}", text.style(style)),
            Paint::Plain => out.write_str(text),
        }
    }
}

/// Renders the report: the plan, or the effect on requests of one that invariants refuse.
pub(super) fn render(report: &Report) -> String {
    match (&report.plan, &report.refused) {
        (Some(plan), _) => plan_text(plan),
        (None, Some(refused)) => behaviour_text(refused, Paint::Coloured),
        (None, None) => String::new(),
    }
}

/// Renders the plan with colour codes; the caller strips them if needed.
pub(crate) fn plan_text(plan: &RedactedPlan) -> String {
    pieces(plan, Paint::Coloured).collect()
}

/// The text of a plan in pieces, which all cores render. A large plan is never in memory as one text.
pub(crate) fn pieces(plan: &RedactedPlan, paint: Paint) -> impl Iterator<Item = String> {
    let changes = plan.changes.chunks(CHANGES_TOGETHER).flat_map(move |together| {
        let pieces = together.par_chunks(CHANGES_AT_ONCE).map(|changes| {
            let mut out = String::new();
            for change in changes {
                let _ = write_change(&mut out, change, paint);
            }
            out
        });
        pieces.collect::<Vec<String>>()
    });
    changes.chain(iter::once_with(move || conclusion(plan, paint)))
}

/// How a plan treats requests differently; empty if that was not asked for.
pub(crate) fn behaviour_text(plan: &RedactedPlan, paint: Paint) -> String {
    let mut out = String::new();
    let Some(diff) = &plan.behaviour else { return out };
    let _ = writeln!(out, "{}", behaviour::summary(diff, plan.is_empty(), &plan.uncompared()));
    for (opens, line) in behaviour::lines(diff) {
        let (sign, style) = if opens { ("! ", Style::new().red()) } else { ("  ", Style::new()) };
        let _ = paint.put(&mut out, style, &format!("{sign}{}", escaped(&line)));
        out.push('\n');
    }
    out.push('\n');
    out
}

/// The number of changes, after all that a text shows of a plan.
pub(super) fn conclusion(plan: &RedactedPlan, paint: Paint) -> String {
    let (mut last, summary) = (behaviour_text(plan, paint), plan.summary());
    if plan.unexamined_drift > 0 {
        let _ = writeln!(last, "Drift is not shown for {} of the changes.", plan.unexamined_drift);
    }
    let _ = match plan.is_empty() {
        true => writeln!(last, "No changes: {} unchanged.", summary.unchanged),
        false => paint.put(&mut last, Style::new().bold(), &summary.to_string()).and_then(|()| writeln!(last)),
    };
    last
}

/// The sign in front of a change.
pub(crate) fn sign(effect: Effect) -> &'static str {
    match effect {
        Effect::Create => "+",
        Effect::Replace => "±",
        Effect::Change => "~",
        Effect::Adopt | Effect::Rename | Effect::Protect => "=",
        Effect::Delete | Effect::Replaced => "-",
    }
}

/// The notes after the name and identifier.
pub(crate) fn notes(change: &RedactedChange) -> String {
    let what = match change.effect {
        Effect::Replace => Some("replaces the one deleted below"),
        Effect::Adopt => Some("adopted without changes"),
        Effect::Replaced => Some("replaced by the one above"),
        _ => None,
    };
    let notes: Vec<&str> = what.into_iter().chain(change.notes.iter().map(String::as_str)).collect();
    if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) }
}

fn write_change(out: &mut String, change: &RedactedChange, paint: Paint) -> std::fmt::Result {
    write_head(out, change, paint)?;
    for call in &change.calls {
        write_call(out, &call.method, &call.path)?;
        write_lines(out, &call.lines, paint)?;
    }
    writeln!(out)
}

pub(super) fn write_head(out: &mut String, change: &RedactedChange, paint: Paint) -> std::fmt::Result {
    let title = format!("{} {}", change.kind, change.name);
    let notes = notes(change);
    let style = match change.effect {
        Effect::Create | Effect::Replace => Style::new().green(),
        Effect::Delete | Effect::Replaced => Style::new().red(),
        _ => Style::new().yellow(),
    };
    paint.put(out, style, sign(change.effect))?;
    out.push(' ');
    paint.put(out, Style::new().bold(), &escaped(&title))?;
    out.push_str("  ");
    paint.put(out, Style::new().dimmed(), &escaped(&change.id))?;
    writeln!(out, "{}", escaped(&notes))?;
    for field in change.drift.iter().flat_map(Drift::changed) {
        out.push_str("    ");
        paint.put(out, Style::new().yellow(), &escaped(&field.to_string()))?;
        out.push('\n');
    }
    Ok(())
}

fn write_call(out: &mut String, method: &str, path: &str) -> std::fmt::Result {
    writeln!(out, "    {} {}", escaped(method), escaped(path))
}

fn write_lines(out: &mut String, lines: &[String], paint: Paint) -> std::fmt::Result {
    for line in lines.iter().map(|line| escaped(line)) {
        let style = match line.as_bytes().first() {
            Some(b'+') => Style::new().green(),
            Some(b'-') => Style::new().red(),
            _ => Style::new().dimmed(),
        };
        out.push_str("      ");
        paint.put(out, style, &line)?;
        out.push('\n');
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::{HttpsEdge, Id, Key, Kind, Operation};
    use crate::plan::{Change, Plan};

    #[test]
    fn the_pieces_of_a_plan_are_its_text() {
        let create = |at: usize| {
            let key = Key::new(Kind::HttpsEdge, Id::new(&format!("edghts_{at}")));
            let spec = std::sync::Arc::new(HttpsEdge { description: format!("number {at}"), ..HttpsEdge::default() });
            let operations = vec![Operation::create(key.clone(), spec)];
            let (notes, effect, name) = (Vec::new(), Effect::Create, format!("e{at}"));
            Change { key, name, effect, notes, before: None, operations, token_file: None, drift: None }
        };
        let plan = Plan { changes: (0..2 * CHANGES_TOGETHER + 1).map(create).collect(), ..Plan::default() };
        let redacted = RedactedPlan::from_plan(&plan).unwrap();
        let pieces_of = |paint: Paint| pieces(&redacted, paint).collect::<Vec<String>>();
        let (whole, longest) =
            (plan_text(&redacted), pieces_of(Paint::Coloured).iter().map(String::len).max().unwrap());
        assert!(longest < whole.len() / 10, "{longest} of {}", whole.len());
        assert_eq!(whole, pieces_of(Paint::Coloured).concat());
        assert_eq!(pieces_of(Paint::Plain).concat(), anstream::adapter::strip_str(&whole).to_string());
    }
}
