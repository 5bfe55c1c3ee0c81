//! Tables. On a terminal that is narrower than a table, the widest cells are shortened, but no key, and paths last. A wide table
//! is never shortened, and a wrapped one has more lines instead.

use std::borrow::Cow;

use textwrap::{WordSeparator, WordSplitter, WrapAlgorithm};

use super::stdout::terminal_width;
use crate::cli::prelude::*;

/// A formatter's width has 16 bits, and no terminal is wider than this.
const WIDEST: usize = 200;
/// No column becomes narrower than this.
const NARROWEST: usize = 8;
/// No column of paths becomes narrower than this.
const NARROWEST_PATH: usize = 24;
/// The titles of columns of which a part is of no use: people copy them into commands, or compare them.
const KEYS: [&str; 5] = ["NAME", "ID", "OWNER", "SOURCE", "TIME"];
/// The title of a column of paths. Many begin alike, so they lose their middle, and only what other columns cannot give.
const PATHS: &str = "FIELD";
const GAP: &str = "  ";

/// A table with titles, as all lists have it; empty without rows. An empty cell is `-`. A wide table keeps every cell whole.
pub(crate) fn titled(titles: &[&str], rows: Vec<Vec<String>>, is_wide: bool) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let or_dash = |cell: String| if cell.is_empty() { "-".to_owned() } else { cell };
    let rows = rows.into_iter().map(|row| row.into_iter().map(or_dash).collect());
    let titles: Vec<String> = titles.iter().map(|title| title.to_uppercase().replace('_', "-")).collect();
    let rows: Vec<Vec<String>> = std::iter::once(titles).chain(rows).collect();
    aligned("", &rows, terminal_width().filter(|_| !is_wide))
}

/// Aligns the columns of rows, and escapes the characters that a terminal interprets.
pub(crate) fn table<C: AsRef<str>>(indent: &str, rows: &[Vec<C>]) -> String {
    aligned(indent, rows, terminal_width())
}

/// Aligns the columns of rows, and keeps every cell whole.
pub(crate) fn wide_table<C: AsRef<str>>(rows: &[Vec<C>]) -> String {
    aligned("", rows, None)
}

/// Aligns the columns of rows, and wraps the last one on a terminal. Its cells are texts that nothing else shows whole.
pub(crate) fn wrapped_table<C: AsRef<str>>(indent: &str, rows: &[Vec<C>]) -> String {
    let whole = aligned(indent, rows, None);
    terminal_width().map(|room| wrapped(&whole, last_column(indent, rows), room)).unwrap_or(whole)
}

/// A label and its text, which wraps beside the label on a terminal.
pub(crate) fn labelled(label: &str, text: &str) -> String {
    let line = format!("{label}{text}");
    match terminal_width() {
        Some(room) => wrapped(&line, label.chars().count(), room).trim_end().to_owned(),
        None => line,
    }
}

/// Aligns the columns of rows. A terminal that is too narrow for the last column does not get it: it has what people need least.
pub(crate) fn table_with_optional_end<C: AsRef<str>>(indent: &str, rows: &[Vec<C>]) -> String {
    without_end(indent, rows, terminal_width())
}

fn without_end<C: AsRef<str>>(indent: &str, rows: &[Vec<C>], room: Option<usize>) -> String {
    let whole = aligned(indent, rows, None);
    match room {
        Some(room) if whole.lines().any(|line| line.chars().count() > room) => {
            let shorter = rows.iter().map(|row| row.iter().take(row.len().saturating_sub(1)).collect());
            aligned(indent, &shorter.collect::<Vec<Vec<&C>>>(), Some(room))
        }
        _ => whole,
    }
}

/// Where the last of some columns begins.
fn last_column<C: AsRef<str>>(indent: &str, rows: &[Vec<C>]) -> usize {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| escaped(cell.as_ref()).chars().count()).max().unwrap_or_default().min(WIDEST)
    };
    let before: usize = (0..columns.saturating_sub(1)).map(|column| width(column) + GAP.len()).sum();
    indent.len() + before
}

