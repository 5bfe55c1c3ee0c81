//! `edgewright explain`.

use crate::{
    cli::{CommandResult, Exit, output::print},
    lint::{self, LINTS},
    model::diagnostics::{
        code::{Code, REGISTRY},
        diagnostic::Diagnostic,
        fault::nearest,
    },
    tenancy,
};

/// The topic that is neither a code nor a lint.
const TENANCY: &str = "tenancy";

/// Explain the cause and fix of an error code or lint, or what keeps sources apart.
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
        let Some(name) = self.code else {
            let codes = REGISTRY.iter().map(|info| format!("{:40} {}\n", info.code.to_string(), info.cause));
            let lints = LINTS
                .iter()
                .map(|lint| format!("{:40} {} ({} by default)\n", lint.name, lint.summary, lint.default.as_str()));
            print(codes.chain(lints).collect::<String>())?;
            return Ok(Exit::Done);
        };
        if name == TENANCY {
            print(tenancy::table())?;
            return Ok(Exit::Done);
        }
        if let Some(lint) = lint::find(&name) {
            let example: String = lint.example.trim_matches('\n').lines().map(|line| format!("    {line}\n")).collect();
            let description = format!(
                "{}: {}\n\nWhy:     {}\n\nFix:     {}\n\nDefault: {}\n\nExample of the mistake:\n\n{example}",
                lint.name,
                lint.summary,
                lint.why,
                lint.cure,
                lint.default.as_str()
            );
            let level = format!("metadata.annotations: `edgewright/lint.{}: allow|warn|deny`", lint.name);
            print(format!("{description}\nSet the level in {level}.\n"))?;
            return Ok(Exit::Done);
        }
        let Some(code) = Code::from_name(&name) else {
            let upper = name.to_uppercase();
            let short = upper.trim_start_matches("ERR_EDGEWRIGHT_");
            let fault = Diagnostic::error(Code::NotFound, format!("unknown code or lint `{name}`"));
            let named = |info: &&crate::model::diagnostics::code::CodeInfo| info.name.contains(short);
            let near = REGISTRY.iter().find(named).map(|info| info.name);
            let near = near.or_else(|| nearest(short, REGISTRY.iter().map(|info| info.name)));
            if let Some(lint) = nearest(&name, LINTS.iter().map(|lint| lint.name)) {
                return Err(fault.help(format!("did you mean `{lint}`?")).into());
            }
            return Err(match near {
                Some(near) => fault.help(format!("did you mean `ERR_EDGEWRIGHT_{near}`?")),
                None => fault.help("run `edgewright explain` to list all codes and lints"),
            }
            .into());
        };
        let info = code.info();
        let severity = match info.is_warning() {
            true => "Severity: warning".to_owned(),
            false => format!("HTTP status: {}", info.status),
        };
        print(format!("{code}\n\nCause: {}\n\nFix:   {}\n\n{severity}\n", info.cause, info.cure))?;
        Ok(Exit::Done)
    }
}
