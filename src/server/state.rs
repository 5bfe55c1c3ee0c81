//! State shared by handlers, in parts.

use std::sync::LazyLock;

use axum::body::Bytes;
use tokio::sync::watch;

use super::auth::authentication::AccessControl;
use super::dashboard::access_effect::AccessEffects;
use super::gateway_feed::cache::Feeds;
use super::gateway_feed::presented::KnownTlsHostports;
use super::gateway_feed::readers::GatewayReads;
use super::limits::slots::admissions::Admissions;
use super::net::tls::Tls;
use super::notify::Outbox;
use super::operations::reconciliation::files::FileCache;
use super::operations::reconciliation::kept_plans::KeptPlans;
use super::operations::sources::client_revisions::ClientRevisions;
use super::replicas::forwarder::Forwarder;
use super::resources::commit_executor::CommitExecutor;
use super::resources::page_cache::PageCache;
use super::resources::write_policy::RestWrites;
use super::telemetry::latest_entries::LatestEntries;
use super::telemetry::metrics::inventory::Inventories;
use super::telemetry::metrics::pages::ScrapedPages;
use super::telemetry::proofs::ProofCache;
use crate::reconcile::sources::recent_drift::RecentDrift;
use crate::server::prelude::*;

/// All parts.
#[derive(Clone)]
pub(crate) struct AppState {
    pub access: Arc<AccessControl>,
    pub served: Arc<ServedStore>,
    pub forwarder: Arc<Forwarder>,
    pub admissions: Arc<Admissions>,
    pub sources: Arc<SourceRuntime>,
    pub writes: Arc<RequestWrites>,
    pub caches: Arc<Caches>,
    pub telemetry: Arc<Telemetry>,
    pub document: Arc<ApiDocument>,
    pub dashboard: Arc<DashboardShared>,
    /// Whether the dashboard is served.
    pub has_dashboard: bool,
    /// Becomes true when the server stops.
    pub stopping: Option<watch::Receiver<bool>>,
}

impl AppState {
    /// Completes when the server begins to stop.
    pub(in crate::server) async fn stops(&self) {
        if let Some(mut stopping) = self.stopping.clone()
            && stopping.wait_for(|stop| *stop).await.is_ok()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}

/// The store, and the URLs under which it is served.
pub(crate) struct ServedStore {
    pub store: Arc<Store>,
    pub base_urls: BaseUrls,
}

/// The Unix time of the last successful sync of each source that a client has sent, since the server started.
pub(crate) type SyncTimes = LatestEntries<String, i64, 100>;

/// The sources that the server follows, and what it knows of those that clients apply.
#[derive(Default)]
pub(crate) struct SourceRuntime {
    /// The reconcile loops of the sources that the server follows.
    pub registry: SourceRegistry,
    /// When clients last synced each source.
    pub syncs: SyncTimes,
    /// The last client revision of each source.
    pub client_revisions: ClientRevisions,
    /// The drift of the followed sources.
    pub recent_drift: RecentDrift,
    /// The file with the secret of the webhook at `/hooks/git`, if it is accepted.
    pub git_hook: Option<PathBuf>,
}

/// How requests write single resources.
#[derive(Default)]
pub(crate) struct RequestWrites {
    /// The sources' policies for writes to their resources.
    pub rest_writes: RestWrites,
    /// The commits of small requests.
    pub executor: CommitExecutor,
    /// Whether each blank of a PATCH is meant.
    pub blanks_count: bool,
}

/// Caches of data that clients request again.
pub(crate) struct Caches {
    pub pages: PageCache,
    /// The texts of sent manifests.
    pub files: FileCache,
    /// The plans that have a page in the dashboard.
    pub plans: KeptPlans,
    /// The configurations of the newest revisions for gateways.
    pub feeds: Feeds,
}

/// Inputs of the metrics page besides the other parts.
#[derive(Default)]
pub(crate) struct Telemetry {
    /// The counts for the metrics page.
    pub inventories: Inventories,
    /// The last answers about the invariants.
    pub proofs: Arc<ProofCache>,
    /// The metrics pages that are on their way.
    pub scraped: ScrapedPages,
    /// The reads of gateways from this process.
    pub gateways: GatewayReads,
    /// The notifications that are to be delivered.
    pub outbox: Option<Arc<Outbox>>,
    /// TLS of the server.
    pub tls: Option<Arc<Tls>>,
}

/// The shared state of the dashboard's pages.
#[derive(Default)]
pub(crate) struct DashboardShared {
    /// The effects of revisions on access.
    pub effects: AccessEffects,
    /// The hostports that present certificates.
    pub hostports: KnownTlsHostports,
}

/// The OpenAPI document. It is made when somebody asks for it: that takes longer than all else at the start.
pub(crate) type ApiDocument = LazyLock<Bytes, Box<dyn FnOnce() -> Bytes + Send>>;
