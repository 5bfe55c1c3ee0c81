//! The choice between a store and a server, which most commands offer.

use super::{client::ApiClient, server_args::ServerArgs};
use crate::cli::config::untrusted_file::CheckedOptions;
use crate::cli::{input::option_origins::OptionOrigins, prelude::*, store::store_args::StoreArgs};

/// A store or a server.
#[derive(Debug, clap::Args)]
pub(crate) struct StoreOrServer {
    #[command(flatten)]
    pub store: StoreArgs,
    #[command(flatten)]
    pub server: ServerArgs,
}

impl StoreOrServer {
    /// Chooses between the two (D105). A client ignores what a configuration file that was found says of a store: server and
    /// clients can share a folder.
    pub(crate) fn choose(&mut self, origins: &OptionOrigins<'_>) -> Result<(), Failure> {
        self.store.is_by_flag = origins.is_flag("store");
        self.server.choose(origins)?;
        match self.server.url() {
            Some(_) => Ok(()),
            None => origins.config.check_options(origins.command, origins.arguments, CheckedOptions::OfStore),
        }
    }

    /// Chooses for a command that works with files alone if they are given: only a flag then names a store.
    pub(crate) fn choose_beside_files(&mut self, has_files: bool, origins: &OptionOrigins<'_>) -> Result<(), Failure> {
        match has_files && !origins.is_flag("store") {
            true => self.server.choose(origins),
            false => self.choose(origins),
        }
    }

    /// A client of the server, if there is one.
    pub(crate) fn client(&self) -> Result<Option<ApiClient>, Failure> {
        self.server.url().map(|url| self.server.connect(url)).transpose()
    }
}
