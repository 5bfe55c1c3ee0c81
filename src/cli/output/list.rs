//! Lists of resources, sources, keys, owners and contexts, in the same formats (D31).

use clap::ValueEnum;

use super::diagnostics::say;
use super::table::titled;
use crate::cli::prelude::*;
use crate::model::decode::one_of;
use crate::syntax::yaml::to_yaml;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    Table,
    Wide,
    Name,
    Json,
    Yaml,
}

/// The options of a list. They have no variables: a configuration file that sets `format` means that of reports, and each list
/// has other columns.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ListArgs {
    /// Output format; `name` prints the ID or name of each item alone, one per line.
    #[arg(short = 'o', long = "format", value_enum, default_value_t = ListFormat::Table)]
    pub format: ListFormat,
    /// Sort by a column of the table or of `wide` (default: the newest first).
    #[arg(long, value_name = "COLUMN")]
    sort_by: Option<String>,
}

impl ListArgs {
    /// Renders a list, sorted if that is asked for. `what` are the items in the plural. Only the wide table has the columns of
    /// `wide`.
    pub(crate) fn render(
        &self,
        what: &str,
        columns: &[&'static str],
        wide: &[&'static str],
        mut items: Vec<ListItem>,
    ) -> Result<String, Failure> {
        if items.is_empty() && !self.format.is_document() {
            say(&format!("No {what} found."));
        }
        if let Some(column) = &self.sort_by {
            sort(&mut items, what, column, &[columns, wide].concat())?;
        }
        Ok(self.format.list(columns, wide, items))
    }
}

/// A cell as tables are sorted: numbers by their values, before texts.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SortKey {
    Number(u64),
    Text(String),
}

impl SortKey {
    pub(crate) fn new(cell: String) -> Self {
        match cell.parse() {
            Ok(number) => SortKey::Number(number),
            Err(_) => SortKey::Text(cell),
        }
    }
}

/// Sorts the items of a list by one of these columns. `what` are the items in the plural.
pub(crate) fn sort(items: &mut [ListItem], what: &str, column: &str, columns: &[&str]) -> Result<(), Failure> {
    let field = column.to_lowercase().replace('-', "_");
    if !columns.contains(&field.as_str()) {
        return Err(no_column(what, column, columns));
    }
    items.sort_by_cached_key(|item| SortKey::new(item.cell(&field)));
    Ok(())
}

/// The failure for a column that a table does not have.
pub(crate) fn no_column(what: &str, column: &str, columns: &[&str]) -> Failure {
    let names: Vec<String> = columns.iter().map(|column| option_value(column)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let message = format!("{what} have no column `{}`", printable(column));
    Diagnostic::error(Code::Parameter, message).help(one_of(column, &names)).into()
}

/// A column as `--sort-by` takes it.
pub(crate) fn option_value(column: &str) -> String {
    column.to_lowercase().replace('_', "-")
}

pub(crate) struct ListItem {
    /// The item as other commands take it.
    pub name: String,
    /// The item as programs read it. Its fields are the columns of a table.
    pub document: Value,
    /// The columns that are no field, or whose text is another one.
    pub columns: Vec<(&'static str, String)>,
}

impl ListItem {
    /// The content of a table column.
    pub(crate) fn cell(&self, column: &str) -> String {
        if let Some((_, text)) = self.columns.iter().find(|(name, _)| *name == column) {
            return text.clone();
        }
        match self.document.get(column) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
            Some(other) => other.to_string(),
        }
    }
}

impl ListFormat {
    /// Whether programs read the format, rather than people.
    pub(crate) fn is_document(self) -> bool {
        matches!(self, ListFormat::Json | ListFormat::Yaml)
    }

    /// Renders a list. Only the wide table has the columns of `wide`.
    pub(crate) fn list(self, columns: &[&str], wide: &[&str], items: Vec<ListItem>) -> String {
        match self {
            ListFormat::Table => table_of(columns, &items, false),
            ListFormat::Wide => table_of(&[columns, wide].concat(), &items, true),
            ListFormat::Name => items.iter().map(|item| format!("{}\n", escaped(&item.name))).collect(),
            ListFormat::Json | ListFormat::Yaml => {
                self.document(&Value::Array(items.into_iter().map(|item| item.document).collect()))
            }
        }
    }

    /// Renders a document for programs.
    pub(crate) fn document(self, document: &Value) -> String {
        match self {
            ListFormat::Yaml => to_yaml(document),
            _ => format!("{document:#}\n"),
        }
    }
}

fn table_of(columns: &[&str], items: &[ListItem], is_wide: bool) -> String {
    let row = |item: &ListItem| columns.iter().map(|column| item.cell(column)).collect();
    titled(columns, items.iter().map(row).collect(), is_wide)
}
