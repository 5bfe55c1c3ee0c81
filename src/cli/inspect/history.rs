//! `edgewright history`: shows who changed what, and verifies the chain of records (D58, D77).

mod text;

use std::ops::ControlFlow;

use clap::{ArgAction, Subcommand, ValueEnum};

use super::get::ResourceReader;
use crate::cli::command_prelude::*;
use crate::cli::operate::revision::{
    commit_prefix, revision_failure, revision_in_store, revision_name, revision_on_server,
};
use crate::cli::output::json_line;
use crate::cli::target::{each_record, get_entry, owns_nothing, to_record};
use crate::server::operations::history::document::HistoryEntry;
use crate::store::history::select::HistorySearch;
use crate::store::{CommitPrefix, HistoryFilter, Record, RevisionError};
use text::{ParentNames, RecordDetail};

/// The number of records that are read from a store at once if a filter selects them. Without the index, each time reads the log
/// from its beginning.
const BATCH: usize = 500;

/// Show who changed the store, when and how, newest first.
///
/// Every attempt to change the store has a record, including refused ones, and so do the suspensions of sources. Each line
/// begins with the revision, or `-` if the attempt made none, and names API keys by their descriptions. The resources that
/// changed follow, or if they are many, their numbers; `history show` has all of them with their API calls. Use `--resource`
/// to follow one resource, and `--changes` to see each resource before and after. Reads a local store, where secrets appear
/// as digests, or a server with --server, which masks them.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Maximum number of records to show.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, env = "EDGEWRIGHT_LIMIT", value_parser = limit)]
    limit: usize,
    /// Show only records with a lower number than this, which `--format json` shows as `position`.
    #[arg(long, value_name = "RECORD", env = "EDGEWRIGHT_BEFORE")]
    before: Option<u64>,
    /// Show only records about this resource.
    ///
    /// RESOURCE is its ID, its name such as `storefront/cart` if no other resource has it, its kind and name such as
    /// `route storefront/cart` or `route/storefront/cart`, or its path such as `/edges/https/edghts_…`, which is needed
    /// for the routes of an edge that was deleted.
    #[arg(help_heading = help::FILTER)]
    #[arg(long, value_names = ["RESOURCE", "NAME"], num_args = 1..=2, action = ArgAction::Set, env = "EDGEWRIGHT_RESOURCE")]
    resource: Vec<String>,
    /// Show only records of this API key, owner or commit author (email address), or `local` for the command line.
    #[arg(help_heading = help::FILTER, long, value_name = "ACTOR")]
    actor: Option<String>,
    /// Show only records of this source.
    #[arg(help_heading = help::FILTER, long, value_name = "NAME")]
    source: Option<String>,
    /// Show only attempts to apply this Git commit (at least 7 digits of its ID).
    #[arg(help_heading = help::FILTER, long, value_name = "COMMIT", value_parser = commit_prefix)]
    commit: Option<CommitPrefix>,
    /// Show only this revision and later ones.
    #[arg(help_heading = help::FILTER, long, value_name = "REVISION")]
    from: Option<u64>,
    /// Show only this revision and earlier ones.
    #[arg(help_heading = help::FILTER, long, value_name = "REVISION")]
    to: Option<u64>,
    /// Show each resource before and after.
    #[arg(long, env = "EDGEWRIGHT_CHANGES")]
    changes: bool,
    /// Output format; `wide` adds up to 10 API calls of each record, or all with `--changes`, and `json` prints one record
    /// per line.
    #[arg(short = 'o', long, value_enum, default_value_t = HistoryForm::Text, env = "EDGEWRIGHT_HISTORY_FORMAT")]
    format: HistoryForm,
    #[command(flatten)]
    place: StoreOrServer,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show a revision: who made it, from which commit, and every resource before and after.
    Show {
        /// Revision to show, or a Git commit for the newest revision that was applied from it.
        #[arg(value_name = "REVISION|COMMIT", value_parser = revision_name)]
        revision: RevisionName,
        /// Output format; `wide` is the same as `text`, and `json` is what GET `/history/REVISION` returns.
        #[arg(short = 'o', long, value_enum, default_value_t = HistoryForm::Text, env = "EDGEWRIGHT_HISTORY_FORMAT")]
        format: HistoryForm,
        #[command(flatten)]
        place: StoreOrServer,
    },
    /// Check that no record was changed or removed. Needs the files of the store: a server cannot check itself.
    Verify {
        #[command(flatten)]
        place: StoreOrServer,
    },
}

