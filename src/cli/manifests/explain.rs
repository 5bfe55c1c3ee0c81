//! `edgewright explain`.

use crate::{
    cli::prelude::*,
    lint::{self, LINTS, Lint},
    model::diagnostics::code::REGISTRY,
    tenancy,
};

/// The topic that is neither a code nor a lint.
const TENANCY: &str = "tenancy";

/// Explain an error code, a lint, or what keeps sources apart.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Error code or lint, such as ERR_EDGEWRIGHT_UNKNOWN_FIELD or shadowed-route, or `tenancy` for the table of what sources
    /// may do to each other. Lists all codes and lints if omitted.
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

impl Args {
    /// Runs the command.
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
    let level = format!("metadata.annotations: `edgewright/lint.{name}: allow|warn|deny`");
    format!(
        "{name}: {summary}\n\nWhy:     {why}\n\nFix:     {cure}\n\nDefault: {default}\n\nExample of the \
         mistake:\n\n{example}\nSet the level in {level}.\n"
    )
}

fn explain_code(code: Code) -> String {
    let info = code.info();
    let severity = match info.is_warning() {
        true => "Severity: warning".to_owned(),
        false => format!("HTTP status: {}", info.status),
    };
    format!("{code}\n\nCause: {}\n\nFix:   {}\n\n{severity}\n", info.cause, info.cure)
}

/// The failure for a name that is neither a code nor a lint.
fn unknown(name: &str) -> Failure {
    let upper = name.to_uppercase();
    let short = upper.trim_start_matches("ERR_EDGEWRIGHT_");
    let codes = || REGISTRY.iter().map(|info| info.name);
    let code = || codes().find(|code| code.contains(short)).or_else(|| nearest(short, codes()));
    let near = nearest(name, LINTS.iter().map(|lint| lint.name)).map(str::to_owned);
    let near = near.or_else(|| Some(format!("ERR_EDGEWRIGHT_{}", code()?)));
    let help = near.map(|near| format!("did you mean `{near}`?"));
    let fault = Diagnostic::error(Code::NotFound, format!("unknown code or lint `{name}`"));
    fault.help(help.unwrap_or_else(|| "run `edgewright explain` to list all codes and lints".to_owned())).into()
}
