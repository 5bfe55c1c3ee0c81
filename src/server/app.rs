//! [`App`]: the API of a store, which a program builds before it serves.

use std::sync::LazyLock;

use axum::body::Bytes;

use super::auth::authentication::AccessControl;
use super::auth::client_certificates::ClientCertificates;
use super::auth::key_use::KeyUse;
use super::auth::oidc::config::OidcConfig;
use super::auth::oidc::connector::OpenIdConnect;
use super::auth::session::SessionSealer;
use super::gateway_feed::cache::Feeds;
use super::limits::guards::{GuardSettings, Guards};
use super::limits::slots::Slots;
use super::limits::slots::admissions::streams;
use super::net::tls::Tls;
use super::notify::Outbox;
use super::openapi;
use super::operations::reconciliation::files::{DEFAULT_MIB, FileCache};
use super::operations::reconciliation::kept_plans::KeptPlans;
use super::operations::saml::signer::Signer;
use super::replicas::forwarder::Forwarder;
use super::resources::page_cache::PageCache;
use super::resources::write_policy::RestWrites;
use super::state::{AppState, Caches, ServedStore, Telemetry};
use super::telemetry::proofs::ProofCache;
use super::telemetry::security::SecurityLog;
use crate::server::prelude::*;

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

/// The API of a store, before it is served.
pub struct App(pub(super) AppState);

#[cfg(test)]
impl App {
    /// The API of an empty store in memory.
    #[allow(clippy::unwrap_used)]
    pub(super) fn in_memory() -> Self {
        let url = String::from("http://localhost");
        let settings = Settings { base_url: url.clone(), saml_base_url: url, version_header: VERSION_HEADER.into() };
        Self::new(Arc::new(Store::open(crate::store::MEMORY).unwrap()), settings)
    }
}

/// The URLs and certificates of a service.
pub(crate) fn base_urls(store: &Store, base_url: &str, saml_base_url: &str) -> BaseUrls {
    let signer = Signer::new(store.root_secret());
    BaseUrls {
        base_url: base_url.to_owned(),
        saml_base_url: saml_base_url.to_owned(),
        saml_certificate: Box::new(move |route: &Id| signer.certificate_pem(route)),
    }
}

/// Changes a part that nobody else has yet.
fn set<T>(part: &mut Arc<T>, change: impl FnOnce(&mut T)) {
    if let Some(part) = Arc::get_mut(part) {
        change(part);
    }
}

impl App {
    /// Creates the API of a store.
    pub fn new(store: Arc<Store>, settings: Settings) -> Self {
        let base_urls = base_urls(&store, &settings.base_url, &settings.saml_base_url);
        let version_header = settings.version_header.clone();
        let proofs = ProofCache::start(&store);
        let make = move || Bytes::from(openapi::document(&settings.version_header, settings.base_path()).to_string());
        Self(AppState {
            access: Arc::new(AccessControl {
                store: Arc::clone(&store),
                guards: Guards::new(GuardSettings::default(), None),
                client_certificates: ClientCertificates::default(),
                key_use: KeyUse::default(),
                sessions: SessionSealer::new(Arc::clone(&store)),
                provider: None,
                version_header,
            }),
            forwarder: Arc::new(Forwarder::new(Arc::clone(&store))),
            served: Arc::new(ServedStore { store, base_urls }),
            admissions: Arc::default(),
            sources: Arc::default(),
            writes: Arc::default(),
            caches: Arc::new(Caches {
                pages: PageCache::default(),
                files: FileCache::new(DEFAULT_MIB << 20),
                plans: KeptPlans::default(),
                feeds: Feeds::default(),
            }),
            telemetry: Arc::new(Telemetry { proofs, ..Telemetry::default() }),
            document: Arc::new(LazyLock::new(Box::new(make))),
            dashboard: Arc::default(),
            has_dashboard: true,
            stopping: None,
        })
    }

    /// Accepts webhooks of forges at `/hooks/git` that are signed with the secret in a file (D90).
    #[must_use]
    pub fn git_hook(mut self, secret_file: PathBuf) -> Self {
        set(&mut self.0.sources, |sources| sources.git_hook = Some(secret_file));
        self
    }

    /// Sets the limits of requests, and the security log (D98, D99).
    #[must_use]
    pub(crate) fn guarded(mut self, settings: GuardSettings, log: Option<SecurityLog>) -> Self {
        set(&mut self.0.access, |access| access.guards = Guards::new(settings, log));
        self
    }

    /// Limits the memory for texts that clients have sent and can refer to by digest (D72). 0 keeps none.
    #[must_use]
    pub fn file_cache(mut self, most_bytes: u64) -> Self {
        set(&mut self.0.caches, |caches| caches.files = FileCache::new(most_bytes));
        self
    }

    /// Takes each blank of a PATCH as it is given, also where some clients write blanks that they do not mean (D65).
    #[must_use]
    pub fn blanks_count(mut self, count: bool) -> Self {
        set(&mut self.0.writes, |writes| writes.blanks_count = count);
        self
    }

    /// Sets whether the dashboard is served at `/ui/`. It is, unless this says otherwise.
    #[must_use]
    pub fn dashboard(mut self, is_served: bool) -> Self {
        self.0.has_dashboard = is_served;
        self
    }

    /// Lets people sign in through an OpenID Connect provider (D117).
    #[must_use]
    pub(crate) fn openid_connect(mut self, config: Option<OidcConfig>) -> Self {
        let base_url = &self.0.served.base_urls.base_url;
        let provider = config.map(|config| OpenIdConnect::new(config, base_url));
        set(&mut self.0.access, |access| access.provider = provider);
        self
    }

    /// Limits the number of clients that watch changes at a time (D80).
    #[must_use]
    pub fn max_watchers(mut self, most: usize) -> Self {
        set(&mut self.0.admissions, |admissions| admissions.watchers = Slots::new(streams(most)));
        self
    }

    /// Adds the state of TLS to the metrics and to `/readyz`, and sets the owners that clients with certificates act as.
    #[must_use]
    pub(crate) fn tls(mut self, tls: Option<Arc<Tls>>, clients: ClientCertificates) -> Self {
        set(&mut self.0.telemetry, |telemetry| telemetry.tls = tls);
        set(&mut self.0.access, |access| access.client_certificates = clients);
        self
    }

    /// Sets what happens with writes to the resources of sources (D103), which may change.
    #[must_use]
    pub(crate) fn rest_writes(mut self, rest_writes: RestWrites) -> Self {
        set(&mut self.0.writes, |writes| writes.rest_writes = rest_writes);
        self
    }

    /// Adds notifications to the metrics.
    #[must_use]
    pub(crate) fn outbox(mut self, outbox: Option<Arc<Outbox>>) -> Self {
        set(&mut self.0.telemetry, |telemetry| telemetry.outbox = outbox);
        self
    }

    /// Adds the reconcile loops of the followed sources.
    #[must_use]
    pub fn following(self, handles: impl IntoIterator<Item = Arc<SourceHandle>>) -> Self {
        let all = self.0.sources.registry.iter().chain(handles).collect();
        self.source_registry(SourceRegistry::new(all))
    }

    /// Sets the reconcile loops of the followed sources, which may change.
    #[must_use]
    pub(crate) fn source_registry(mut self, registry: SourceRegistry) -> Self {
        set(&mut self.0.sources, |sources| sources.registry = registry);
        self
    }
}
