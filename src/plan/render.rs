//! A plan as text for a terminal: each resource with its calls, one per line, and the changed lines (D30).

use std::fmt::Write;

use owo_colors::OwoColorize;
use rayon::{iter::ParallelIterator, slice::ParallelSlice};

use super::{
    Effect,
    outline::{Outline, OutlinedChange},
};
use crate::text::escaped;

/// How many changes are rendered at once.
const CHANGES_AT_ONCE: usize = 256;

/// Renders the plan with colour codes; the caller strips them if needed.
pub(crate) fn text(plan: &Outline) -> String {
    pieces(plan, |piece| piece).concat()
}

/// Renders the plan with colour codes, in pieces; `finish` completes each piece, such as by stripping the codes.
pub(crate) fn pieces(plan: &Outline, finish: impl Fn(String) -> String + Sync) -> Vec<String> {
    let piece = |changes: &[OutlinedChange]| {
        let mut out = String::new();
        for change in changes {
            let _ = write_change(&mut out, change);
        }
        finish(out)
    };
    let mut pieces: Vec<String> = plan.changes.par_chunks(CHANGES_AT_ONCE).map(piece).collect();
    pieces.push(finish(match plan.is_empty() {
        true => format!("No changes: {} unchanged.\n", plan.unchanged),
        false => format!("{}\n", plan.summary().bold()),
    }));
    pieces
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
pub(crate) fn notes(change: &OutlinedChange) -> String {
    let what = match change.effect {
        Effect::Replace => Some("replaces the one deleted below"),
        Effect::Adopt => Some("adopted without changes"),
        Effect::Replaced => Some("replaced by the one above"),
        _ => None,
    };
    let notes: Vec<&str> = what.into_iter().chain(change.notes.iter().map(String::as_str)).collect();
    if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) }
}

fn write_change(out: &mut String, change: &OutlinedChange) -> std::fmt::Result {
    let title = format!("{} {}", change.kind, change.name);
    let (title, id, notes) = (escaped(&title), escaped(&change.id), notes(change));
    let sign = sign(change.effect);
    let sign = match change.effect {
        Effect::Create | Effect::Replace => sign.green().to_string(),
        Effect::Delete | Effect::Replaced => sign.red().to_string(),
        _ => sign.yellow().to_string(),
    };
    writeln!(out, "{sign} {}  {}{}", title.bold(), id.dimmed(), escaped(&notes))?;
    for call in &change.calls {
        writeln!(out, "    {} {}", escaped(&call.method), escaped(&call.path))?;
        for line in call.lines.iter().map(|line| escaped(line)) {
            match line.as_bytes().first() {
                Some(b'+') => writeln!(out, "      {}", line.green())?,
                Some(b'-') => writeln!(out, "      {}", line.red())?,
                _ => writeln!(out, "      {}", line.dimmed())?,
            }
        }
    }
    writeln!(out)
}
