//! The sources of a store or a server by name, for completions and for the advice about a name that none of them has.

use crate::cli::command_prelude::*;

/// The sources that own resources in a store.
pub(crate) fn of_store(snapshot: &Snapshot) -> BTreeSet<String> {
    snapshot.iter().filter_map(|entry| entry.source()).map(str::to_owned).collect()
}

/// The sources of a server; none if it does not list them.
pub(super) fn of_server(client: &ApiClient) -> BTreeSet<String> {
    client.sources(None).into_iter().flat_map(|list| list.sources).map(|source| source.name).collect()
}

/// The failure for a source that owns nothing, with the name that may be meant.
pub(super) fn owns_nothing(source: &str, known: &BTreeSet<String>) -> Diagnostic {
    let help = suggest(
        source,
        known.iter().map(String::as_str),
        "see the sources of resources with `edgewright get edges -o wide`",
    );
    Diagnostic::error(Code::NotFound, format!("source `{}` owns nothing", printable(source))).help(help)
}
