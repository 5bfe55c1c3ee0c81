//! `edgewright explain`.

use std::io::Write;

use super::{Exit, Outcome};
use crate::model::{
    code::{Code, REGISTRY},
    diagnostic::Diagnostic,
    fault::nearest,
};

/// Print the cause and cure of a code that edgewright reports.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The code, such as ERR_EDGEWRIGHT_UNKNOWN_FIELD; all are listed without one.
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

impl Args {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let mut stdout = std::io::stdout().lock();
        let Some(name) = self.code else {
            for info in REGISTRY {
                let _ = writeln!(stdout, "{:40} {}", info.code.to_string(), info.cause);
            }
            return Ok(Exit::Done);
        };
        let Some(code) = Code::from_name(&name) else {
            let upper = name.to_uppercase();
            let short = upper.trim_start_matches("ERR_EDGEWRIGHT_");
            let fault = Diagnostic::error(Code::NotFound, format!("there is no code `{name}`"));
            let named = |info: &&crate::model::code::CodeInfo| info.name.contains(short);
            let near = REGISTRY.iter().find(named).map(|info| info.name);
            let near = near.or_else(|| nearest(short, REGISTRY.iter().map(|info| info.name)));
            return Err(match near {
                Some(near) => fault.help(format!("did you mean `ERR_EDGEWRIGHT_{near}`?")),
                None => fault.help("`edgewright explain` lists them all"),
            }
            .into());
        };
        let info = code.info();
        let _ =
            writeln!(stdout, "{code}\n\nCause: {}\n\nCure:  {}\n\nHTTP status: {}", info.cause, info.cure, info.status);
        Ok(Exit::Done)
    }
}
