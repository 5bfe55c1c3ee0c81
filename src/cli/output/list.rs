//! Lists of resources, sources, keys, owners and contexts, in the same formats (D31).

use clap::ValueEnum;

use super::table::titled;
use crate::{cli::prelude::*, syntax::text::yaml::to_yaml};

/// The format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    Table,
    Wide,
    Name,
    Json,
    Yaml,
}

/// The option of a list.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct ListArgs {
    /// Output format.
    // Without a variable: a configuration file that sets `format` means that of reports.
    #[arg(short = 'o', long = "format", value_enum, default_value_t = ListFormat::Table)]
    pub format: ListFormat,
}

/// An item of a list.
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
