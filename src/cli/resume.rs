//! `edgewright resume`: a suspended source is applied again (D84).

use std::sync::Arc;

use super::{
    CommandResult, Exit, show::say, source::source_name, store_or_server::StoreOrServer, suspend::SEE_SUSPENSION,
};
use crate::{
    api::sources::view::SourceView,
    model::{key::segment, operation::Author},
    reconcile::suspension::Suspensions,
};

/// Resume a source that was suspended: `serve` applies its manifests again.
///
/// Works through a server with --server, or on a store that no server has open.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of the source.
    #[arg(value_name = "SOURCE", value_parser = source_name)]
    source: String,
    #[command(flatten)]
    pub place: StoreOrServer,
}

impl Args {
    /// Runs the command.
    pub(super) fn run(self) -> CommandResult {
        let was_suspended = match self.place.client()? {
            Some(client) => {
                let path = format!("/sources/{}/resume", segment(&self.source));
                client.change::<SourceView>(&path, b"", SEE_SUSPENSION)?.replaced_suspension.is_some()
            }
            None => {
                let store = Arc::new(self.place.store.open_existing()?);
                Suspensions::open(store)?.set(&self.source, None, Author::Local)?.is_some()
            }
        };
        say(&match was_suspended {
            true => format!("Resumed source {}.", self.source),
            false => format!("Source {} was not suspended.", self.source),
        });
        Ok(Exit::Done)
    }
}
