//! The program: reads the configuration file and the command line, and runs the command.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use super::command::{self, Cli, Command};
use super::config::Config;
use super::config::location::config_path;
use super::failure::{CommandResult, Exit, Failure};
use super::input::option_origins::CurrentContext;
use super::input::{empty_variables, misspelt_variables, usage};
use super::manifests::source_args;
use super::output::{self, Output, diagnostics};
use super::serve::{self, core_dumps};
use super::{candidates, completions, help};
use crate::files::fault::faults;
use crate::manifest::tree::withhold_variables;
use crate::plan::report::Report;

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    core_dumps::turn_off();
    let _faults = faults();
    let exit = run().unwrap_or_else(|failure| {
        if failure.is_of_configuration {
            report_unconfigured(&failure);
        }
        diagnostics::diagnostics(&failure.diagnostics);
        failure.exit
    });
    ExitCode::from(exit as u8)
}

fn run() -> CommandResult {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == completions::REQUEST) {
        return candidates::answer(Cli::command(), arguments.map(|word| word.to_string_lossy().into_owned()).collect());
    }
    let mut config = Config::read()?;
    withhold_variables(config.credential_variables.clone());
    let command = config.apply(help::with_help(Cli::command()))?;
    let mut command = of_one_program(empty_variables::without_empty_variables(command));
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if words.iter().any(|word| word == "-h") {
        command = help::without_variables(command);
    } else if words.iter().any(|word| word == "--help" || word == "help") {
        command = help::with_short_layout(command, &words);
    }
    let separate = usage::separate_value(&command, std::env::args_os());
    let matches = separate.map_or_else(|| command.clone().try_get_matches(), Err);
    let parsed = matches.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) if config.causes(&error) => return Err(config.value_failure(error)),
        Err(error) => {
            let error = usage::with_usage_of(error, command, std::env::args_os());
            let error = usage::escape_arguments(usage::add_tip(error, std::env::args_os()));
            let printed = error.print();
            // clap exits with 2 on a usage error, which is the code for pending changes.
            if error.use_stderr() {
                return Ok(Exit::Error);
            }
            output::unless_closed(printed.and_then(|()| output::flush()))?;
            return Ok(Exit::Done);
        }
    };
    misspelt_variables::warnings(&command).iter().for_each(|warning| diagnostics::say(warning));
    let server_by_flag_only = command::current_context(&cli.command) == CurrentContext::OnlyByFlag;
    config.add_refused_options(&command, &matches, server_by_flag_only);
    if matches!(cli.command, Command::Validate(_)) {
        diagnostics::diagnostics(config.refused_by_server(&serve::command()).as_slice());
        diagnostics::diagnostics(&serve::check_file(&mut config));
    }
    config.check(command::used_by(&cli.command))?;
    command::dispatch(cli.command, &command, &matches, config)
}

/// Names the program, not the subcommand, in the versions of subcommands.
fn of_one_program(command: clap::Command) -> clap::Command {
    command.mut_subcommands(|subcommand| of_one_program(subcommand.display_name("edgewright")))
}

/// Writes the report of a command that cannot run because the configuration file is invalid. A program that reads the
/// report must find the error, rather than nothing.
fn report_unconfigured(failure: &Failure) {
    let Ok(matches) = empty_variables::without_empty_variables(Cli::command()).try_get_matches() else { return };
    let Some((name, arguments)) = matches.subcommand() else { return };
    let command = ["destroy", "diff", "plan", "prove", "reconcile", "rollback", "test", "transfer", "validate"]
        .into_iter()
        .find(|known| *known == name);
    let (Some(command), Some(output)) = (command, Output::for_programs(arguments)) else { return };
    let report = Report {
        command,
        source: source_args::source_among(arguments),
        diagnostics: failure.diagnostics.clone(),
        first_file: Some(config_path().display().to_string()),
        ..Report::default()
    };
    if let Err(unwritten) = output.conclude(&report) {
        diagnostics::diagnostics(&unwritten.diagnostics);
    }
}
