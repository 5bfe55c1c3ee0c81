//! The management API over HTTP. Every request is answered from the Snapshot, every change is one commit.
//!
//! [`endpoint`] lists what there is by visiting kinds and slots; `handle` has one implementation of each action.

mod answer;
mod auth;
pub mod body;
mod drain;
pub mod endpoint;
mod example;
mod handle;
mod metrics;
pub mod openapi;
mod page;
mod query;
mod ready;
pub mod reconciliation;
mod router;
mod saml;
mod serve;
mod work;

use std::sync::Arc;

pub use router::router;
pub use serve::{Server, bind};

use crate::{
    model::{id::Id, resource::Site},
    reconcile::watch::Following,
    store::Store,
};
use work::Work;

/// The name of the version header, unless a deployment names another (D4).
pub const VERSION_HEADER: &str = "Service-Version";

/// How the API is served.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address that clients use, without a slash at the end (D13).
    pub base_url: String,
    /// The address that identity providers use; the base URL by default (D18).
    pub saml_base_url: String,
    /// The name of the version header (D4).
    pub version_header: String,
}

/// What every request needs.
pub struct App {
    store: Arc<Store>,
    site: Site,
    settings: Settings,
    /// The loop of a server that reconciles a source from a folder.
    following: Option<Arc<Following>>,
    work: Work,
}

impl App {
    /// An API on a store.
    pub fn new(store: Arc<Store>, settings: Settings) -> Self {
        let signer = saml::Signer::new(store.root_secret());
        let site = Site {
            base_url: settings.base_url.clone(),
            saml_base_url: settings.saml_base_url.clone(),
            saml_certificate: Box::new(move |route: &Id| signer.certificate_pem(route)),
        };
        Self { store, site, settings, following: None, work: Work::default() }
    }

    /// The same API beside a loop that reconciles a source from a folder.
    #[must_use]
    pub fn following(mut self, following: Option<Arc<Following>>) -> Self {
        self.following = following;
        self
    }
}
