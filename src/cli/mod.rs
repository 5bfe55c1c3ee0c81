//! The command line, one file per command. Data goes to stdout, diagnostics and progress to stderr (D30).

mod backup;
mod blame;
mod caching;
mod check;
mod completions;
mod config;
mod core_dumps;
mod diff;
mod excerpt;
mod explain;
mod export;
mod fmt;
mod followed;
mod get;
mod guards;
mod history;
mod key_scope;
mod keys;
mod listen;
mod log;
mod master_key;
#[cfg(feature = "otlp")]
mod otlp;
mod output;
mod owners;
mod progress;
mod reconcile;
mod reload;
mod restore;
mod resume;
mod revision;
mod rollback;
mod schema;
mod security_log;
mod serve;
mod show;
mod source;
mod status;
mod store;
mod store_or_server;
mod suspend;
mod target;
mod trace;
mod usage;
mod validate;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand, parser::ValueSource};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use config::fuzzed as fuzzed_configuration;
use config::{Config, ConfigPart};
use output::Output;

use crate::{
    manifest::tree::remote::{FETCH_ARGUMENT, fetch_for_server},
    model::{
        code::Code,
        diagnostic::{Diagnostic, Name},
        json::JsonError,
        snapshot::Snapshot,
    },
    plan::report::Report,
    store::{
        Store, StoreError, engine::OnDisk, fault::faults, history::Retention, on_disk, probe, seal::MasterKeySource,
    },
};

/// Reconciles an edge gateway with manifests in Git.
///
/// Manifests are YAML or JSON documents that describe HTTPS edges, routes, traffic modules and certificates.
/// `edgewright reconcile` validates them, shows the exact plan, and commits it atomically to an embedded store.
/// `edgewright serve` serves the management API from that store and can reconcile it with a folder of manifests.
#[derive(Debug, Parser)]
#[command(name = "edgewright", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Reconcile(reconcile::Args),
    Plan(reconcile::PlanArgs),
    Diff(diff::Args),
    Validate(validate::Args),
    Get(get::Args),
    Trace(trace::Args),
    Export(export::Args),
    Fmt(fmt::Args),
    Rollback(rollback::Args),
    Serve(serve::Args),
    Status(status::Args),
    Suspend(suspend::Args),
    Resume(resume::Args),
    History(history::Args),
    Blame(blame::Args),
    Keys(keys::Args),
    Owners(owners::Args),
    SecurityLog(security_log::Args),
    Store(store::Args),
    Backup(backup::Args),
    Restore(restore::Args),
    Schema(schema::Args),
    Explain(explain::Args),
    Completions(completions::Args),
}

/// An exit code (D31).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    /// Done, or nothing to do.
    Done = 0,
    /// An error.
    Error = 1,
    /// Changes are pending, only with `--detailed-exitcode`; a source is not synced, only for `status`; or a repair is needed,
    /// only for `store repair`.
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
struct Failure {
    diagnostics: Vec<Diagnostic>,
    exit: Exit,
}

