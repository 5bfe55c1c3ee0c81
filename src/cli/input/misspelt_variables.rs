//! Misspelt environment variables: one that nothing reads has no effect, and nobody would notice.

use std::collections::BTreeSet;

use clap::Command;

use crate::model::misspelt;

/// How the variables of the program begin.
const PREFIX: &str = "EDGEWRIGHT_";
/// The variables that no option has, behind the prefix.
const WITHOUT_OPTION: [&str; 5] = ["CONFIG", "DATABASE_PASSWORD_COMMAND", "LOG", "MASTER_KEY", "TOKEN"];
/// Shorter names are a slip away from those that people use for themselves, such as in a pipeline.
const SHORTEST: usize = 5;

/// The warnings about variables of this process that are probably misspelt. They never have a value.
pub(crate) fn warnings(command: &Command) -> Vec<String> {
    let mut known: BTreeSet<String> = WITHOUT_OPTION.map(str::to_owned).into();
    add_variables(command, &mut known);
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter_map(|name| warning(&name, &known)).collect()
}

/// Adds the variables of the options of a command and its subcommands, without the prefix.
fn add_variables(command: &Command, known: &mut BTreeSet<String>) {
    let variables = command.get_arguments().filter_map(|argument| argument.get_env()?.to_str()?.strip_prefix(PREFIX));
    known.extend(variables.map(str::to_owned));
    command.get_subcommands().for_each(|subcommand| add_variables(subcommand, known));
}

fn warning(name: &str, known: &BTreeSet<String>) -> Option<String> {
    let own = name.strip_prefix(PREFIX).filter(|own| own.len() >= SHORTEST && !known.contains(*own))?;
    let meant = misspelt(own, known.iter().map(String::as_str))?;
    Some(format!("{name} is not a variable of edgewright; did you mean {PREFIX}{meant}?"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::command::Cli;

    #[test]
    fn only_a_misspelt_variable_is_warned_of() {
        let mut known: BTreeSet<String> = WITHOUT_OPTION.map(str::to_owned).into();
        add_variables(&Cli::command(), &mut known);
        for (name, meant) in [
            ("EDGEWRIGHT_SERVR", Some("EDGEWRIGHT_SERVER")),
            ("EDGEWRIGHT_TOKNE", Some("EDGEWRIGHT_TOKEN")),
            ("EDGEWRIGHT_MASTERKEY", Some("EDGEWRIGHT_MASTER_KEY")),
            ("EDGEWRIGHT_SERVER", None),
            ("EDGEWRIGHT_LONG", None),
            ("EDGEWRIGHT_FAULTS", None),
            ("EDGEWRIGHT_VERSION", None),
            ("EDGEWRIGHT_PLAN_TOKEN", None),
            ("SERVR", None),
        ] {
            let expected = meant.map(|meant| format!("{name} is not a variable of edgewright; did you mean {meant}?"));
            assert_eq!(warning(name, &known), expected);
        }
    }
}
