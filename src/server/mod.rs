//! The management API over HTTP, and the loop that keeps a store in sync with a folder.
//!
//! [`router()`] returns an [`axum::Router`] that can be part of a larger application. [`bind()`] returns a server with
//! graceful shutdown.
//!
//! ```
//! use std::sync::Arc;
//!
//! use edgewright::{
//!     Store,
//!     server::{App, Settings, VERSION_HEADER, bind, router},
//! };
//!
//! let store = Arc::new(Store::open("memory:")?);
//! let server = bind("127.0.0.1:0")?;
//! let base_url = format!("http://{}", server.address()?);
//! let settings =
//!     Settings { base_url: base_url.clone(), saml_base_url: base_url, version_header: VERSION_HEADER.into() };
//! let router = router(App::new(store, settings).stopped_by(&server));
//! // Until Ctrl-C: `server.run(router, None)`.
//! server.run_until(router, async {})?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod auth;
mod gateway_feed;
pub(crate) mod http;
pub(crate) mod limits;
pub(crate) mod net;
pub(crate) mod notify;
pub(crate) mod openapi;
pub(crate) mod operations;
pub(crate) mod resources;
pub(crate) mod telemetry;

use std::{path::PathBuf, sync::Arc};

pub(crate) use telemetry::metrics::install as install_metrics;
// The API.
pub use http::router::router;
pub use net::listener::{Server, bind};
pub use resources::endpoint::{Action, Endpoint, endpoints};

// The loop.
pub use crate::reconcile::{
    run::report::RunReport,
    sources::handle::{LoopGuard, SourceHandle},
    sync_loop::{
        follow,
        health::{Condition, Health, Reason, Status, Verdict},
    },
};

pub(crate) use http::service::Front;
pub(crate) use net::connections::ConnectionLimits;
pub(crate) use net::tls::{Tls, TlsFiles};

use crate::{
    model::{base_urls::Site, id::Id},
    reconcile::sources::registry::SourceRegistry,
    store::Store,
};
use auth::client_certificates::ClientCertificates;
use gateway_feed::cache::Feeds;
use limits::{
    guards::{GuardSettings, Guards},
    slots::{Slots, classes},
};
use notify::Outbox;
use operations::{
    reconciliation::files::{DEFAULT_MIB, FileCache},
    saml,
    sources::client_revisions::ClientRevisions,
    watch::DEFAULT_WATCHERS,
};
use resources::{commit_executor::Intake, managed_resources::RestWrites, page_cache::KeptPages};
use telemetry::metrics::{Inventories, ScrapedPages, SyncTimes};

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

impl Settings {
    /// The path of the base URL; empty without one.
    fn base_path(&self) -> &str {
        let after_scheme = self.base_url.split_once("://").map_or("", |(_, rest)| rest);
        after_scheme.find('/').and_then(|at| after_scheme.get(at..)).unwrap_or_default()
    }
}

/// The state shared by all requests.
pub struct App {
    store: Arc<Store>,
    site: Site,
    settings: Settings,
    /// The reconcile loops of the sources that the server follows.
    pub(crate) following: SourceRegistry,
    reconciliations: Slots,
    /// The large bodies of reconciliations.
    uploads: Slots,
    /// Lists with a filter, which a long reconciliation must not hold up.
    searches: Slots,
    /// Reads of earlier revisions.
    earlier: Slots,
    /// Limits webhooks, which nobody has authenticated yet.
    hooks: Slots,
    renderings: Slots,
    pages: KeptPages,
    /// The texts of sent manifests.
    files: FileCache,
    watchers: Slots,
    /// The notifications that are to be delivered.
    pub(crate) outbox: Option<Arc<Outbox>>,
    /// Becomes true when the server stops.
    stopping: Option<tokio::sync::watch::Receiver<bool>>,
    /// What the metrics page counts.
    inventories: Inventories,
    /// The metrics pages that are on their way.
    scraped: ScrapedPages,
    /// When clients last synced each source.
    syncs: SyncTimes,
    /// What clients last applied of each source.
    client_revisions: ClientRevisions,
    /// The file with the secret of the webhook at `/hooks/git`, if it is accepted.
    git_hook: Option<PathBuf>,
    /// The configurations of the newest revisions for gateways.
    feeds: Feeds,
    /// The limits of requests, and the log of what is refused.
    pub(crate) guards: Guards,
    /// TLS of the server, for the metrics and `/readyz`.
    pub(crate) tls: Option<Arc<Tls>>,
    /// The owners that clients with certificates act as.
    pub(crate) client_certificates: ClientCertificates,
    backups: Slots,
    /// Encrypts the store with new keys for one client at a time.
    rekeys: Slots,
    /// What sources want to happen with writes to their resources.
    pub(crate) rest_writes: RestWrites,
    /// The commits of small requests.
    intake: Intake,
    /// Whether each blank of a PATCH is meant.
    blanks_count: bool,
}

