//! `edgewright blame`: who set each field of a resource (D77).

use serde_json::Value;

use super::{
    CommandResult, Exit, Failure, get::GetOrigin, history::Form, output::print, store_or_server::StoreOrServer,
    trace::write_table,
};
use crate::{
    api::history::document::{FieldBlame, PATH, ResourceBlame},
    model::{
        code::Code,
        diagnostic::Diagnostic,
        json,
        key::{Key, segment},
        secret::Secrets,
    },
    text::escaped,
};

/// The longest value in the table, in characters.
const LONGEST_VALUE: usize = 60;

/// Show for each field of a resource the revision, time and author that set its value.
///
/// KIND is a manifest kind in any spelling, as for `get`. Values that are older than the history are shown with the oldest
/// revision in it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Kind of the resource, such as `edge` or `route`, or its id alone.
    #[arg(value_name = "KIND|ID")]
    kind: String,
    /// Id of the resource, or its name in the manifest; for a route also `EDGE/ROUTE`, as plans show it.
    #[arg(value_name = "NAME|ID")]
    wanted: Option<String>,
    /// Output format.
    #[arg(long, value_enum, default_value_t = Form::Text, env = "EDGEWRIGHT_HISTORY_FORMAT")]
    format: Form,
    #[command(flatten)]
    pub place: StoreOrServer,
}

impl Args {
    /// Runs the command.
    pub(super) fn run(self) -> CommandResult {
        let origin = GetOrigin::open(&self.place, None)?;
        let key = origin.key_of(&self.kind, self.wanted.as_deref())?;
        let blame = find(&origin, &key)?;
        let text = match self.format {
            Form::Json => json::text(&blame, Secrets::Masked)?,
            Form::Text => table(&blame),
        };
        print(text)?;
        Ok(Exit::Done)
    }
}

fn find(origin: &GetOrigin, key: &Key) -> Result<ResourceBlame, Failure> {
    match origin {
        GetOrigin::Server(client, _) => client.get(&format!("{PATH}/blame?resource={}", segment(&key.path()))),
        GetOrigin::Store(store, _) => match store.blame(key)? {
            Some(blame) => Ok(ResourceBlame::of(key, blame)),
            // Unreachable: the resource was found in the same store.
            None => Err(Diagnostic::error(Code::NotFound, format!("{key} does not exist")).into()),
        },
    }
}

fn table(blame: &ResourceBlame) -> String {
    let mut rows = vec![["FIELD", "REVISION", "TIME", "AUTHOR", "VALUE"].map(str::to_owned).to_vec()];
    rows.extend(blame.fields.iter().map(row));
    let mut out = String::new();
    write_table(&mut out, "", &rows);
    out
}

fn row(field: &FieldBlame) -> Vec<String> {
    let revision = match (field.revision, field.before_revision) {
        (Some(revision), _) => revision.to_string(),
        (None, Some(oldest)) => format!("before {oldest}"),
        (None, None) => String::new(),
    };
    let value = match &field.value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut value = escaped(&value).into_owned();
    if let Some((at, _)) = value.char_indices().nth(LONGEST_VALUE) {
        value.truncate(at);
        value.push('…');
    }
    let author = escaped(&field.author.text()).into_owned();
    vec![escaped(&field.field).into_owned(), revision, field.created_at.clone(), author, value]
}