/// Wraps text between words: commands, paths and addresses stay whole, so that they can be copied.
pub(super) fn between_words(room: usize) -> textwrap::Options<'static> {
    textwrap::Options::new(room)
        .break_words(false)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
}

/// Wraps lines between words, and aligns what follows with a column.
fn wrapped(lines: &str, column: usize, room: usize) -> String {
    let indent = " ".repeat(column);
    let options = between_words(room).subsequent_indent(&indent);
    lines.lines().map(|line| textwrap::fill(line, &options) + "\n").collect()
}

/// Aligns the columns of rows, and shortens cells if there is too little room.
fn aligned<C: AsRef<str>>(indent: &str, rows: &[Vec<C>], room: Option<usize>) -> String {
    let rows = rows.iter().map(|row| row.iter().map(|cell| escaped(cell.as_ref())).collect());
    let rows: Vec<Vec<Cow<'_, str>>> = rows.collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default().min(WIDEST)
    };
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let mut widths: Vec<usize> = (0..columns).map(width).collect();
    let titles = || rows.first().into_iter().flatten().map(|title| &**title);
    let is_path: Vec<bool> = titles().map(|title: &str| title == PATHS).collect();
    if let Some(room) = room.map(|room| room.saturating_sub(indent.len())) {
        let keeps: Vec<bool> = titles().map(|title: &str| title == PATHS || KEYS.contains(&title)).collect();
        shrink_columns(&mut widths, &keeps, room, NARROWEST);
        let others: Vec<bool> = is_path.iter().map(|is_path| !is_path).collect();
        shrink_columns(&mut widths, &others, room, NARROWEST_PATH);
    }
    let line = |row: &Vec<Cow<'_, str>>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            let kept = match is_path.get(column) {
                Some(true) => without_middle(cell, width),
                _ => shortened(cell, width),
            };
            format!("{kept:<width$}")
        });
        format!("{indent}{}\n", cells.collect::<Vec<_>>().join(GAP).trim_end())
    };
    rows.iter().map(line).collect()
}

/// Narrows the widest columns that are not kept until the table has room, as far as that is possible.
fn shrink_columns(widths: &mut [usize], keeps: &[bool], room: usize, narrowest: usize) {
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    let mut excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(room);
    while excess > 0 {
        let candidates = widths.iter_mut().zip(keeps).filter(|(_, is_kept)| !**is_kept);
        let widest = candidates.map(|(width, _)| width).max();
        let Some(widest) = widest.filter(|width| **width > narrowest) else { break };
        *widest -= 1;
        excess -= 1;
    }
}

/// A cell of at most this width, with `…` for what is left out.
pub(crate) fn shortened(cell: &str, width: usize) -> Cow<'_, str> {
    match cell.char_indices().nth(width) {
        // A cell that is wider than any terminal is not aligned.
        Some(_) if width < WIDEST => {
            let kept: String = cell.chars().take(width.saturating_sub(1)).collect();
            Cow::Owned(kept + "…")
        }
        _ => Cow::Borrowed(cell),
    }
}

