//! The environment variables that manifests can read (D28).
//!
//! The author of a manifest chooses the name of a variable, and the environment also has the secrets of the program itself,
//! such as the master key of its store. No manifest gets those, wherever it is from and whoever reads it.

use std::collections::BTreeSet;
use std::env::{self, VarError};
use std::sync::LazyLock;

use crate::lock::Lock;
use crate::model::secrets::redact::quotable_variable;
use crate::model::{Code, Fault};
use crate::syntax::text::printable;

/// The beginnings of the names that only the program reads: its own variables, and those of its traces.
const OWN: [&str; 2] = ["EDGEWRIGHT_", "OTEL_"];
/// The beginning of the names that clients of PostgreSQL read, such as `PGPASSWORD`. Capital letters follow.
const POSTGRES: &str = "PG";

/// The variables whose values the configuration file uses itself. The environment is one of the process, too.
static CONFIGURED: LazyLock<Lock<BTreeSet<String>>> = LazyLock::new(Lock::default);

/// Withholds the variables that the configuration file names, such as that of a password, from all manifests.
pub(crate) fn withhold_variables(names: BTreeSet<String>) {
    *CONFIGURED.lock() = names;
}

/// Whether a variable is the program's own, by its name.
pub(crate) fn is_own_variable(name: &str) -> bool {
    let is_of_postgres = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_uppercase());
    OWN.iter().any(|start| name.starts_with(start)) || name.strip_prefix(POSTGRES).is_some_and(is_of_postgres)
}

/// Refuses a variable that no manifest can read.
pub(super) fn check_variable(name: &str) -> Result<(), Fault> {
    if !is_own_variable(name) && !CONFIGURED.lock().contains(name) {
        return Ok(());
    }
    let message = format!(
        "no manifest can read the environment variable `{}`, which edgewright itself uses",
        printable(quotable_variable(name))
    );
    Err(Fault::new(Code::Forbidden, message).help("use a variable with another name"))
}

/// Reads a variable for a manifest.
pub(super) fn read_variable(name: &str) -> Result<String, Fault> {
    check_variable(name)?;
    let shown = printable(quotable_variable(name));
    let unset = |state: &str| {
        Fault::new(Code::EnvUnset, format!("the environment variable `{shown}` is {state}"))
            .help("set it in edgewright's environment")
    };
    match env::var(name) {
        Ok(value) if !value.trim().is_empty() => Ok(value),
        Ok(_) => Err(unset("empty")),
        Err(VarError::NotPresent) => Err(unset("not set")),
        Err(VarError::NotUnicode(_)) => Err(unset("not UTF-8")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_manifest_reads_what_the_program_uses() {
        for name in ["EDGEWRIGHT_MASTER_KEY", "OTEL_EXPORTER_OTLP_HEADERS", "PGPASSWORD"] {
            assert!(read_variable(name).is_err_and(|fault| fault.code == Code::Forbidden), "{name}");
        }
        for name in ["HOOK_SECRET", "PGADMIN_SECRET", "PG_SECRET", "PG", "EDGE"] {
            assert!(check_variable(name).is_ok(), "{name}");
        }
    }
}
