//! The pages of error codes and lints, with the texts of `edgewright explain`.

use super::markdown::{code, prose, table};
use crate::lint::{LINTS, Lint};
use crate::model::diagnostics::code::{CodeInfo, REGISTRY};

const ERRORS: &str = "\
# Error codes

API responses, findings in manifests and messages on the command line have one of these codes. `edgewright explain
CODE` prints the same text. [Lints](lints.md) have names instead of codes.";

const LEVELS: &str = "\
# Lints

Lints flag legal configuration that is probably a mistake. The level of a lint is `allow` (findings are hidden), `warn`
(they are shown) or `deny` (nothing is applied). Set it for one manifest with the annotation `edgewright/lint.NAME`, or for
all manifests with `lints` in the [configuration file](configuration.md#lints). `edgewright explain NAME` prints the same
text.";

pub(super) fn errors() -> String {
    let sections: String = REGISTRY.iter().map(of_code).collect();
    format!("{ERRORS}\n\n{sections}")
}

pub(super) fn lints() -> String {
    let row = |lint: &&Lint| {
        let name = lint.name;
        vec![format!("[`{name}`](#{name})"), lint.default.as_str().to_owned(), prose(lint.summary)]
    };
    let rows: Vec<Vec<String>> = LINTS.iter().map(row).collect();
    let sections: String = LINTS.iter().map(|lint| of_lint(lint)).collect();
    format!("{LEVELS}\n\n{}{sections}", table(&["Lint", "Default", "Finds"], &rows))
}

fn of_code(info: &CodeInfo) -> String {
    let severity = match info.is_warning() {
        true => "Warning.".to_owned(),
        false => format!("HTTP status {}.", info.status),
    };
    let heading = code(&info.code.to_string());
    format!("## {heading}\n\n{severity} {}\n\n**Fix:** {}\n\n", prose(info.cause), prose(info.cure))
}

fn of_lint(lint: &Lint) -> String {
    let (name, summary, why, cure) = (lint.name, prose(lint.summary), prose(lint.why), prose(lint.cure));
    let (default, example) = (lint.default.as_str(), lint.example().trim_matches('\n'));
    format!(
        "## `{name}`\n\n{summary} Level: `{default}`.\n\n**Why:** {why}\n\n**Fix:** {cure}\n\nExample of the mistake:\n\n\
         ```yaml\n{example}\n```\n\n"
    )
}
