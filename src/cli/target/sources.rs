//! The sources of a running server or a store.

use super::client::ApiClient;
use crate::cli::prelude::*;
use crate::server::operations::sources::{PATH, view::SourceList};

impl ApiClient {
    /// Lists the sources that the server follows and others that own resources, or only one of them.
    pub(crate) fn sources(&self, only: Option<&str>) -> Result<SourceList, Failure> {
        let mut list: SourceList = self.get(PATH)?;
        let Some(name) = only else { return Ok(list) };
        if list.sources.iter().all(|source| source.name != name) {
            let known = list.sources.iter().map(|source| source.name.as_str());
            let help = suggest(name, known, "list the sources with `edgewright status`");
            let message = format!("the server has no source `{}`", printable(name));
            return Err(Diagnostic::error(Code::NotFound, message).help(help).into());
        }
        list.sources.retain(|source| source.name == name);
        Ok(list)
    }
}

/// The sources that own resources in a store.
pub(crate) fn sources_of_store(snapshot: &Snapshot) -> BTreeSet<String> {
    snapshot.iter().filter_map(|entry| entry.source()).map(str::to_owned).collect()
}

/// The sources of a server; none if it does not list them.
pub(crate) fn sources_of_server(client: &ApiClient) -> BTreeSet<String> {
    client.sources(None).into_iter().flat_map(|list| list.sources).map(|source| source.name).collect()
}

/// The path of an action on a source.
pub(crate) fn source_action(source: &str, action: &str) -> String {
    format!("{PATH}/{}/{action}", segment(source))
}

/// The failure for a source that owns nothing, with the name that may be meant.
pub(crate) fn owns_nothing(source: &str, known: &BTreeSet<String>) -> Diagnostic {
    let help = suggest(
        source,
        known.iter().map(String::as_str),
        "see the sources of resources with `edgewright get edges -o wide`",
    );
    Diagnostic::error(Code::NotFound, format!("source `{}` owns nothing", printable(source))).help(help)
}
