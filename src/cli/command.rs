//! The commands of the program, and what each needs before it runs.

use clap::{ArgMatches, CommandFactory, Parser, Subcommand};

use super::access::{context, keys, login, logout, owners, security_log};
use super::config::Config;
use super::config::section::ConfigSection;
use super::failure::CommandResult;
use super::input::option_origins::{CurrentContext, OptionOrigins};
use super::inspect::{blame, export, get, history, replay, status, trace};
use super::manifests::{diff, explain, fmt, prove, reconcile, schema, test, validate};
use super::operate::{destroy, healthcheck, resume, rollback, suspend, transfer};
use super::store::{self, backup, restore};
use super::{completions, man, reference, serve};
use crate::model::{Code, build};

/// Reconciles an edge gateway with manifests in Git.
///
/// Manifests are YAML or JSON documents that describe HTTPS edges, routes, traffic modules and certificates.
/// `edgewright reconcile` validates them, shows the exact plan, and commits it atomically to an embedded store.
/// `edgewright serve` serves the management API from that store and can reconcile it with a folder of manifests.
#[derive(Debug, Parser)]
#[command(name = "edgewright", version = build::VERSION, propagate_version = true)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[allow(clippy::large_enum_variant)] // there is one, once
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    #[command(visible_alias = "apply")]
    Reconcile(reconcile::Args),
    Plan(reconcile::PlanArgs),
    Diff(diff::Args),
    Validate(validate::Args),
    Test(test::Args),
    Prove(prove::Args),
    Get(get::Args),
    Trace(trace::Args),
    Replay(replay::Args),
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

/// Chooses where the command works, and runs it. One arm for each command.
pub(super) fn dispatch(
    chosen: Command,
    command: &clap::Command,
    matches: &ArgMatches,
    config: Config,
) -> CommandResult {
    let lints = config.lints.clone();
    let current_context = current_context(&chosen);
    let origins = OptionOrigins { command, arguments: matches, config: &config, current_context };
    match chosen {
        Command::Reconcile(mut args) => args.common.place.choose(&origins).and_then(|()| args.run(lints)),
        Command::Plan(mut args) => args.place.choose(&origins).and_then(|()| args.run(lints)),
        Command::Rollback(mut args) => args.options.place.choose(&origins).and_then(|()| args.run()),
        Command::Destroy(mut args) => args.options.place.choose(&origins).and_then(|()| args.run(&config)),
        Command::Transfer(mut args) => args.options.place.choose(&origins).and_then(|()| args.run()),
        Command::Diff(mut args) => args.server.choose(&origins).and_then(|()| args.run(lints)),
        Command::Validate(mut args) => args.server.choose(&origins).and_then(|()| args.run(lints)),
        Command::Test(mut args) => args.server.choose(&origins).and_then(|()| args.run(lints)),
        Command::Prove(mut args) => args.choose(&origins).and_then(|()| args.run(lints)),
        Command::Serve(args) => args
            .run(config, &Cli::command(), matches)
            .map_err(|failure| failure.with_help(Code::StoreLocked, ONE_SERVER)),
        Command::Status(mut args) => args.server.choose(&origins).and_then(|()| args.run()),
        Command::Suspend(mut args) => args.place.choose(&origins).and_then(|()| args.run()),
        Command::Resume(mut args) => args.place.choose(&origins).and_then(|()| args.run()),
        Command::Get(mut args) => args.place.choose(&origins).and_then(|()| args.run()),
        Command::Trace(mut args) => args.choose(&origins).and_then(|()| args.run(lints)),
        Command::Replay(mut args) => args.planned.place.choose(&origins).and_then(|()| args.run(lints)),
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
        Command::Completions(args) => args.run(Cli::command()),
        Command::Man(args) => args.run(Cli::command()),
        Command::Reference(args) => args.run(Cli::command()),
        Command::Healthcheck(args) => args.run(),
    }
}

/// The help for a second server on a store.
const ONE_SERVER: &str =
    "use the running server; or stop it first, or set --store to another store and --listen to another port";

/// Leaves `--server` out of the help for a locked store: the command works on files alone.
fn without_server(result: CommandResult) -> CommandResult {
    result.map_err(|failure| failure.with_help(Code::StoreLocked, "Stop the other process."))
}

/// The use of the current context by a command without a store or a server. Nobody must change a server only because they
/// have forgotten which context is current.
pub(super) fn current_context(command: &Command) -> CurrentContext {
    let reads = match command {
        Command::History(args) if args.needs_files() => return CurrentContext::Ignored,
        Command::Validate(_) | Command::Test(_) | Command::Diff(_) => return CurrentContext::OnlyByFlag,
        Command::Trace(args) if args.reads_manifests() => return CurrentContext::OnlyByFlag,
        Command::Prove(args) if args.reads_manifests() => return CurrentContext::Ignored,
        Command::Reconcile(args) => args.dry_run,
        Command::Rollback(args) => args.options.dry_run,
        Command::Destroy(args) => args.options.dry_run,
        Command::Transfer(args) => args.options.dry_run,
        Command::Keys(args) => args.only_reads(),
        Command::Owners(args) => args.only_reads(),
        Command::Plan(_) | Command::Get(_) | Command::Trace(_) | Command::Export(_) | Command::Backup(_) => true,
        Command::Prove(_) | Command::Status(_) | Command::History(_) | Command::Blame(_) | Command::Context(_) => true,
        Command::Replay(_) => true,
        _ => false,
    };
    if reads { CurrentContext::Used } else { CurrentContext::Refused }
}

/// The sections of the configuration file that a command uses, besides the options.
pub(super) fn used_by(command: &Command) -> &'static [ConfigSection] {
    match command {
        Command::Serve(_) => &ConfigSection::ALL,
        // `validate` also checks the section for `serve`: nothing else finds its mistakes before a server starts.
        Command::Validate(_) => &[ConfigSection::Lints, ConfigSection::Server],
        Command::Reconcile(_) | Command::Plan(_) | Command::Diff(_) | Command::Test(_) | Command::Replay(_) => {
            &[ConfigSection::Lints]
        }
        Command::Trace(args) if args.reads_manifests() => &[ConfigSection::Lints],
        Command::Prove(args) if args.reads_manifests() => &[ConfigSection::Lints],
        _ => &[],
    }
}
