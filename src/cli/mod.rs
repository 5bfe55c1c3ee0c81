//! The command line, one file per command. Data goes to stdout, diagnostics and progress to stderr (D30).

pub(crate) mod access;
mod candidates;
mod completions;
mod config;
mod help;
pub(crate) mod input;
pub(crate) mod inspect;
mod man;
pub(crate) mod manifests;
pub(crate) mod operate;
mod output;
mod prelude;
mod reference;
mod serve;
mod store;
mod target;

use std::process::ExitCode;

use crate::{
    files::fault::faults,
    model::{
        build,
        diagnostics::{
            code::Code,
            diagnostic::{Diagnostic, Name},
            fault::Fault,
        },
        json::JsonError,
    },
    plan::report::Report,
    reconcile::ApplyError,
    store::{CommitError, StoreError},
};
use access::{context, keys, login, logout, owners, security_log};
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand, parser::ValueSource};
use config::Config;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use config::fuzzed as fuzzed_configuration;
pub(crate) use config::{found_file::CheckedOptions, part::ConfigPart};
use input::{
    empty_variables,
    option_origins::{CurrentContext, OptionOrigins},
    usage,
};
use inspect::{blame, export, get, history, status, trace};
use manifests::{diff, explain, fmt, reconcile, schema, source_args, validate};
use operate::{destroy, healthcheck, resume, rollback, suspend, transfer};
use output::{Output, diagnostics};
use serve::core_dumps;
use store::{
    backup, restore,
    store_args::{StoreArgs, snapshot_of},
};

/// Reconciles an edge gateway with manifests in Git.
///
/// Manifests are YAML or JSON documents that describe HTTPS edges, routes, traffic modules and certificates.
/// `edgewright reconcile` validates them, shows the exact plan, and commits it atomically to an embedded store.
/// `edgewright serve` serves the management API from that store and can reconcile it with a folder of manifests.
#[derive(Debug, Parser)]
#[command(name = "edgewright", version = build::VERSION, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[allow(clippy::large_enum_variant)] // there is one, once
#[derive(Debug, Subcommand)]
enum Command {
    #[command(visible_alias = "apply")]
    Reconcile(reconcile::Args),
    Plan(reconcile::PlanArgs),
    Diff(diff::Args),
    Validate(validate::Args),
    Get(get::Args),
    Trace(trace::Args),
    Export(export::Args),
    Fmt(fmt::Args),
    Rollback(rollback::Args),
    Destroy(destroy::Args),
    Transfer(transfer::Args),
    Serve(serve::Args),
    Status(status::Args),
    Suspend(suspend::Args),
    Resume(resume::Args),
    History(history::Args),
    Blame(blame::Args),
    #[command(subcommand)]
    Keys(keys::Args),
    #[command(subcommand)]
    Owners(owners::Args),
    Login(login::Args),
    Logout(logout::Args),
    #[command(subcommand)]
    Context(context::Args),
    #[command(subcommand)]
    SecurityLog(security_log::Args),
    #[command(subcommand)]
    Store(store::Args),
    Backup(backup::Args),
    Restore(restore::Args),
    Schema(schema::Args),
    Explain(explain::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[command(hide = true)] // it is for this repository
    Reference(reference::Args),
    Healthcheck(healthcheck::Args),
}

/// An exit code (D31).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, or nothing to do.
    Done = 0,
    /// An error.
    Error = 1,
    /// Changes are pending, only with `--detailed-exitcode`; a source is not synced, only for `status`; or something is to be
    /// done, only for `store repair` and `store scrub`.
    Pending = 2,
    /// The manifests are invalid.
    Invalid = 3,
    /// A safety limit refuses the plan.
    Refused = 4,
    /// The plan is stale.
    Stale = 5,
}

/// An error that ends a command, with its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    diagnostics: Vec<Diagnostic>,
    exit: Exit,
}

impl Failure {
    /// Whether the reason has a code.
    fn has_code(&self, code: Code) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.code == Name::Code(code))
    }

    /// Replaces the help of the reasons with a code.
    fn with_help(mut self, code: Code, help: &str) -> Self {
        for diagnostic in self.diagnostics.iter_mut().filter(|it| it.code == Name::Code(code)) {
            diagnostic.help = Some(help.to_owned());
        }
        self
    }
}

/// Converts the failure that something was not found to none.
fn if_found<T>(result: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(failure) if failure.has_code(Code::NotFound) => Ok(None),
        Err(failure) => Err(failure),
    }
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        Self { diagnostics: vec![diagnostic], exit: Exit::Error }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Diagnostic::error(error.code, error.message).help(error.help.unwrap_or(error.code.info().cure)).into()
    }
}

