//! Tables on a terminal.

use std::borrow::Cow;

use crate::cli::prelude::*;

/// A formatter's width has 16 bits, and no terminal is wider than this.
const WIDEST: usize = 200;

/// Aligns the columns of rows, and escapes the characters that a terminal interprets.
pub(crate) fn table<C: AsRef<str>>(indent: &str, rows: &[Vec<C>]) -> String {
    let rows = rows.iter().map(|row| row.iter().map(|cell| escaped(cell.as_ref())).collect());
    let rows: Vec<Vec<Cow<'_, str>>> = rows.collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default().min(WIDEST)
    };
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<Cow<'_, str>>| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        format!("{indent}{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}
