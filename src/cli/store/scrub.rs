//! `edgewright store scrub`: removes API tokens from what the history has recorded (D23).

use super::store_args::StoreArgs;
use crate::{cli::command_prelude::*, store::RecordedTokens};

const HELP: &str =
    "change or delete it, and run `edgewright store scrub` again: only a commit changes the current state";

/// Scrubs the history of a store, or shows what that would change.
pub(super) fn scrub(store: &StoreArgs, retention: &RetentionArgs, is_applied: bool) -> CommandResult {
    let opened = if is_applied { store.open_existing(retention)? } else { store.read_existing()? };
    let current = during("Searching", || opened.current_tokens())?;
    if !current.is_empty() {
        let described = |name: &String| {
            let message = format!("{name} contains an API token");
            Diagnostic::error(Code::NotAllowed, message).help(HELP)
        };
        diagnostics::diagnostics(&current.iter().map(described).collect::<Vec<_>>());
        return Ok(Exit::Error);
    }
    let found = during("Searching", || opened.recorded_tokens())?;
    if found.is_empty() {
        say("Nothing to scrub.");
        return Ok(Exit::Done);
    }
    print(listed(&found))?;
    if !is_applied {
        say("Nothing was changed. Run the command with --apply to scrub the history.");
        return Ok(Exit::Pending);
    }
    during("Scrubbing", || opened.scrub(&found))?;
    say("The history is scrubbed. Revoke the keys of the tokens; earlier backups still contain them.");
    Ok(Exit::Done)
}

/// The records with tokens, and how many there are.
fn listed(found: &RecordedTokens) -> String {
    let lines = found.records.iter().map(|record| format!("  record {}\n", record.position));
    format!("API tokens are in {}:\n{}", found.text(), lines.collect::<String>())
}