/// The format of the history, and of who set the fields of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum HistoryForm {
    Text,
    Wide,
    Json,
}

impl Args {
    /// Whether the command reads the files of a store, and so works with no server.
    pub(crate) fn needs_files(&self) -> bool {
        matches!(self.command, Some(Command::Verify { .. }))
    }

    /// The store or server of the command or its subcommand.
    pub(crate) fn place(&mut self) -> &mut StoreOrServer {
        match &mut self.command {
            Some(Command::Show { place, .. } | Command::Verify { place }) => place,
            None => &mut self.place,
        }
    }

    pub(crate) fn run(mut self) -> CommandResult {
        match self.command.take() {
            Some(Command::Verify { place }) => return verify(&place),
            Some(Command::Show { revision, format, place }) => return show(&place, &revision, format),
            None => {}
        }
        let origin = ResourceReader::open(&self.place, None)?;
        let filter = HistoryFilter {
            resource: self.path_of_resource(&origin)?,
            actor: self.actor.clone(),
            source: self.source.clone(),
            from: self.from,
            to: self.to,
            commit: self.commit.clone(),
        };
        let only = filter.resource.clone();
        let records = match &origin {
            ResourceReader::Server(client, _) => self.records_on_server(client, &filter)?,
            ResourceReader::Store(store, _) => self.records_in_store(store, filter)?,
        };
        if records.is_empty() {
            say("No records found.");
            if let Some(unknown) = self.source.as_deref().and_then(|source| unknown_source(source, &origin)) {
                say(&unknown);
            }
        }
        let calls = self.format == HistoryForm::Wide;
        let detail = RecordDetail { changes: self.changes, calls, only: only.as_deref() };
        let (mut lines, mut names) = (String::new(), ParentNames::new(&origin));
        for record in records {
            lines += &match self.format {
                HistoryForm::Text | HistoryForm::Wide => text::text(&record, detail, &mut names)?,
                HistoryForm::Json => json_line(&record)?,
            };
        }
        print(lines)
    }

    /// The path of the resource that is asked for.
    fn path_of_resource(&self, origin: &ResourceReader) -> Result<Option<String>, Failure> {
        // A variable and the configuration file have one value.
        let words: Vec<&str> = match self.resource.as_slice() {
            [] => return Ok(None),
            [path] if path.starts_with('/') => return Ok(Some(path.clone())),
            [one] => one.splitn(2, ' ').collect(),
            several => several.iter().map(String::as_str).collect(),
        };
        let first = words.first().copied().unwrap_or_default();
        let second = words.get(1).copied();
        // The resource may no longer exist: the history has who deleted it.
        let by_id = if second.is_none() { origin.key_from_id(first)? } else { None };
        let key = by_id.map_or_else(|| origin.find_key(first, second), Ok)?;
        Ok(Some(key.path()))
    }

    fn records_in_store(&self, store: &Store, filter: HistoryFilter) -> Result<Vec<ShownRecord>, Failure> {
        // The query selects the records of a resource.
        let is_sparse = HistoryFilter { resource: None, ..filter.clone() } != HistoryFilter::default();
        let batch = if is_sparse { self.limit.max(BATCH) } else { self.limit };
        let before = self.before.unwrap_or(u64::MAX);
        let search = HistorySearch { filter: &filter, before, batch, most: u64::MAX };
        let mut headers = Vec::new();
        store.search(&search, &|| false, &mut |header| {
            if headers.len() < self.limit {
                headers.push(header);
            }
            self.unless_enough(headers.len())
        })?;
        let state = store.snapshot();
        let description = |record: &Record| Some(state.key_description(record.author.key()?).to_owned());
        let shown = |record: Record| {
            let key_description = description(&record).unwrap_or_default();
            ShownRecord { record, key_description }
        };
        Ok(store.whole(headers)?.into_iter().map(shown).collect())
    }

