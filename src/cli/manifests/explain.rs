//! `edgewright explain`.

use crate::cli::command_prelude::*;
use crate::cli::output::table::labelled;
use crate::lint::{self, LINTS, Lint};
use crate::model::diagnostics::code::REGISTRY;
use crate::tenancy;

/// The topic that is neither a code nor a lint.
const TENANCY: &str = "tenancy";

/// Explain an error code, a lint, or the rules between sources.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Error code or lint, such as ERR_EDGEWRIGHT_UNKNOWN_FIELD or shadowed-route, or `tenancy` for the table of what sources
    /// may do to each other. Lists all codes and lints if omitted.
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

impl Args {
    pub(crate) fn run(self) -> CommandResult {
        print(match self.code.as_deref() {
            None => list(),
            Some(TENANCY) => tenancy::table(),
            Some(name) => match (lint::find(name), Code::from_name(name)) {
                (Some(lint), _) => explain_lint(lint),
                (None, Some(code)) => explain_code(code),
                (None, None) => return Err(unknown(name)),
            },
        })
    }
}

fn list() -> String {
    let codes = REGISTRY.iter().map(|info| format!("{:40} {}\n", info.code.to_string(), info.cause));
    let line = |lint: &&Lint| format!("{:40} {} ({} by default)\n", lint.name, lint.summary, lint.default.as_str());
    codes.chain(LINTS.iter().map(line)).collect()
}

fn explain_lint(lint: &Lint) -> String {
    let example: String = lint.example().trim_matches('\n').lines().map(|line| format!("    {line}\n")).collect();
    let (name, summary, why, cure, default) = (lint.name, lint.summary, lint.why, lint.cure, lint.default.as_str());
    let (why, cure) = (labelled("Why:     ", why), labelled("Fix:     ", cure));
    let level = format!("metadata.annotations: `edgewright/lint.{name}: allow|warn|deny`");
    format!(
        "{name}: {summary}\n\n{why}\n\n{cure}\n\nDefault: {default}\n\nExample of the mistake:\n\n{example}\nSet the \
         level in {level}.\n"
    )
}

fn explain_code(code: Code) -> String {
    let info = code.info();
    let severity = match info.is_warning() {
        true => "Severity: warning".to_owned(),
        false => format!("HTTP status: {}", info.status),
    };
    let (cause, cure) = (labelled("Cause: ", info.cause), labelled("Fix:   ", info.cure));
    format!("{code}\n\n{cause}\n\n{cure}\n\n{severity}\n")
}

/// The failure for a name that is neither a code nor a lint.
fn unknown(name: &str) -> Failure {
    let upper = name.to_uppercase();
    let codes = REGISTRY.iter().map(|info| info.name);
    let topics = LINTS.iter().map(|lint| lint.name).chain(codes).chain([TENANCY]);
    let help = match nearest(upper.trim_start_matches("ERR_EDGEWRIGHT_"), topics) {
        Some(near) => match Code::from_name(near).filter(|_| lint::find(near).is_none()) {
            Some(code) => format!("did you mean `{code}`?"),
            None => format!("did you mean `{near}`?"),
        },
        None => "`edgewright explain` lists all codes and lints, and `edgewright schema KIND` the fields of a kind"
            .to_owned(),
    };
    Diagnostic::error(Code::NotFound, format!("unknown code or lint `{name}`")).help(help).into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_of_all_topics_is_suggested() {
        for (name, near) in [
            ("unknwon-field", "did you mean `ERR_EDGEWRIGHT_UNKNOWN_FIELD`?"),
            ("ERR_EDGEWRIGHT_SYNTACS", "did you mean `ERR_EDGEWRIGHT_SYNTAX`?"),
            ("locked", "did you mean `ERR_EDGEWRIGHT_STORE_LOCKED`?"),
            ("shadowed", "did you mean `shadowed-route`?"),
            ("tenacy", "did you mean `tenancy`?"),
            ("HttpsEdge", "`edgewright explain` lists all codes and lints"),
        ] {
            let help = unknown(name).diagnostics.into_iter().next().unwrap().help.unwrap();
            assert!(help.starts_with(near), "{name}: {help}");
        }
    }
}
