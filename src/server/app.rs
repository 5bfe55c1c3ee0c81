//! What the handlers of requests share: [`App`], which a program builds before it serves.

use std::{path::PathBuf, sync::Arc};

use super::{
    auth::client_certificates::ClientCertificates,
    gateway_feed::cache::Feeds,
    limits::{
        guards::{GuardSettings, Guards},
        slots::{
            Slots,
            classes::{self, DEFAULT_WATCHERS},
        },
    },
    net::tls::Tls,
    notify::Outbox,
    operations::{
        reconciliation::files::{DEFAULT_MIB, FileCache},
        saml::signer::Signer,
        sources::client_revisions::ClientRevisions,
    },
    resources::{commit_executor::Intake, page_cache::KeptPages, write_policy::RestWrites},
    telemetry::metrics::{inventory::Inventories, pages::ScrapedPages, syncs::SyncTimes},
};
use crate::{
    model::{base_urls::Site, id::Id},
    reconcile::sources::{handle::SourceHandle, registry::SourceRegistry},
    store::Store,
};

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
    pub(super) fn base_path(&self) -> &str {
        let after_scheme = self.base_url.split_once("://").map_or("", |(_, rest)| rest);
        after_scheme.find('/').and_then(|at| after_scheme.get(at..)).unwrap_or_default()
    }
}

/// The state shared by all requests.
pub struct App {
    pub(super) store: Arc<Store>,
    pub(super) site: Site,
    pub(super) settings: Settings,
    /// The reconcile loops of the sources that the server follows.
    pub(crate) following: SourceRegistry,
    pub(super) reconciliations: Slots,
    /// The large bodies of reconciliations.
    pub(super) uploads: Slots,
    /// Lists with a filter, which a long reconciliation must not hold up.
    pub(super) searches: Slots,
    /// Reads of earlier revisions.
    pub(super) earlier: Slots,
    /// Limits webhooks, which nobody has authenticated yet.
    pub(super) hooks: Slots,
    pub(super) renderings: Slots,
    pub(super) pages: KeptPages,
    /// The texts of sent manifests.
    pub(super) files: FileCache,
    pub(super) watchers: Slots,
    /// The notifications that are to be delivered.
    pub(crate) outbox: Option<Arc<Outbox>>,
    /// Becomes true when the server stops.
    pub(super) stopping: Option<tokio::sync::watch::Receiver<bool>>,
    /// What the metrics page counts.
    pub(super) inventories: Inventories,
    /// The metrics pages that are on their way.
    pub(super) scraped: ScrapedPages,
    /// When clients last synced each source.
    pub(super) syncs: SyncTimes,
    /// What clients last applied of each source.
    pub(super) client_revisions: ClientRevisions,
    /// The file with the secret of the webhook at `/hooks/git`, if it is accepted.
    pub(super) git_hook: Option<PathBuf>,
    /// The configurations of the newest revisions for gateways.
    pub(super) feeds: Feeds,
    /// The limits of requests, and the log of what is refused.
    pub(crate) guards: Guards,
    /// TLS of the server, for the metrics and `/readyz`.
    pub(crate) tls: Option<Arc<Tls>>,
    /// The owners that clients with certificates act as.
    pub(crate) client_certificates: ClientCertificates,
    pub(super) backups: Slots,
    /// Encrypts the store with new keys for one client at a time.
    pub(super) rekeys: Slots,
    /// What sources want to happen with writes to their resources.
    pub(crate) rest_writes: RestWrites,
    /// The commits of small requests.
    pub(super) intake: Intake,
    /// Whether each blank of a PATCH is meant.
    pub(super) blanks_count: bool,
}

/// The URLs and certificates of a service.
pub(crate) fn site(store: &Store, base_url: &str, saml_base_url: &str) -> Site {
    let signer = Signer::new(store.root_secret());
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
    pub(super) fn costly(&self) -> [&Slots; 8] {
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

    /// Adds the reconcile loops of the followed sources.
    #[must_use]
    pub fn following(mut self, following: impl IntoIterator<Item = Arc<SourceHandle>>) -> Self {
        let all = self.following.iter().chain(following).collect();
        self.following = SourceRegistry::new(all);
        self
    }
}