impl From<ApplyError> for Failure {
    fn from(error: ApplyError) -> Self {
        let is_stale = matches!(error, ApplyError::Commit(CommitError::Stale { .. }));
        Self { diagnostics: vec![error.diagnostic()], exit: if is_stale { Exit::Stale } else { Exit::Error } }
    }
}

impl From<Vec<Fault>> for Failure {
    fn from(faults: Vec<Fault>) -> Self {
        let diagnostic = |Fault { code, message, help, .. }| Diagnostic { help, ..Diagnostic::error(code, message) };
        Self { diagnostics: faults.into_iter().map(diagnostic).collect(), exit: Exit::Error }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        vec![fault].into()
    }
}

impl From<JsonError> for Failure {
    fn from(error: JsonError) -> Self {
        Diagnostic::from(error).into()
    }
}

type CommandResult = Result<Exit, Failure>;

/// Leaves a large value to the end of the process, which frees its memory at once. Freeing the values of a large source
/// one by one takes longer than checking them.
fn leak<T>(value: T) {
    std::mem::forget(value);
}

/// Leaves `--server` out of the help for a locked store: the command works on files alone.
fn without_server(result: CommandResult) -> CommandResult {
    result.map_err(|failure| failure.with_help(Code::StoreLocked, "Stop the other process."))
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    core_dumps::turn_off();
    let _faults = faults();
    let exit = run().unwrap_or_else(|failure| {
        diagnostics::diagnostics(&failure.diagnostics);
        failure.exit
    });
    ExitCode::from(exit as u8)
}

fn run() -> CommandResult {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == candidates::REQUEST) {
        return candidates::answer(arguments.map(|word| word.to_string_lossy().into_owned()).collect());
    }
    let configured = Config::read().and_then(|config| Ok((config.apply(help::with_help(Cli::command()))?, config)));
    let (command, mut config) = configured.inspect_err(report_unconfigured)?;
    let mut command = of_one_program(empty_variables::without_empty_variables(command));
    if std::env::args_os().any(|argument| argument == "-h") {
        command = help::without_variables(command);
    }
    let matches = command.clone().try_get_matches();
    let parsed = matches.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) if config.causes(&error) => {
            return Err(config.value_failure(error)).inspect_err(report_unconfigured);
        }
        Err(error) => {
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
    config.check_options(&command, &matches, CheckedOptions::BeforeChoice).inspect_err(report_unconfigured)?;
    if matches!(cli.command, Command::Validate(_)) {
        config.check_values(&serve::command());
    }
    config.check(used_by(&cli.command)).inspect_err(report_unconfigured)?;
    dispatch(cli.command, &command, &matches, config)
}

/// Chooses where the command works, and runs it. One arm for each command.
fn dispatch(chosen: Command, command: &clap::Command, matches: &ArgMatches, config: Config) -> CommandResult {
    let lints = config.lints.clone();
    let origins = OptionOrigins::new(command, matches, &config, current_context(&chosen));
    match chosen {
        Command::Reconcile(mut args) => args.common.place.choose(&origins).and_then(|()| args.run(lints)),
        Command::Plan(mut args) => args.place.choose(&origins).and_then(|()| args.run(lints)),
        Command::Rollback(mut args) => args.place.choose(&origins).and_then(|()| args.run()),
        Command::Destroy(mut args) => args.place.choose(&origins).and_then(|()| args.run(&config)),
        Command::Transfer(mut args) => args.place.choose(&origins).and_then(|()| args.run()),
        Command::Diff(mut args) => args.server.choose(&origins).and_then(|()| args.run(lints)),
        Command::Validate(mut args) => args.server.choose(&origins).and_then(|()| args.run(lints)),
        Command::Serve(args) => without_server(args.run(config, &|name: &str| is_given(matches, name))),
        Command::Status(mut args) => args.server.choose(&origins).and_then(|()| args.run()),
        Command::Suspend(mut args) => args.place.choose(&origins).and_then(|()| args.run()),
        Command::Resume(mut args) => args.place.choose(&origins).and_then(|()| args.run()),
        Command::Get(mut args) => args.place.choose(&origins).and_then(|()| args.run()),
        Command::Trace(mut args) => args.choose(&origins).and_then(|()| args.run(lints)),
        Command::Export(mut args) => args.place.choose(&origins).and_then(|()| args.run()),
        Command::Fmt(args) => args.run(),
        Command::History(mut args) if args.needs_files() => {
            without_server(args.place().choose(&origins).and_then(|()| args.run()))
        }
        Command::History(mut args) => args.place().choose(&origins).and_then(|()| args.run()),
        Command::Blame(mut args) => args.place.choose(&origins).and_then(|()| args.run()),
        Command::Keys(mut args) => args.place().choose(&origins).and_then(|()| args.run(&config)),
        Command::Owners(mut args) => args.place().choose(&origins).and_then(|()| args.run()),
        Command::Login(args) => args.run(),
        Command::Logout(args) => args.run(),
        Command::Context(mut args) => match args.place() {
            Some(place) => place.choose(&origins).and_then(|()| args.run(&origins)),
            None => args.run(&origins),
        },
        Command::SecurityLog(args) => args.run(),
        Command::Store(mut args) => match args.place() {
            Some(place) => place.choose(&origins).and_then(|()| args.run()),
            None => without_server(args.run()),
        },
        Command::Backup(mut args) => args.place.choose(&origins).and_then(|()| args.run()),
        Command::Restore(args) => without_server(args.run()),
        Command::Schema(args) => args.run(),
        Command::Explain(args) => args.run(),
        Command::Completions(args) => args.run(),
        Command::Man(args) => args.run(),
        Command::Reference(args) => args.run(),
        Command::Healthcheck(args) => args.run(),
    }
}

