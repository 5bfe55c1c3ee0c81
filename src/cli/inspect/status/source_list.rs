//! The list of a server's sources.

use crate::{cli::command_prelude::*, server::operations::sources::view::SourceList};

/// The path of the list.
pub(super) const SOURCES: &str = "/sources";

/// The sources of a server, or only one of them.
pub(super) fn sources(client: &ApiClient, only: Option<&str>) -> Result<SourceList, Failure> {
    let mut list: SourceList = client.get(SOURCES)?;
    let Some(name) = only else { return Ok(list) };
    let names: Vec<String> = list.sources.iter().map(|source| source.name.clone()).collect();
    list.sources.retain(|source| source.name == name);
    if list.sources.is_empty() {
        let near = nearest(name, names.iter().map(String::as_str));
        let help = near.map_or_else(|| "list the sources with `edgewright status`".to_owned(), did_you_mean);
        return Err(Diagnostic::error(Code::NotFound, format!("the server has no source `{}`", printable(name)))
            .help(help)
            .into());
    }
    Ok(list)
}

fn did_you_mean(name: &str) -> String {
    format!("did you mean `{}`?", printable(name))
}
