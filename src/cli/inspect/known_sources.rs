//! The advice about the name of a source that owns nothing.

use crate::cli::command_prelude::*;

/// The failure for a source that owns nothing, with the name that may be meant.
pub(super) fn owns_nothing(source: &str, known: &BTreeSet<String>) -> Diagnostic {
    let help = suggest(
        source,
        known.iter().map(String::as_str),
        "see the sources of resources with `edgewright get edges -o wide`",
    );
    Diagnostic::error(Code::NotFound, format!("source `{}` owns nothing", printable(source))).help(help)
}
