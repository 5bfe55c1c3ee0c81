//! `edgewright store check` and `store repair`: whether a store or backup can be read, and what to do if not (D100).

use super::restore::UNREADABLE;
use super::store_args::StoreArgs;
use crate::cli::command_prelude::*;
use crate::cli::inspect::history::{records_text, scrubbed_text};
use crate::store::commit::header::Verified;
use crate::store::folder::harmless_damage;
use crate::store::maintenance::backup_read::BackupFile;
use crate::store::maintenance::check::StoreCheck;
use crate::store::maintenance::inspect::index_agrees;
use crate::store::maintenance::repair::Repair;
use crate::store::{StoreError, store_exists};

/// Reads everything in a store or a backup, and prints what there is.
pub(super) fn check(store: &StoreArgs, backup: Option<&Path>) -> CommandResult {
    let (found, index) = match backup {
        Some(file) => {
            let found = during("Checking", || in_backup(store, file));
            (found.map_err(|failure| failure.with_help(Code::StoreCorrupt, OTHER_BACKUP))?, None)
        }
        None => {
            let opened = open(store).map_err(|failure| with_advice(failure, store))?;
            let mut found = during("Checking", || opened.check());
            if store.is_in_database() {
                return report_check(&found, "with the indexes of the database", found.problems.clone(), DATABASE);
            }
            found.problems.extend(harmless_damage(store.folder())?);
            (found, Some(index_agrees(store.folder())))
        }
    };
    let mut problems = found.problems.clone();
    let index = match index {
        Some(Ok(Some(last))) => format!("index up to record {last}"),
        Some(Ok(None)) => "no index yet; the next server builds it".to_owned(),
        Some(Err(error)) => {
            problems.push(error);
            "index with problems".to_owned()
        }
        None => "no index, as in every backup".to_owned(),
    };
    report_check(&found, &index, problems, if backup.is_some() { OTHER_BACKUP } else { REPAIR })
}

fn report_check(found: &StoreCheck, index: &str, problems: Vec<StoreError>, help: &str) -> CommandResult {
    print(report(found, index))?;
    if problems.is_empty() {
        say("No problems found.");
        return Ok(Exit::Done);
    }
    Ok(report_problems(&problems, help))
}

/// The help for a damaged backup: a repair works on stores.
pub(super) const OTHER_BACKUP: &str = "use another backup";
/// The help for a damaged store.
const REPAIR: &str = "run `edgewright store repair`, which shows what can be recovered, or restore a backup";

/// The help for a damaged store in a database.
const DATABASE: &str = "restore the database with PostgreSQL's tools, or reconcile the manifests into a new store";

/// Opens the store as it is; it must exist.
fn open(store: &StoreArgs) -> Result<Store, Failure> {
    if store.is_in_database() || !store_exists(store.folder())? {
        // The error says that there is no store.
        return store.read_existing();
    }
    Ok(Store::open_as_it_is(store.folder(), &store.master_key.source()?)?)
}

fn in_backup(store: &StoreArgs, file: &Path) -> Result<StoreCheck, Failure> {
    if file.is_dir() {
        let shown = printable(&file.to_string_lossy());
        let help = format!("use `--store {shown}`; an argument without --store is a backup file");
        return Err(Diagnostic::error(Code::StoreFailed, format!("{shown} is a folder")).help(help).into());
    }
    let unreadable = |error: StoreError| Failure::from(error).with_help(Code::StoreFailed, UNREADABLE);
    let backup = BackupFile::open(file).map_err(unreadable)?;
    let opened = backup.open_store(store.folder(), &store.master_key.source()?)?;
    Ok(opened.store.check())
}

/// Tells who has a damaged store how to go on.
fn with_advice(failure: Failure, store: &StoreArgs) -> Failure {
    if !failure.has_code(Code::StoreCorrupt) || store.is_in_database() {
        return failure;
    }
    say(&format!("{} cannot be opened.", store.folder().display()));
    failure.with_help(Code::StoreCorrupt, REPAIR)
}

fn report(found: &StoreCheck, index: &str) -> String {
    let StoreCheck { revision, history, resources, sealed, references, former, former_lost, .. } = found;
    let history = match history {
        Some(Verified { records, oldest, scrubbed, .. }) => {
            format!("{} from record {oldest}{}", records_text(*records), scrubbed_text(*scrubbed))
        }
        None => "damaged".to_owned(),
    };
    format!(
        "revision {revision}\n\
         history: {history}, {index}\n\
         resources: {resources}, {sealed} of them with secrets, {references} references\n\
         former values: {former}, {former_lost} of them with lost secrets\n"
    )
}

/// Repairs a store, or shows what that would give up.
pub(super) fn repair(store: &StoreArgs, is_applied: bool) -> CommandResult {
    store.require_folder("store repair", DATABASE)?;
    let source = store.master_key.source()?;
    let folder = store.folder();
    if !store_exists(folder)? {
        return store.read_existing().map(|_| Exit::Done);
    }
    let repair = during("Checking", || match is_applied {
        true => Repair::begin(folder, &source),
        false => Repair::plan(folder, &source),
    })?;
    if !repair.is_needed() {
        say("Nothing to repair.");
        return Ok(Exit::Done);
    }
    print(plan(&repair))?;
    if !is_applied {
        say(
            "Nothing was changed. Run the command with --apply to repair the store; it keeps a copy of everything first.",
        );
        return Ok(Exit::Pending);
    }
    let copy = during("Repairing", || repair.apply())?;
    say(&format!("The store as it was is in {}.", copy.display()));
    let opened = Store::open_as_it_is(folder, &source)?;
    let problems = during("Checking", || opened.check()).problems;
    if problems.is_empty() {
        say("The store is repaired.");
        return Ok(Exit::Done);
    }
    Ok(report_problems(&problems, "restore a backup, or reconcile the manifests into a new store"))
}

fn report_problems(problems: &[StoreError], help: &str) -> Exit {
    let described = |error: &StoreError| Diagnostic::error(error.code, error.message.clone()).help(help);
    diagnostics::diagnostics(&problems.iter().map(described).collect::<Vec<_>>());
    Exit::Error
}

fn plan(repair: &Repair) -> String {
    let found = &repair.salvage;
    let list = |lines: &[String]| lines.iter().map(|line| format!("  {}\n", escaped(line))).collect::<String>();
    let given_up = match found.given_up.as_slice() {
        [] => "Nothing is lost.\n".to_owned(),
        lines => format!("Lost:\n{}", list(lines)),
    };
    let end = format!("The repaired store is at revision {}, record {}.\n", found.revision, found.position);
    format!("Problems:\n{}{given_up}{end}", list(&found.problems))
}
