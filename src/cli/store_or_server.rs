//! Where a command works: on a store, or through a server.

use super::{
    Failure, StoreArgs,
    target::{ApiClient, ServerArgs},
};

/// A store or a server.
#[derive(Debug, clap::Args)]
pub(super) struct StoreOrServer {
    #[command(flatten)]
    pub store: StoreArgs,
    #[command(flatten)]
    pub server: ServerArgs,
}

impl StoreOrServer {
    /// Chooses between the two: `--store` on the command line overrides a server from the environment.
    pub(super) fn choose(&mut self, by_flag: &dyn Fn(&str) -> bool) -> Result<(), Failure> {
        self.server.give_way(by_flag("store"), by_flag("server"))
    }

    /// A client of the server, if there is one.
    pub(super) fn client(&self) -> Result<Option<ApiClient>, Failure> {
        self.server.url().map(|url| ApiClient::new(url, &self.server.version_header)).transpose()
    }
}
