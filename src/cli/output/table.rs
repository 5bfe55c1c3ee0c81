//! Tables. On a terminal that is narrower than a table, the widest cells are shortened, but no key.

use std::borrow::Cow;

use super::stdout::terminal_width;
use crate::cli::prelude::*;

/// A formatter's width has 16 bits, and no terminal is wider than this.
const WIDEST: usize = 200;
/// No column becomes narrower than this.
const NARROWEST: usize = 8;
/// The titles of columns that people copy into commands: a part of a key is of no use.
const KEYS: [&str; 4] = ["NAME", "ID", "OWNER", "SOURCE"];
/// The space between two columns.
const GAP: &str = "  ";

/// A table with titles, as all lists have it; empty without rows. An empty cell is `-`.
pub(crate) fn titled(titles: &[&str], rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let or_dash = |cell: String| if cell.is_empty() { "-".to_owned() } else { cell };
    let rows = rows.into_iter().map(|row| row.into_iter().map(or_dash).collect());
    let titles: Vec<String> = titles.iter().map(|title| title.to_uppercase().replace('_', "-")).collect();
    table("", &std::iter::once(titles).chain(rows).collect::<Vec<Vec<String>>>())
}

/// Aligns the columns of rows, and escapes the characters that a terminal interprets.
pub(crate) fn table<C: AsRef<str>>(indent: &str, rows: &[Vec<C>]) -> String {
    let rows = rows.iter().map(|row| row.iter().map(|cell| escaped(cell.as_ref())).collect());
    let rows: Vec<Vec<Cow<'_, str>>> = rows.collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default().min(WIDEST)
    };
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let mut widths: Vec<usize> = (0..columns).map(width).collect();
    if let Some(room) = terminal_width() {
        let titles = rows.first().into_iter().flatten();
        let keys: Vec<bool> = titles.map(|title| KEYS.contains(&title.as_ref())).collect();
        shrink_columns(&mut widths, &keys, room.saturating_sub(indent.len()));
    }
    let line = |row: &Vec<Cow<'_, str>>| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{:<width$}", shortened(cell, width)));
        format!("{indent}{}\n", cells.collect::<Vec<_>>().join(GAP).trim_end())
    };
    rows.iter().map(line).collect()
}

/// Narrows the widest columns without keys until the table has room, as far as that is possible.
fn shrink_columns(widths: &mut [usize], keys: &[bool], room: usize) {
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    let mut excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(room);
    while excess > 0 {
        let candidates = widths.iter_mut().zip(keys).filter(|(_, is_key)| !**is_key);
        let widest = candidates.map(|(width, _)| width).max();
        let Some(widest) = widest.filter(|width| **width > NARROWEST) else { break };
        *widest -= 1;
        excess -= 1;
    }
}

/// A cell of at most this width, with `…` for what is left out.
fn shortened(cell: &str, width: usize) -> Cow<'_, str> {
    match cell.char_indices().nth(width) {
        // A cell that is wider than any terminal is not aligned.
        Some(_) if width < WIDEST => {
            let kept: String = cell.chars().take(width.saturating_sub(1)).collect();
            Cow::Owned(kept + "…")
        }
        _ => Cow::Borrowed(cell),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_columns_are_narrowed_and_only_as_far_as_needed() {
        let shrunk = |widths: &[usize], room: usize| {
            let mut widths = widths.to_vec();
            shrink_columns(&mut widths, &[true, false, false], room);
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
    fn a_list_without_rows_is_empty_and_an_empty_cell_is_a_dash() {
        assert_eq!(titled(&["name"], Vec::new()), "");
        let table = titled(&["name", "created_at"], vec![vec![String::new(), "now".to_owned()]]);
        assert_eq!(table, "NAME  CREATED-AT\n-     now\n");
    }
}
