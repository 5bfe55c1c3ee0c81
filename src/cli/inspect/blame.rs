//! `edgewright blame`: who set each field of a resource (D77).

use std::fmt::Write as _;

use super::{get::ResourceReader, history::HistoryForm};
use crate::cli::command_prelude::*;
use crate::cli::config::options::scalar_text;
use crate::cli::output::table::{table, wide_table};
use crate::server::operations::history::document::{FieldBlame, PATH, ResourceBlame};
use crate::syntax::text::beginning;

/// The longest value in the table, in characters.
const LONGEST_VALUE: usize = 60;

/// Show who set each field of a resource, when, in which revision.
///
/// KIND is a manifest kind in any spelling, as for `get`, and can be left out if no resource of another kind has the name.
/// Numbers in brackets refer to the authors below the table. Values that are older than the history are shown with the oldest
/// revision in it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Kind of the resource, such as `edge` or `route`; or alone, its ID, its name such as `storefront/cart`, or both
    /// kind and name such as `edge/storefront`.
    #[arg(value_name = "KIND|ID|NAME")]
    kind: String,
    /// ID of the resource, or its name in the manifest; for a route also `EDGE/ROUTE`, as plans show it.
    #[arg(value_name = "NAME|ID")]
    wanted: Option<String>,
    /// Output format; `wide` shortens no value, and `json` is what GET `/history/blame` returns.
    #[arg(short = 'o', long, value_enum, default_value_t = HistoryForm::Text, env = "EDGEWRIGHT_HISTORY_FORMAT")]
    format: HistoryForm,
    #[command(flatten)]
    pub place: StoreOrServer,
}

impl Args {
    pub(crate) fn run(self) -> CommandResult {
        let resources = ResourceReader::open(&self.place, None)?;
        let key = resources.find_key(&self.kind, self.wanted.as_deref())?;
        let blame = find(&resources, &key)?;
        let text = match self.format {
            HistoryForm::Json => json::text(&blame, Secrets::Masked)?,
            HistoryForm::Text => text(&blame, false),
            HistoryForm::Wide => text(&blame, true),
        };
        print(text)
    }
}

fn find(resources: &ResourceReader, key: &Key) -> Result<ResourceBlame, Failure> {
    match resources {
        ResourceReader::Server(client, _) => client.get(&format!("{PATH}/blame?resource={}", segment(&key.path()))),
        ResourceReader::Store(store, _) => match store.blame(key)? {
            Some(blame) => Ok(ResourceBlame::new(key, blame, &store.snapshot())),
            // Unreachable: the resource was found in the same store.
            None => Err(Diagnostic::error(Code::NotFound, format!("{key} does not exist")).into()),
        },
    }
}

/// The fields as a table, and below it each author once, under the number that the table has.
fn text(blame: &ResourceBlame, is_wide: bool) -> String {
    let mut authors: Vec<String> = Vec::new();
    let mut rows = vec![["FIELD", "REVISION", "TIME", "BY", "VALUE"].map(str::to_owned).to_vec()];
    rows.extend(blame.fields.iter().map(|field| row(field, is_wide, &mut authors)));
    let mut out = if is_wide { wide_table(&rows) } else { table("", &rows) };
    for (number, author) in (1..).zip(&authors) {
        let break_before = if number == 1 { "\n" } else { "" };
        let _ = writeln!(out, "{break_before}[{number}] {author}");
    }
    out
}

fn row(field: &FieldBlame, is_wide: bool, authors: &mut Vec<String>) -> Vec<String> {
    let revision = match (field.revision, field.before_revision) {
        (Some(revision), _) => revision.to_string(),
        (None, Some(oldest)) => format!("before {oldest}"),
        (None, None) => String::new(),
    };
    let value = escaped(&scalar_text(field.value.clone())).into_owned();
    let value = if is_wide { value } else { beginning(&value, LONGEST_VALUE).into_owned() };
    let by = note(escaped(&field.author_text()).into_owned(), authors);
    vec![field.field.clone(), revision, field.created_at.clone(), by, value]
}

/// The number of an author, which is added unless it is known.
fn note(author: String, authors: &mut Vec<String>) -> String {
    if author.is_empty() {
        return author;
    }
    let at = authors.iter().position(|known| *known == author).unwrap_or_else(|| {
        authors.push(author);
        authors.len() - 1
    });
    format!("[{}]", at + 1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    #[test]
    fn an_author_is_told_once() {
        let field = |field: &str, by: &str, revision: Option<u64>| {
            let before_revision = if revision.is_none() { "1" } else { "null" };
            let revision = revision.map_or("null".to_owned(), |revision| revision.to_string());
            format!(
                r#"{{"field":"{field}","value":"v","revision":{revision},"before_revision":{before_revision},"created_at":"","by":"{by}","key_id":"","owner_id":"","source":"shop","commit":"","commit_author_name":"","commit_author_email":"","commit_message":"","rollback_to":null}}"#
            )
        };
        let fields = [
            field("/a", "source", Some(2)),
            field("/b", "local", Some(3)),
            field("/c", "source", Some(4)),
            field("/d", "", None),
        ];
        let text =
            format!(r#"{{"kind":"HttpsEdge","resource":"/edges/https/e","name":"","fields":[{}]}}"#, fields.join(","));
        let told = super::text(&serde_json::from_str(&text).unwrap(), false);
        let words: Vec<Vec<&str>> = told.lines().map(|line| line.split_whitespace().collect()).collect();
        let expected = [
            vec!["FIELD", "REVISION", "TIME", "BY", "VALUE"],
            vec!["/a", "2", "[1]", "v"],
            vec!["/b", "3", "[2]", "v"],
            vec!["/c", "4", "[1]", "v"],
            vec!["/d", "before", "1", "v"],
            vec![],
            vec!["[1]", "source", "`shop`"],
            vec!["[2]", "command", "line"],
        ];
        assert_eq!(words, expected);
    }
}
