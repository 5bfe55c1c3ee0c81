//! The report of a replay as text.

use std::fmt::Write as _;

use indicatif::HumanCount;

use super::report::{
    DifferingClass, DifferingRequests, LoggedExample, PlaceCount, ReplayCount, ReplayPlace, ReplayReport,
    TreatedRequests, UnreadLines,
};
use crate::cli::output::table::{shortened, table};
use crate::cli::prelude::*;
use crate::model::traffic::RequestVerdict;

/// The width that lines keep, for what can be cut.
const WIDTH: usize = 80;

pub(super) fn text(report: &ReplayReport, top: usize) -> String {
    let mut out = format!("{} in {}\n", sums(&report.all), lines(report.lines));
    unread(&mut out, &report.unread);
    if let Some(differing) = &report.differing {
        changes(&mut out, differing, report.all.requests, report.without_edge);
    }
    if let Some(counts) = &report.counts {
        places(&mut out, counts, top);
    }
    out
}

fn unread(out: &mut String, unread: &UnreadLines) {
    let counts = [
        (unread.unreadable, "cannot be read"),
        (unread.without_request, "without a request, such as those of port scanners"),
        (unread.without_host, "without a host: set --host"),
    ];
    for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
        let _ = writeln!(out, "Not counted: {} {what}", lines(count));
    }
    for line in &unread.first {
        let _ = writeln!(out, "  {}:{}: {}", escaped(&line.file), line.line, line.reason);
    }
}

fn changes(out: &mut String, differing: &DifferingRequests, all: u64, without_edge: u64) {
    // Mostly a mistyped host: then nothing is known of what the change does.
    if without_edge == all {
        out.push_str("\nNo edge serves the host and port of any request, before or after: nothing was\n");
        out.push_str("compared. Check --host and --port.\n");
        return;
    }
    if without_edge > 0 {
        let requests = format!("{} {}", HumanCount(without_edge), noun(without_edge, "request"));
        let _ = writeln!(out, "\nServed by no edge, before or after: {requests} ({})", share(without_edge, all));
    }
    if differing.count.requests == 0 {
        out.push_str("\nEvery request would be treated as before.\n");
        return;
    }
    let _ =
        writeln!(out, "\nTreated differently: {} ({})", sums(&differing.count), share(differing.count.requests, all));
    for (number, class) in (1..).zip(&differing.classes) {
        one_class(out, number, class);
    }
    more(out, "\n", differing.all_classes - differing.classes.len());
}

fn one_class(out: &mut String, number: usize, class: &DifferingClass) {
    let mark = if class.opens_access { "  OPENS ACCESS" } else { "" };
    let _ = writeln!(out, "\n{number}. {}{mark}", sums(&class.count));
    for (title, side) in [("before", &class.before), ("after", &class.after)] {
        let _ = writeln!(out, "   {title:<7} {}", within(&place(&side.place), 11));
        let _ = writeln!(out, "           {}", within(&verdict(side), 11));
    }
    for (title, modules) in
        [("loses", &class.lost_modules), ("gains", &class.gained_modules), ("changes", &class.changed_modules)]
    {
        if !modules.is_empty() {
            let _ = writeln!(out, "   {title:<7} {}", within(&modules.join(", "), 11));
        }
    }
    for example in &class.examples {
        let _ = writeln!(out, "   line    {}", escaped(&described(example)));
    }
}

/// An example: its place, and what of it may be shown.
fn described(example: &LoggedExample) -> String {
    let shown = [&example.url, &example.client].into_iter().flatten();
    shown.fold(format!("{}:{}", example.file, example.line), |text, part| format!("{text}  {part}"))
}

fn place(place: &ReplayPlace) -> String {
    let Some(edge) = &place.edge else { return "no edge".to_owned() };
    match (&place.route, &place.r#match) {
        (Some(route), Some(pattern)) => format!("{edge}/{route}  {pattern}"),
        _ => format!("{edge}  {}", place.hostports.join(", ")),
    }
}

