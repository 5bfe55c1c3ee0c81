//! Empty environment variables: a pipeline sets a variable without a value to an empty text (D105).

use clap::Command;

/// The variables that count as unset if they are empty. Flags with an empty value are errors.
const OPTIONAL: [&str; 4] = ["EDGEWRIGHT_SERVER", "EDGEWRIGHT_CONTEXT", "EDGEWRIGHT_SECRETS", "EDGEWRIGHT_WITH"];

/// Ignores empty variables in a command and its subcommands.
pub(crate) fn without_empty_variables(command: Command) -> Command {
    let names = OPTIONAL.into_iter().filter(|name| std::env::var_os(name).is_some_and(|value| value.is_empty()));
    ignore(command, &names.collect::<Vec<&str>>())
}

fn ignore(command: Command, variables: &[&str]) -> Command {
    if variables.is_empty() {
        return command;
    }
    let command = command.mut_args(|argument| {
        let variable = argument.get_env().and_then(|name| name.to_str());
        let is_ignored = variable.is_some_and(|name| variables.contains(&name));
        if is_ignored { argument.env(None::<&'static str>) } else { argument }
    });
    command.mut_subcommands(|subcommand| ignore(subcommand, variables))
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    #[test]
    fn only_the_named_variables_are_ignored() {
        let command = || {
            let of = |name: &'static str| Arg::new(name).long(name).env(name);
            let nested = Command::new("create").arg(of("HOME"));
            Command::new("keys").arg(of("PATH")).arg(of("HOME")).subcommand(nested)
        };
        let has = |command: &Command, name: &str| {
            command.get_arguments().any(|it| it.get_env().is_some_and(|variable| variable == name))
        };
        let found = ignore(command(), &["HOME"]);
        assert!(has(&found, "PATH") && !has(&found, "HOME"));
        assert!(found.get_subcommands().all(|nested| !has(nested, "HOME")));
        assert!(has(&ignore(command(), &[]), "HOME"));
    }
}
