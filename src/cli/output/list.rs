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
pub(crate) trait ListItem {
    /// The item as other commands take it.
    fn name(&self) -> String;

    /// The content of a table column.
    fn cell(&self, column: &str) -> String;

    /// The item as programs read it.
    fn into_value(self) -> Value;
}

impl ListFormat {
    /// Whether programs read the format, rather than people.
    pub(crate) fn is_document(self) -> bool {
        matches!(self, ListFormat::Json | ListFormat::Yaml)
    }

    /// Renders a list. Only the wide table has the columns of `wide`.
    pub(crate) fn list<I: ListItem>(self, columns: &[&str], wide: &[&str], items: Vec<I>) -> String {
        match self {
            ListFormat::Table => table_of(columns, &items),
            ListFormat::Wide => table_of(&[columns, wide].concat(), &items),
            ListFormat::Name => items.iter().map(|item| format!("{}\n", escaped(&item.name()))).collect(),
            ListFormat::Json | ListFormat::Yaml => {
                self.document(&Value::Array(items.into_iter().map(I::into_value).collect()))
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

fn table_of<I: ListItem>(columns: &[&str], items: &[I]) -> String {
    let row = |item: &I| columns.iter().map(|column| item.cell(column)).collect();
    titled(columns, items.iter().map(row).collect())
}