fn verdict(side: &TreatedRequests) -> String {
    let backend = side.backend_id.as_ref().map_or("not forwarded".to_owned(), |id| format!("forwarded to {id}"));
    let modules = side.modules.join(", ");
    match side.verdict {
        RequestVerdict::Forwarded => backend,
        RequestVerdict::Depends => format!("depends on {modules}; then {backend}"),
        RequestVerdict::Unserved if side.place.edge.is_none() => "no edge serves the host and port".to_owned(),
        RequestVerdict::Unserved if side.place.route.is_none() => "no route matches".to_owned(),
        RequestVerdict::Unserved => "no backend is enabled".to_owned(),
        verdict => format!("{} by {modules}", verdict.as_str()),
    }
}

/// The routes with the most requests, and how many have none.
fn places(out: &mut String, counts: &[PlaceCount], top: usize) {
    let (used, unused): (Vec<&PlaceCount>, Vec<&PlaceCount>) = counts.iter().partition(|it| it.count.requests > 0);
    let mut rows = vec![["REQUESTS", "BYTES", "CLIENTS", "ROUTE", "MATCH"].map(str::to_owned).to_vec()];
    rows.extend(used.iter().take(top).map(|it| {
        let (route, pattern) = match (&it.place.edge, &it.place.route) {
            (None, _) => ("(no edge)".to_owned(), String::new()),
            (Some(edge), None) => (format!("{edge} (no route)"), String::new()),
            (Some(edge), Some(route)) => (format!("{edge}/{route}"), it.place.r#match.clone().unwrap_or_default()),
        };
        vec![HumanCount(it.count.requests).to_string(), size(it.count.bytes), clients(&it.count), route, pattern]
    }));
    if !used.is_empty() {
        let _ = write!(out, "\n{}", table("", &rows));
    }
    more(out, "", used.len().saturating_sub(top));
    if !unused.is_empty() {
        let _ = writeln!(out, "\nWithout a request: {}", number_of(unused.len(), "route"));
        for it in unused.iter().take(top) {
            let _ = writeln!(out, "  {}", within(&place(&it.place), 2));
        }
        more(out, "  ", unused.len().saturating_sub(top));
    }
}

/// The line that counts what is left out.
fn more(out: &mut String, before: &str, count: usize) {
    if count > 0 {
        let _ = writeln!(out, "{before}… and {count} more: see --top and --format json");
    }
}

fn noun(count: u64, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { plural(noun) }
}

fn lines(count: u64) -> String {
    format!("{} {}", HumanCount(count), noun(count, "line"))
}

fn sums(count: &ReplayCount) -> String {
    let (requests, people) = (noun(count.requests, "request"), noun(count.clients, "client"));
    format!("{} {requests}, {}, {} {people}", HumanCount(count.requests), size(count.bytes), clients(count))
}

fn clients(count: &ReplayCount) -> String {
    let about = if count.clients_estimated { "~" } else { "" };
    format!("{about}{}", HumanCount(count.clients))
}

/// Bytes in the largest unit that has at least one.
fn size(bytes: u64) -> String {
    let units = [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)];
    match units.into_iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{bytes} B"),
    }
}

/// A part of all in percent, with one digit behind the point.
fn share(part: u64, all: u64) -> String {
    let thousandths = u128::from(part) * 1000 / u128::from(all.max(1));
    match thousandths {
        0 => "less than 0.1 %".to_owned(),
        _ => format!("{}.{} %", thousandths / 10, thousandths % 10),
    }
}

/// A text without what a terminal interprets, cut to what is left of a line behind an indent.
fn within(text: &str, indent: usize) -> String {
    shortened(&escaped(text), WIDTH.saturating_sub(indent)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!([1, 1000].map(lines), ["1 line", "1,000 lines"]);
        assert_eq!([999, 1000, 1_250_000, u64::MAX].map(size), ["999 B", "1.0 kB", "1.2 MB", "18446744.0 TB"]);
        assert_eq!(
            [(1, 3000), (1, 3), (3, 3), (0, 0)].map(|(part, all)| share(part, all)),
            ["less than 0.1 %", "33.3 %", "100.0 %", "less than 0.1 %"]
        );
        assert_eq!(within(&"a".repeat(90), 10).chars().count(), 70);
    }
}