    fn records_on_server(&self, client: &ApiClient, filter: &HistoryFilter) -> Result<Vec<ShownRecord>, Failure> {
        let mut records = Vec::new();
        each_record(client, filter, self.before, self.limit, &mut |item| {
            if records.len() < self.limit {
                let key_description = item.author.key_description.clone();
                records.push(ShownRecord { record: to_record(client, item)?, key_description });
            }
            Ok(self.unless_enough(records.len()))
        })?;
        Ok(records)
    }

    fn unless_enough(&self, count: usize) -> ControlFlow<()> {
        if count < self.limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

/// Parses the number of records. With none, the history would seem to be empty.
fn limit(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("it must be at least 1".to_owned()),
        parsed => parsed.map_err(|error| error.to_string()),
    }
}

/// What to say about a source that neither the history nor the state has.
fn unknown_source(source: &str, origin: &ResourceReader) -> Option<String> {
    let known = origin.sources();
    let unknown = (!known.contains(source)).then(|| owns_nothing(source, &known))?;
    let help = unknown.help.unwrap_or_default();
    Some(format!("{}; {help}", unknown.message))
}

/// A record, with the present description of its API key.
#[derive(Debug, Serialize)]
struct ShownRecord {
    #[serde(flatten)]
    record: Record,
    key_description: String,
}

/// Shows what a revision changed, as the API does.
fn show(place: &StoreOrServer, name: &RevisionName, format: HistoryForm) -> CommandResult {
    let origin = ResourceReader::open(place, None)?;
    let shown = match &origin {
        ResourceReader::Server(client, _) => get_entry(client, revision_on_server(client, name, None)?)?,
        ResourceReader::Store(store, _) => entry_in_store(store, name)?,
    };
    print(match format {
        HistoryForm::Json => json::text(&shown, Secrets::Masked)?,
        HistoryForm::Text | HistoryForm::Wide => text::entry(shown, &mut ParentNames::new(&origin))?,
    })
}

fn entry_in_store(store: &Store, name: &RevisionName) -> Result<HistoryEntry, Failure> {
    let revision = revision_in_store(store, name, None)?;
    if let Some(record) = store.record(revision)? {
        return Ok(HistoryEntry::from_record(record, "", &store.snapshot()));
    }
    let current = store.snapshot().revision;
    if revision == 0 || revision > current {
        return Err(revision_failure(RevisionError::Future { revision, current }));
    }
    let oldest = store.oldest_revision()?;
    let message = format!("revision {revision} is no longer in the history; the oldest one is {oldest}");
    Err(Diagnostic::error(Code::RevisionGone, message).help(Code::RevisionGone.info().cure).into())
}

fn verify(place: &StoreOrServer) -> CommandResult {
    if place.server.url().is_some() {
        let message = "`history verify` checks the files of a store, and does not work through a server";
        let help = "use --store on the machine of the server while the server is stopped, or with a copy of the store";
        return Err(Diagnostic::error(Code::Parameter, message).help(help).into());
    }
    let verified = place.store.read_existing()?.verify()?;
    if verified.records == 0 {
        return print("The history is empty.\n");
    }
    let last = verified.oldest + verified.records - 1;
    let hash: String = verified.hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let scrubbed = scrubbed_text(verified.scrubbed);
    print(format!(
        "{} verified: {} to {last}{scrubbed}, chain hash {hash}…\n",
        records_text(verified.records),
        verified.oldest
    ))
}

pub(crate) fn records_text(count: u64) -> String {
    number_of(usize::try_from(count).unwrap_or(usize::MAX), "record")
}

/// The number of scrubbed records, if there are any.
pub(crate) fn scrubbed_text(count: u64) -> String {
    if count == 0 { String::new() } else { format!(", {count} of them scrubbed of API tokens") }
}