/// A path of at most this width, with `…` for what is left out of its middle: its end is what tells it from others.
fn without_middle(path: &str, width: usize) -> Cow<'_, str> {
    let length = path.chars().count();
    if length <= width || width == WIDEST {
        return Cow::Borrowed(path);
    }
    let kept = width.saturating_sub(1);
    let end = kept * 2 / 3;
    let begin = path.chars().take(kept - end);
    Cow::Owned(begin.chain(std::iter::once('…')).chain(path.chars().skip(length - end)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_columns_are_narrowed_and_only_as_far_as_needed() {
        let shrunk = |widths: &[usize], room: usize| {
            let mut widths = widths.to_vec();
            shrink_columns(&mut widths, &[true, false, false], room, NARROWEST);
            widths
        };
        assert_eq!(shrunk(&[40, 30, 5], 79), [40, 30, 5]);
        assert_eq!(shrunk(&[40, 30, 5], 70), [40, 21, 5]);
        assert_eq!(shrunk(&[40, 30, 15], 68), [40, 12, 12]);
        assert_eq!(shrunk(&[40, 30, 5], 40), [40, 8, 5]);
        assert_eq!((shortened("description", 8), shortened("short", 8)), ("descrip…".into(), "short".into()));
        assert_eq!(shortened("größe", 5), "größe");
    }

    #[test]
    fn a_path_loses_its_middle_after_the_values_and_a_wide_table_nothing() {
        let field = |name: &str| format!("/response_headers/add/X-{name}");
        let rows = vec![
            ["FIELD", "TIME", "VALUE"].map(str::to_owned).to_vec(),
            vec![field("Served-By"), "2026-11-22T10:00:00Z".to_owned(), "a".repeat(30)],
            vec![field("Request-Id"), "2026-11-22T10:00:00Z".to_owned(), "b".repeat(30)],
        ];
        let roomy = aligned("", &rows, Some(80));
        assert!(roomy.contains(&field("Served-By")) && roomy.contains(&field("Request-Id")), "{roomy}");
        assert!(roomy.contains('…') && roomy.lines().all(|line| line.chars().count() <= 80), "{roomy}");
        let narrow = aligned("", &rows, Some(60));
        assert!(narrow.contains("/X-Served-By ") && narrow.contains("/X-Request-Id "), "{narrow}");
        assert!(
            narrow.contains("10:00:00Z  aaaaaaa…") && narrow.lines().all(|line| line.chars().count() <= 60),
            "{narrow}"
        );
        assert!(!aligned("", &rows, None).contains('…'));
        assert_eq!((without_middle("/a/b", 4), without_middle("/abcdefgh", 7)), ("/a/b".into(), "/a…efgh".into()));
    }

    #[test]
    fn a_column_that_is_optional_goes_before_any_cell_is_cut() {
        let row =
            |name: &str, answer: &str| ["*", name, answer, "edghtsrt_ADpg3OFI1R8uXxVfmQ3uuFyjY61"].map(str::to_owned);
        let rows = [row("home", "handles the request").to_vec(), row("search", "path differs").to_vec()];
        let whole = aligned("  ", &rows, None);
        for room in [None, Some(100), Some(70)] {
            assert_eq!(without_end("  ", &rows, room), whole, "{room:?}");
        }
        let lines = ["  *  home    handles the request", "  *  search  path differs"];
        for room in [69, 32] {
            assert_eq!(without_end("  ", &rows, Some(room)), lines.map(|line| format!("{line}\n")).concat(), "{room}");
        }
        assert!(without_end("  ", &rows, Some(31)).contains("handles the reque…"));
    }

    #[test]
    fn the_last_column_wraps_between_words() {
        let row = |number: &str, module: &str, note: &str| [number, module, "passes", note].map(str::to_owned).to_vec();
        let rows =
            [row("1", "backend", "bkd_1"), row("2", "response_headers", "+Content-Security-Policy, +Referrer-Policy")];
        let whole = aligned("  ", &rows, None);
        let column = last_column("  ", &rows);
        assert_eq!(wrapped(&whole, column, 80), whole);
        let lines = [
            "  1  backend           passes  bkd_1",
            "  2  response_headers  passes  +Content-Security-Policy,",
            "                               +Referrer-Policy",
        ];
        assert_eq!(wrapped(&whole, column, 60), lines.map(|line| format!("{line}\n")).concat());
        // A word that is longer than the room stays whole.
        assert!(wrapped(&whole, column, 40).contains(" +Content-Security-Policy,\n"));
    }

    #[test]
    fn a_list_without_rows_is_empty_and_an_empty_cell_is_a_dash() {
        assert_eq!(titled(&["name"], Vec::new(), false), "");
        let table = titled(&["name", "created_at"], vec![vec![String::new(), "now".to_owned()]], false);
        assert_eq!(table, "NAME  CREATED-AT\n-     now\n");
    }
}
