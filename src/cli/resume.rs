//! `edgewright resume`: a suspended source is applied again (D84).

use std::sync::Arc;

use super::{
    CommandResult, Exit, Failure, StoreArgs,
    show::say,
    source::source_name,
    target::{ApiClient, ServerArgs},
};
use crate::{api::sources::view::SourceView, model::key::segment, reconcile::suspension::Suspensions};

/// Resume a source that was suspended: `serve` applies its manifests again.
///
/// Works through a server with --server, or on a store that no server has open.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of the source.
    #[arg(value_name = "SOURCE", value_parser = source_name)]
    source: String,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    store: StoreArgs,
}

impl Args {
    /// Lets `--store` on the command line override a server from the environment.
    pub(super) fn choose(&mut self, by_flag: &dyn Fn(&str) -> bool) -> Result<(), Failure> {
        self.server.give_way(by_flag("store"), by_flag("server"))
    }

    /// Runs the command.
    pub(super) fn run(self) -> CommandResult {
        match self.server.url() {
            Some(url) => {
                let client = ApiClient::new(url, &self.server.version_header)?;
                let _: SourceView = client.request(&format!("/sources/{}/resume", segment(&self.source)), b"")?;
            }
            None => Suspensions::open(Arc::new(self.store.open_existing()?))?.set(&self.source, None)?,
        }
        say(&format!("Resumed source {}.", self.source));
        Ok(Exit::Done)
    }
}
