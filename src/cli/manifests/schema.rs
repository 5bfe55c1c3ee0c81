//! `edgewright schema`.

use crate::cli::command_prelude::*;
use crate::cli::input::choice::Choice;
use crate::cli::output::generated::GeneratedFiles;
use crate::manifest::load::schema::{ANY, all};
use crate::server::openapi::document;

/// The name of the API's document among the schemas.
const OPENAPI: &str = "openapi";

/// Print the JSON Schemas of manifests, or the OpenAPI document.
///
/// `--write` and `--check` keep a folder of them up to date.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Kind to print the schema of, or `openapi` (default: a schema for any manifest).
    #[arg(value_name = "KIND", conflicts_with_all = ["write", "check"])]
    #[arg(value_parser = kind(), hide_possible_values = true)]
    kind: Option<String>,
    /// Write all schemas to a folder.
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    write: Option<PathBuf>,
    /// Fail if a schema in a folder is out of date.
    #[arg(long, value_name = "DIR")]
    check: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self) -> CommandResult {
        let schemas = all().into_iter().chain([(OPENAPI.to_owned(), document(VERSION_HEADER, ""))]);
        let files: BTreeMap<String, String> = schemas.map(|(name, schema)| (name, text(&schema))).collect();
        if let Some(folder) = self.write {
            return named(files).write(&folder);
        }
        if let Some(folder) = self.check {
            return named(files).check(&folder);
        }
        let name = self.kind.unwrap_or_else(|| ANY.to_owned());
        let Some(text) = files.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name)).map(|(_, text)| text) else {
            return Err(unknown(&name, &files));
        };
        print(text)
    }
}

/// Reads a kind, which need not be known: the command says which one is near.
fn kind() -> Choice<String> {
    Choice::new(|name| Ok(name.to_owned()), || all().into_keys().chain([OPENAPI.to_owned()]).collect())
}

fn named(schemas: BTreeMap<String, String>) -> GeneratedFiles {
    let files = schemas.into_iter().map(|(name, text)| (format!("{name}.json"), text)).collect();
    GeneratedFiles { noun: "schemas", command: "edgewright schema --write", files }
}

fn unknown(name: &str, files: &BTreeMap<String, String>) -> Failure {
    let fault = Diagnostic::error(Code::UnknownKind, format!("unknown kind `{name}`"));
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    fault.help(suggest(name, names.iter().copied(), format!("use one of {}", names.join(", ")))).into()
}

fn text(schema: &Value) -> String {
    format!("{schema:#}\n")
}
