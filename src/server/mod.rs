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

// The rooms:
//
// | Room | What one finds there |
// | --- | --- |
// | `app`, `state` | What an embedding program builds, and what handlers share |
// | `net` | Sockets, TLS, connections and the end of a server |
// | `http` | What every request passes, bodies, errors and responses |
// | `auth` | Who the caller is, and what it may do |
// | `limits` | Rates, places and sizes, so that no client starves the others |
// | `resources` | The endpoints of all kinds and modules |
// | `operations` | All other endpoints, one file or folder each |
// | `dashboard` | The pages for people at `/ui/`: who signs in sees what the API would answer |
// | `gateway_feed` | The resolved configuration for gateways |
// | `openapi` | The OpenAPI document |
// | `notify` | Webhooks and files that tell others of changes |
// | `replicas` | What makes several servers on one database look like one |
// | `telemetry` | Metrics, the access log and the security log |
// | `handler_prelude`, `prelude` | Names for handlers, and for all other files |

mod app;
pub(crate) mod auth;
mod dashboard;
mod gateway_feed;
mod handler_prelude;
pub(crate) mod http;
pub(crate) mod limits;
pub(crate) mod net;
pub(crate) mod notify;
pub(crate) mod openapi;
pub(crate) mod operations;
mod prelude;
pub(crate) mod replicas;
pub(crate) mod resources;
mod state;
pub(crate) mod telemetry;

// The API.
pub use app::{App, Settings, VERSION_HEADER};
pub use http::service::router;
pub use net::listener::{Server, bind};
pub use resources::endpoint::{Action, Endpoint, endpoints};

// The loop.
pub use crate::reconcile::run::report::RunReport;
pub use crate::reconcile::sources::handle::{LoopGuard, SourceHandle};
pub use crate::reconcile::sync_loop::condition::{Condition, Reason, Status};
pub use crate::reconcile::sync_loop::follow;
pub use crate::reconcile::sync_loop::health::{Health, Verdict};

pub(crate) use app::base_urls;
pub(crate) use http::service::ApiService;
pub(crate) use net::connections::ConnectionLimits;
pub(crate) use net::tls::{Tls, TlsFiles};
pub(crate) use telemetry::metrics::install as install_metrics;