impl Failure {
    /// Whether the reason has a code.
    fn has_code(&self, code: Code) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.code == Name::Code(code))
    }
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        Self { diagnostics: vec![diagnostic], exit: Exit::Error }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Diagnostic::error(error.code, error.message).help(error.code.info().cure).into()
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
fn leave<T>(value: T) {
    std::mem::forget(value);
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    core_dumps::turn_off();
    let _faults = faults();
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == FETCH_ARGUMENT) && arguments.next().is_none() {
        // A server has started this process. Neither the configuration nor the command line is for it.
        let has_outcome = fetch_for_server(std::io::stdin(), output::to_server());
        return if has_outcome { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let exit = run().unwrap_or_else(|failure| {
        show::diagnostics(&failure.diagnostics);
        failure.exit
    });
    ExitCode::from(exit as u8)
}

fn run() -> CommandResult {
    let configured = Config::read().and_then(|config| Ok((config.apply(Cli::command())?, config)));
    let (command, mut config) = configured.inspect_err(report_unconfigured)?;
    let matches = command.try_get_matches();
    let parsed = matches.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) if config.causes(&error) => {
            let failure = config.refused(error);
            report_unconfigured(&failure);
            return Err(failure);
        }
        Err(error) => {
            let error = usage::tamed(error);
            let printed = error.print();
            // clap exits with 2 on a usage error, which is the code for pending changes.
            if error.use_stderr() {
                return Ok(Exit::Error);
            }
            output::unless_closed(printed.and_then(|()| output::flush()))?;
            return Ok(Exit::Done);
        }
    };
    config.check(used_by(&cli.command)).inspect_err(report_unconfigured)?;
    let lints = config.lints.clone();
    let by_flag = |name: &str| {
        matches.subcommand().is_some_and(|(_, command)| {
            let command = command.subcommand().map_or(command, |(_, nested)| nested);
            command.value_source(name) == Some(ValueSource::CommandLine)
        })
    };
    match cli.command {
        Command::Reconcile(mut args) => args.common.place.choose(&by_flag).and_then(|()| args.run(lints)),
        Command::Plan(mut args) => args.place.choose(&by_flag).and_then(|()| args.run(lints)),
        Command::Rollback(mut args) => args.place.choose(&by_flag).and_then(|()| args.run()),
        Command::Diff(args) => args.run(lints),
        Command::Validate(args) => args.run(lints),
        Command::Serve(args) => args.run(config, &|name: &str| is_given(&matches, name)),
        Command::Status(args) => args.run(),
        Command::Suspend(mut args) => args.place.choose(&by_flag).and_then(|()| args.run()),
        Command::Resume(mut args) => args.place.choose(&by_flag).and_then(|()| args.run()),
        Command::Get(mut args) => args.place.choose(&by_flag).and_then(|()| args.run()),
        Command::Trace(args) => args.run(lints),
        Command::Export(args) => args.run(),
        Command::Fmt(args) => args.run(),
        Command::History(mut args) => args.place().choose(&by_flag).and_then(|()| args.run()),
        Command::Blame(mut args) => args.place.choose(&by_flag).and_then(|()| args.run()),
        Command::Keys(args) => args.run(),
        Command::Owners(mut args) => args.place().choose(&by_flag).and_then(|()| args.run()),
        Command::SecurityLog(args) => args.run(),
        Command::Store(mut args) => match args.place() {
            Some(place) => place.choose(&by_flag).and_then(|()| args.run()),
            None => args.run(),
        },
        Command::Backup(mut args) => args.place.choose(&by_flag).and_then(|()| args.run()),
        Command::Restore(args) => args.run(),
        Command::Schema(args) => args.run(),
        Command::Explain(args) => args.run(),
        Command::Completions(args) => args.run(),
    }
}

/// The parts of the configuration file that a command uses, besides the options.
fn used_by(command: &Command) -> &'static [ConfigPart] {
    match command {
        // `validate` checks the parts for `serve`, too: nothing else finds their mistakes before a server starts.
        Command::Serve(_) | Command::Validate(_) => &ConfigPart::ALL,
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
    let Ok(matches) = Cli::command().try_get_matches() else { return };
    let Some((name, arguments)) = matches.subcommand() else { return };
    let command = ["diff", "plan", "reconcile", "rollback", "validate"].into_iter().find(|known| *known == name);
    let (Some(command), Some(output)) = (command, Output::for_programs(arguments)) else { return };
    let report = Report {
        command,
        diagnostics: failure.diagnostics.clone(),
        first_file: Some(Config::path().display().to_string()),
        ..Report::default()
    };
    if let Err(unwritten) = output.conclude(&report) {
        show::diagnostics(&unwritten.diagnostics);
    }
}

