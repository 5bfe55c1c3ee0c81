//! The Markdown of generated pages.

use std::collections::{BTreeMap, BTreeSet};

/// The number of sections from which a row that they share is shown once for all of them.
const SHARED_BY: usize = 3;

/// Escapes a text in which only code is marked.
pub(super) fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(number, part)| match number % 2 {
        0 => part.replace('<', "&lt;").replace('*', "\\*"),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

pub(super) fn code(text: &str) -> String {
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

/// A paragraph; nothing without a text.
pub(super) fn paragraph(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{text}\n\n") }
}

/// A table; nothing without rows.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let cell = |text: &String| text.replace('|', "\\|").replace('\n', " ");
    let line = |row: &Vec<String>| format!("| {} |\n", row.iter().map(cell).collect::<Vec<_>>().join(" | "));
    let rule = vec!["---"; head.len()].join(" | ");
    let rows: String = rows.iter().map(line).collect();
    format!("| {} |\n| {rule} |\n{rows}\n", head.join(" | "))
}

/// The rows that several sections of a page have. The page shows them once.
pub(super) struct SharedRows {
    head: &'static [&'static str],
    /// A link to the table of the rows.
    link: &'static str,
    rows: BTreeSet<Vec<String>>,
}

impl SharedRows {
    /// Finds them among the rows of all sections.
    pub(super) fn new(
        head: &'static [&'static str],
        link: &'static str,
        all: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        let mut uses: BTreeMap<Vec<String>, usize> = BTreeMap::new();
        for row in all {
            *uses.entry(row).or_default() += 1;
        }
        let rows = uses.into_iter().filter(|(_, count)| *count >= SHARED_BY).map(|(row, _)| row).collect();
        Self { head, link, rows }
    }

    /// Whether a row is one of them.
    pub(super) fn has(&self, row: &[String]) -> bool {
        self.rows.contains(row)
    }

    /// The table of all of them.
    pub(super) fn table(&self) -> String {
        let rows: Vec<Vec<String>> = self.rows.iter().cloned().collect();
        table(self.head, &rows)
    }

    /// The rows of one section: a table of those that only it has, and the names of the others.
    pub(super) fn section(&self, rows: Vec<Vec<String>>) -> String {
        let (shared, own): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| self.has(row));
        let names: Vec<&str> = shared.iter().filter_map(|row| row.first().map(String::as_str)).collect();
        let names = if names.is_empty() { String::new() } else { format!("{}: {}.", self.link, names.join(", ")) };
        table(self.head, &own) + &paragraph(&names)
    }
}