/// The URLs and certificates of a service.
pub(crate) fn site(store: &Store, base_url: &str, saml_base_url: &str) -> Site {
    let signer = saml::Signer::new(store.root_secret());
    Site {
        base_url: base_url.to_owned(),
        saml_base_url: saml_base_url.to_owned(),
        saml_certificate: Box::new(move |route: &Id| signer.certificate_pem(route)),
    }
}

impl App {
    /// Creates the API of a store.
    pub fn new(store: Arc<Store>, settings: Settings) -> Self {
        let site = site(&store, &settings.base_url, &settings.saml_base_url);
        let files = FileCache::new(DEFAULT_MIB << 20);
        let (inventories, syncs) = (Inventories::default(), SyncTimes::default());
        Self {
            store,
            site,
            settings,
            following: SourceRegistry::default(),
            reconciliations: Slots::new(classes::RECONCILIATIONS),
            uploads: Slots::new(classes::UPLOADS),
            searches: Slots::new(classes::SEARCHES),
            earlier: Slots::new(classes::EARLIER_REVISIONS),
            hooks: Slots::new(classes::WEBHOOKS),
            renderings: Slots::new(classes::renderings()),
            pages: KeptPages::default(),
            files,
            watchers: Slots::new(classes::streams(DEFAULT_WATCHERS)),
            outbox: None,
            stopping: None,
            inventories,
            scraped: ScrapedPages::default(),
            syncs,
            client_revisions: ClientRevisions::default(),
            git_hook: None,
            feeds: Feeds::default(),
            guards: Guards::new(GuardSettings::default(), None),
            tls: None,
            client_certificates: ClientCertificates::default(),
            backups: Slots::new(classes::BACKUPS),
            rekeys: Slots::new(classes::REKEYS),
            rest_writes: RestWrites::default(),
            intake: Intake::default(),
            blanks_count: false,
        }
    }

    /// The slots of requests that cost much, for the metrics.
    fn costly(&self) -> [&Slots; 8] {
        [
            &self.reconciliations,
            &self.uploads,
            &self.searches,
            &self.earlier,
            &self.renderings,
            &self.watchers,
            &self.backups,
            &self.hooks,
        ]
    }

    /// Accepts webhooks of forges at `/hooks/git` that are signed with the secret in a file (D90).
    #[must_use]
    pub fn git_hook(mut self, secret_file: PathBuf) -> Self {
        self.git_hook = Some(secret_file);
        self
    }

    /// Limits the memory for texts that clients have sent and can refer to by digest (D72). 0 keeps none.
    #[must_use]
    pub fn file_cache(mut self, most_bytes: u64) -> Self {
        self.files = FileCache::new(most_bytes);
        self
    }

    /// Takes each blank of a PATCH as it is given, also where some clients write blanks that they do not mean (D65).
    #[must_use]
    pub fn blanks_count(mut self, count: bool) -> Self {
        self.blanks_count = count;
        self
    }

    /// Limits the number of clients that watch changes at a time (D80).
    #[must_use]
    pub fn max_watchers(mut self, most: usize) -> Self {
        self.watchers = Slots::new(classes::streams(most));
        self
    }

    /// Ends the streams of changes when a server stops. Without it, the server waits for them until its grace period
    /// ends.
    #[must_use]
    pub fn stopped_by(mut self, server: &Server) -> Self {
        self.stopping = Some(server.stopping());
        self
    }

    /// Adds the reconcile loops of the followed sources.
    #[must_use]
    pub fn following(mut self, following: impl IntoIterator<Item = Arc<SourceHandle>>) -> Self {
        let all = self.following.iter().chain(following).collect();
        self.following = SourceRegistry::new(all);
        self
    }
}
