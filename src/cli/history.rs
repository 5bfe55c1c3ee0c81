//! `edgewright history`: shows who changed what, and verifies the chain of records (D58).

use std::fmt::Write;

use clap::{Subcommand, ValueEnum};

use super::{CommandResult, Exit, StoreArgs, output::print};
use crate::{
    api::history::document::HistoryEntry,
    model::{code::Code, diagnostic::Diagnostic, json, operation::Author, secret::Secrets},
    store::{
        engine::Query,
        history::{self, Record, Touched},
    },
    text::escaped,
};

/// Show who changed the store, when and how, newest first.
///
/// Every attempt to change the store has a record, including refused ones. Use `--resource` to follow one resource, and
/// `--changes` to see each resource before and after. Secrets appear as digests.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    store: StoreArgs,
    /// Maximum number of records to show.
    #[arg(long, value_name = "N", default_value_t = 20, env = "EDGEWRIGHT_LIMIT")]
    limit: usize,
    /// Show only records with a lower number than this.
    #[arg(long, value_name = "RECORD", env = "EDGEWRIGHT_BEFORE")]
    before: Option<u64>,
    /// Show only records about the resource with this path, such as `/edges/https/edghts_…`.
    #[arg(long, value_name = "PATH", env = "EDGEWRIGHT_RESOURCE")]
    resource: Option<String>,
    /// Show each resource before and after.
    #[arg(long, env = "EDGEWRIGHT_CHANGES")]
    changes: bool,
    /// Output format; `json` prints one record per line.
    #[arg(long, value_enum, default_value_t = Form::Text, env = "EDGEWRIGHT_HISTORY_FORMAT")]
    format: Form,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show a revision: who made it, from which commit, and every resource before and after.
    Show {
        /// Revision to show.
        #[arg(value_name = "REVISION")]
        revision: u64,
        /// Output format; `json` is what GET `/history/REVISION` returns.
        #[arg(long, value_enum, default_value_t = Form::Text, env = "EDGEWRIGHT_HISTORY_FORMAT")]
        format: Form,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Check that no record was changed or removed.
    Verify {
        #[command(flatten)]
        store: StoreArgs,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    Text,
    Json,
}

impl Args {
    /// Runs the command.
    pub(super) fn run(self) -> CommandResult {
        match self.command {
            Some(Command::Verify { store }) => return verify(&store),
            Some(Command::Show { revision, format, store }) => return show(&store, revision, format),
            None => {}
        }
        let store = self.store.read_existing()?;
        let query = self.resource.map_or(Query::All, Query::Resource);
        let records = store.history(&query, self.before.unwrap_or(u64::MAX), self.limit)?;
        let mut lines = String::new();
        for record in records {
            lines += &match self.format {
                Form::Text => text(&record, self.changes),
                Form::Json => String::from_utf8_lossy(&record.to_bytes()?).into_owned() + "\n",
            };
        }
        print(lines)?;
        Ok(Exit::Done)
    }
}

/// Shows what a revision changed, as the API does.
fn show(store: &StoreArgs, revision: u64, format: Form) -> CommandResult {
    let store = store.read_existing()?;
    let Some(record) = store.record(revision)? else {
        let current = store.snapshot().revision;
        if revision == 0 || revision > current {
            let message = format!("revision {revision} does not exist; the store is at revision {current}");
            let help = "run `edgewright history` to list the revisions";
            return Err(Diagnostic::error(Code::OutOfRange, message).help(help).into());
        }
        let oldest = store.oldest_revision()?;
        let message = format!("revision {revision} is no longer in the history; the oldest one is {oldest}");
        return Err(Diagnostic::error(Code::RevisionGone, message).help(Code::RevisionGone.info().cure).into());
    };
    print(match format {
        Form::Json => json::text(&HistoryEntry::of(record, ""), Secrets::Masked)?,
        Form::Text => entry(&HistoryEntry::of(record, "")),
    })?;
    Ok(Exit::Done)
}

/// A revision as a headline, the calls, and the resources.
fn entry(entry: &HistoryEntry) -> String {
    let head = &entry.head;
    let revision = head.revision.unwrap_or_default();
    let mut text = format!("revision {revision}  {}  {}\n", head.created_at, escaped(&head.author.text()));
    for call in &entry.calls {
        let _ = writeln!(text, "    {}", escaped(call));
    }
    for resource in &entry.resources {
        let name = if resource.name.is_empty() { &resource.path } else { &resource.name };
        let place =
            if resource.declared_at.is_empty() { String::new() } else { format!(" ({})", resource.declared_at) };
        let _ = writeln!(text, "{}", escaped(&format!("{} {name}{place}", resource.kind)));
        for (sign, state) in [("-", &resource.before), ("+", &resource.after)] {
            for (field, value) in state.iter().filter_map(|state| state.as_object()).flatten() {
                let _ = writeln!(text, "  {}", escaped(&format!("{sign} {field}: {value}")));
            }
        }
    }
    text
}

fn verify(store: &StoreArgs) -> CommandResult {
    let verified = store.read_existing()?.verify()?;
    if verified.records == 0 {
        print("The history is empty.\n")?;
        return Ok(Exit::Done);
    }
    let last = verified.oldest + verified.records - 1;
    let hash: String = verified.hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    print(format!("{} records verified: {} to {last}, chain hash {hash}…\n", verified.records, verified.oldest))?;
    Ok(Exit::Done)
}

/// A record as a headline, the calls, and the resources.
fn text(record: &Record, changes: bool) -> String {
    let outcome = match (record.outcome, record.revision) {
        (history::Outcome::Applied, Some(revision)) => format!("revision {revision}"),
        (history::Outcome::Applied, None) => "applied".to_owned(),
        (history::Outcome::Refused, _) => "refused".to_owned(),
        (history::Outcome::Failed, _) => "failed".to_owned(),
    };
    let author = author(&record.author);
    let mut text = format!("{}  {}  {outcome}  {}", record.position, record.at, escaped(&author));
    let mut line = |line: String| {
        text.push('\n');
        text.push_str(&escaped(&line));
    };
    if !record.message.is_empty() {
        line(format!("    {}", record.message));
    }
    for call in &record.calls {
        line(format!("    {call}"));
    }
    for touched in record.resources.iter().filter(|_| changes) {
        for written in resource(touched) {
            line(format!("      {written}"));
        }
    }
    text.push('\n');
    text
}

fn author(author: &Author) -> String {
    match author {
        Author::Api { key, owner } => format!("API key {key} of {owner}"),
        Author::Local => "command line".to_owned(),
        Author::Rollback { to, source, rejected, through } => {
            let mut text = format!("rollback to revision {to}");
            let _ = source.as_ref().map(|source| write!(text, " of source `{source}`"));
            for commit in rejected.iter().filter_map(|left| left.commit.as_ref()) {
                let _ = write!(text, ", leaving {commit}");
            }
            let _ = through.as_ref().map(|(key, owner)| write!(text, " with API key {key} of {owner}"));
            text
        }
        Author::Source { source, commit, commit_author, through } => {
            let mut text = format!("source `{source}`");
            let _ = commit.as_ref().map(|commit| write!(text, " at {commit}"));
            let _ = commit_author.as_ref().map(|who| write!(text, " by {} <{}>", who.name, who.email));
            let _ = through.as_ref().map(|(key, owner)| write!(text, " with API key {key} of {owner}"));
            text
        }
    }
}

fn resource(touched: &Touched) -> Vec<String> {
    let name = touched.name.as_deref().unwrap_or(&touched.path);
    let place = touched.declared_at.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
    let mut lines = vec![format!("{} {name}{place}", touched.kind)];
    for (sign, state) in [("-", &touched.before), ("+", &touched.after)] {
        for (field, value) in state.iter().filter_map(|state| state.as_object()).flatten() {
            lines.push(format!("{sign} {field}: {value}"));
        }
    }
    lines
}
