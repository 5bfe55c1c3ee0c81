//! The list of a server's sources.

use crate::{cli::command_prelude::*, server::operations::sources::view::SourceList};

/// The path of the list.
pub(super) const SOURCES: &str = "/sources";

/// The sources of a server, or only one of them.
pub(super) fn sources(client: &ApiClient, only: Option<&str>) -> Result<SourceList, Failure> {
    let mut list: SourceList = client.get(SOURCES)?;
    let Some(name) = only else { return Ok(list) };
    if list.sources.iter().all(|source| source.name != name) {
        let known = list.sources.iter().map(|source| source.name.as_str());
        let help = suggest(name, known, "list the sources with `edgewright status`");
        return Err(Diagnostic::error(Code::NotFound, format!("the server has no source `{}`", printable(name)))
            .help(help)
            .into());
    }
    list.sources.retain(|source| source.name == name);
    Ok(list)
}
