//! `edgewright schema`.

use std::fs;

use crate::{
    cli::prelude::*,
    manifest::load::schema::{ANY, all},
    server::{VERSION_HEADER, openapi::document},
};

/// The name of the API's document among the schemas.
const OPENAPI: &str = "openapi";

/// Print the JSON Schemas of manifests or the OpenAPI document, or keep a folder of them up to date.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Kind to print the schema of, or `openapi` (default: a schema for any manifest).
    #[arg(value_name = "KIND", conflicts_with_all = ["write", "check"])]
    kind: Option<String>,
    /// Write all schemas to a folder.
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    write: Option<PathBuf>,
    /// Fail if a schema in a folder is out of date.
    #[arg(long, value_name = "DIR")]
    check: Option<PathBuf>,
}

impl Args {
    /// Runs the command.
    pub(crate) fn run(self) -> CommandResult {
        let schemas = all().into_iter().chain([(OPENAPI.to_owned(), document(VERSION_HEADER, ""))]);
        let files: BTreeMap<String, String> = schemas.map(|(name, schema)| (name, text(&schema))).collect();
        if let Some(folder) = self.write {
            let failed = |error: std::io::Error| {
                Diagnostic::error(Code::Unreadable, format!("cannot write {}: {error}", folder.display()))
            };
            fs::create_dir_all(&folder).map_err(failed)?;
            for (name, text) in &files {
                fs::write(folder.join(format!("{name}.json")), text).map_err(failed)?;
            }
            return Ok(Exit::Done);
        }
        if let Some(folder) = self.check {
            let stale = files.iter().filter(|(name, text)| {
                fs::read_to_string(folder.join(format!("{name}.json"))).ok().as_ref() != Some(*text)
            });
            let stale: Vec<&str> = stale.map(|(name, _)| name.as_str()).collect();
            if stale.is_empty() {
                return Ok(Exit::Done);
            }
            let fault = Diagnostic::error(
                Code::Conflict,
                format!("outdated schemas in {}: {}", folder.display(), stale.join(", ")),
            );
            return Err(fault.help(format!("run `edgewright schema --write {}`", folder.display())).into());
        }
        let name = self.kind.unwrap_or_else(|| ANY.to_owned());
        let Some(text) = files.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name)).map(|(_, text)| text) else {
            return Err(unknown(&name, &files));
        };
        print(text)
    }
}

fn unknown(name: &str, files: &BTreeMap<String, String>) -> Failure {
    let fault = Diagnostic::error(Code::UnknownKind, format!("unknown kind `{name}`"));
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    match nearest(name, names.iter().copied()) {
        Some(near) => fault.help(format!("did you mean `{near}`?")),
        None => fault.help(format!("use one of {}", names.join(", "))),
    }
    .into()
}

fn text(schema: &Value) -> String {
    format!("{schema:#}\n")
}