/// The store that a command works on.
#[derive(Debug, Clone, clap::Args)]
struct StoreArgs {
    /// Store folder.
    #[arg(long, value_name = "DIR", env = "EDGEWRIGHT_STORE", default_value = "edgewright.db")]
    store: PathBuf,
    /// Maximum number of history records to keep after a change.
    #[arg(long, value_name = "N", env = "EDGEWRIGHT_HISTORY_RECORDS", default_value_t = 100_000)]
    history_records: u64,
    /// Maximum age of history records to keep after a change, in days.
    #[arg(long, value_name = "DAYS", env = "EDGEWRIGHT_HISTORY_DAYS", default_value_t = 730)]
    history_days: u32,
    #[command(flatten)]
    master_key: master_key::MasterKeyArgs,
}

impl StoreArgs {
    /// Opens the store for this command.
    fn open(&self) -> Result<Store, Failure> {
        self.open_with(&self.master_key.source()?)
    }

    fn open_with(&self, source: &MasterKeySource) -> Result<Store, Failure> {
        let store = Store::open_briefly(&self.store, self.retention(), source)?;
        if let Some(file) = store.new_master_key() {
            show::say(&master_key::announcement(file));
        }
        Ok(store)
    }

    /// Opens the store for as long as the server runs.
    fn open_to_serve(&self) -> Result<Store, Failure> {
        let store = Store::open_encrypted(&self.store, self.retention(), &self.master_key.source()?)?;
        if let Some(file) = store.new_master_key() {
            tracing::warn!("{}", master_key::announcement(file));
        }
        Ok(store)
    }

    fn retention(&self) -> Retention {
        let age = Duration::from_secs(u64::from(self.history_days) * 24 * 3600);
        Retention { records: self.history_records, age, ..Retention::default() }
    }

    /// Opens the store, which must exist.
    fn open_existing(&self) -> Result<Store, Failure> {
        self.existing(self.open_if_there()?)
    }

    /// Opens the store, which must exist, with another master key.
    fn open_existing_with(&self, source: &MasterKeySource) -> Result<Store, Failure> {
        self.existing(probe(&self.store)?.then(|| self.open_with(source)).transpose()?)
    }

    /// Opens the store for reading; it must exist.
    fn read_existing(&self) -> Result<Store, Failure> {
        self.existing(self.read_if_there()?)
    }

    fn existing(&self, store: Option<Store>) -> Result<Store, Failure> {
        match store {
            Some(store) => Ok(store),
            None => Err(Diagnostic::error(Code::StoreFormat, format!("no store found in `{}`", self.store.display()))
                .help("set --store; `edgewright reconcile` and `edgewright serve` create a store")
                .into()),
        }
    }

    /// Opens the store if it exists: a run that applies nothing must not create one.
    fn open_if_there(&self) -> Result<Option<Store>, Failure> {
        probe(&self.store)?.then(|| self.open()).transpose()
    }

    /// The folder of the store.
    fn folder(&self) -> &std::path::Path {
        &self.store
    }

    /// Returns the store on the disk, if it exists, without reading its state.
    fn on_disk(&self) -> Result<Option<OnDisk>, Failure> {
        Ok(on_disk(&self.store, &self.master_key.source()?)?)
    }

    /// Opens the store for reading if it exists.
    fn read_if_there(&self) -> Result<Option<Store>, Failure> {
        if !probe(&self.store)? {
            return Ok(None);
        }
        let store = Store::open_encrypted_to_read(&self.store, &self.master_key.source()?)?;
        // A store of the first format is migrated before it can be read.
        if let Some(file) = store.new_master_key() {
            show::say(&master_key::announcement(file));
        }
        Ok(Some(store))
    }
}

/// The store's snapshot, or an empty one if the store does not exist yet.
fn snapshot_of(store: Option<&Store>) -> Snapshot {
    store.map(|store| Snapshot::clone(&store.snapshot())).unwrap_or_default()
}