/// Names the program, not the subcommand, in the versions of subcommands.
fn of_one_program(command: clap::Command) -> clap::Command {
    command.mut_subcommands(|subcommand| of_one_program(subcommand.display_name("edgewright")))
}

/// The use of the current context by a command without a store or a server. Nobody must change a server only because they
/// have forgotten which context is current.
fn current_context(command: &Command) -> CurrentContext {
    let reads = match command {
        Command::History(args) if args.needs_files() => return CurrentContext::Ignored,
        Command::Validate(_) | Command::Diff(_) => return CurrentContext::OnlyByFlag,
        Command::Trace(args) if args.reads_manifests() => return CurrentContext::OnlyByFlag,
        Command::Reconcile(args) => args.dry_run,
        Command::Rollback(args) => args.dry_run,
        Command::Destroy(args) => args.dry_run,
        Command::Transfer(args) => args.dry_run,
        Command::Keys(args) => args.only_reads(),
        Command::Owners(args) => args.only_reads(),
        Command::Plan(_) | Command::Get(_) | Command::Trace(_) | Command::Export(_) | Command::Backup(_) => true,
        Command::Status(_) | Command::History(_) | Command::Blame(_) | Command::Context(_) => true,
        _ => false,
    };
    if reads { CurrentContext::Used } else { CurrentContext::Refused }
}

/// The parts of the configuration file that a command uses, besides the options.
fn used_by(command: &Command) -> &'static [ConfigPart] {
    match command {
        Command::Serve(_) => &ConfigPart::ALL,
        // `validate` also checks the part for `serve`: nothing else finds its mistakes before a server starts.
        Command::Validate(_) => &[ConfigPart::Lints, ConfigPart::Server],
        Command::Reconcile(_) | Command::Plan(_) | Command::Diff(_) => &[ConfigPart::Lints],
        Command::Trace(args) if args.reads_manifests() => &[ConfigPart::Lints],
        _ => &[],
    }
}

/// Whether an option of the command was given as a flag or an environment variable, rather than in the configuration file.
fn is_given(matches: &ArgMatches, name: &str) -> bool {
    let source = matches.subcommand().and_then(|(_, command)| command.value_source(name));
    matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
}

/// Writes the report of a command that cannot run because the configuration file is invalid. A program that reads the
/// report must find the error, rather than nothing.
fn report_unconfigured(failure: &Failure) {
    let Ok(matches) = empty_variables::without_empty_variables(Cli::command()).try_get_matches() else { return };
    let Some((name, arguments)) = matches.subcommand() else { return };
    let command = ["destroy", "diff", "plan", "reconcile", "rollback", "transfer", "validate"]
        .into_iter()
        .find(|known| *known == name);
    let (Some(command), Some(output)) = (command, Output::for_programs(arguments)) else { return };
    let report = Report {
        command,
        source: source_args::source_among(arguments),
        diagnostics: failure.diagnostics.clone(),
        first_file: Some(Config::path().display().to_string()),
        ..Report::default()
    };
    if let Err(unwritten) = output.conclude(&report) {
        diagnostics::diagnostics(&unwritten.diagnostics);
    }
}
