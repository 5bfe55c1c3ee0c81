//! `edgewright store copy`: a whole store in another engine (D115).

use crate::cli::command_prelude::*;
use crate::store::maintenance::copy::{self, CopiedStore};
use crate::store::seal::MasterKeySource;
use crate::store::{shown_address, store_exists};

/// Copies a store, and says what to do next.
pub(super) fn copy(from: &Path, to: &Path, source: &MasterKeySource) -> CommandResult {
    if !store_exists(from)? {
        let message = format!("no store found in `{}`", escaped(&shown_address(from)));
        let help = "name the folder of the store, or the URL of its database";
        return Err(Diagnostic::error(Code::StoreFormat, message).help(help).into());
    }
    let CopiedStore { revision, records, resources } = during("Copying", || copy::copy(from, to, source))?;
    let (resources, records) = (number_of(resources, "resource"), number_of(records as usize, "record"));
    let to = shown_address(to);
    say(&format!("Copied revision {revision} with {resources} and {records} to {}.", escaped(&to)));
    say(
        "The copy has the same master key: name it with --master-key-file. Stop the server of the former store for good.",
    );
    Ok(Exit::Done)
}
