//! A plan as text for a terminal: by resource, each call on a line of its own, and what it changes (D30).

use std::fmt::Write;

use owo_colors::OwoColorize;

use super::{
    Effect,
    outline::{Outline, OutlinedChange},
};

/// The plan with colour; whoever prints it strips the colour where it has no place.
pub fn text(plan: &Outline) -> String {
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

fn write_change(out: &mut String, change: &OutlinedChange) -> std::fmt::Result {
    let title = format!("{} {}", change.kind, change.name);
    let (sign, note) = mark(change.effect);
    let sign = match change.effect {
        Effect::Create | Effect::Replace => sign.green().to_string(),
        Effect::Delete | Effect::Replaced => sign.red().to_string(),
        _ => sign.yellow().to_string(),
    };
    writeln!(out, "{sign} {}  {}{note}", title.bold(), change.id.dimmed())?;
    for call in &change.calls {
        writeln!(out, "    {} {}", call.method, call.path)?;
        for line in &call.lines {
            match line.as_bytes().first() {
                Some(b'+') => writeln!(out, "      {}", line.green())?,
                Some(b'-') => writeln!(out, "      {}", line.red())?,
                _ => writeln!(out, "      {}", line.dimmed())?,
            }
        }
    }
    writeln!(out)
}
