//! Where a command works: on a store, or through a server.

use super::{ApiClient, ServerArgs};
use crate::cli::{Failure, StoreArgs, input::option_origin::Given};

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
    pub(crate) fn choose(&mut self, given: &Given<'_>) -> Result<(), Failure> {
        self.store.is_by_flag = given.by_flag("store");
        self.server.choose(given)?;
        match self.server.url() {
            Some(_) => Ok(()),
            None => given.check_store_options(),
        }
    }

    /// A client of the server, if there is one.
    pub(crate) fn client(&self) -> Result<Option<ApiClient>, Failure> {
        self.server.url().map(|url| self.server.connect(url)).transpose()
    }
}
