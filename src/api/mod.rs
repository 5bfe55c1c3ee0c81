//! The management API over HTTP. Reads use a snapshot, and every change is one commit.
//!
//! [`endpoint`] lists the endpoints of all kinds and slots; `handle` implements each action once.

mod answer;
mod auth;
pub(crate) mod body;
mod drain;
pub(crate) mod endpoint;
mod given;
mod handle;
mod metrics;
pub(crate) mod openapi;
mod page;
mod query;
mod ready;
pub(crate) mod reconciliation;
mod router;
mod saml;
mod serve;
mod work;

use std::sync::Arc;

pub(crate) use self::metrics::install as install_metrics;
pub use router::router;
pub use serve::{Server, bind};

use crate::{
    model::{id::Id, site::Site},
    reconcile::watch::Following,
    store::Store,
};
use work::Work;

/// The default name of the version header (D4).
pub const VERSION_HEADER: &str = "Service-Version";

/// The settings of the API.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The URL for clients, without a trailing slash (D13).
    pub base_url: String,
    /// The URL for identity providers; defaults to the base URL (D18).
    pub saml_base_url: String,
    /// The name of the version header (D4).
    pub version_header: String,
}

/// The state shared by all requests.
pub struct App {
    store: Arc<Store>,
    site: Site,
    settings: Settings,
    /// The server's reconcile loop, if it follows a folder.
    following: Option<Arc<Following>>,
    work: Work,
}

impl App {
    /// Creates the API of a store.
    pub fn new(store: Arc<Store>, settings: Settings) -> Self {
        let signer = saml::Signer::new(store.root_secret());
        let site = Site {
            base_url: settings.base_url.clone(),
            saml_base_url: settings.saml_base_url.clone(),
            saml_certificate: Box::new(move |route: &Id| signer.certificate_pem(route)),
        };
        Self { store, site, settings, following: None, work: Work::default() }
    }

    /// Adds the reconcile loop of a folder.
    #[must_use]
    pub fn following(mut self, following: Option<Arc<Following>>) -> Self {
        self.following = following;
        self
    }
}
