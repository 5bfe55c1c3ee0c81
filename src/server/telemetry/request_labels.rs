//! The labels of a request in the access log, the metrics and the spans: its method, the template of its path, the API
//! key and the address. A handler notes them in the task of the request, so that nobody needs to be given them.

use crate::server::prelude::*;
use std::cell::OnceCell;

/// The path template of a request that no endpoint matches. Its path is not logged: it may contain anything.
pub(super) const NO_PATH: &str = "unknown";

/// The paths of probes and of scrapers. They must be answered under any load, as an orchestrator would restart an overloaded
/// server, and nobody would see why. In the access log, they would hide all others.
pub(in crate::server) const PROBES: [&str; 3] = [HEALTH, READY, METRICS];
pub(in crate::server) const HEALTH: &str = "/healthz";
pub(in crate::server) const READY: &str = "/readyz";
pub(in crate::server) const METRICS: &str = "/metrics";

/// Labels that are known only while the request is handled.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestLabels {
    /// The template of its path, unless no endpoint matches.
    pub(super) path: OnceCell<Arc<str>>,
    /// The API key, if it is valid.
    pub(super) actor: OnceCell<Id>,
    /// The address that it counts for.
    pub(super) client: OnceCell<IpAddr>,
}

tokio::task_local! {
    static NOTED: RequestLabels;
}

/// Notes the path template of the current request.
pub(super) fn note_path(path: &Arc<str>) {
    let _ = NOTED.try_with(|noted| noted.path.set(Arc::clone(path)));
}

/// Notes the API key of the current request. Without effect outside the task of a request.
pub(crate) fn note_actor(key: &Id) {
    let _ = NOTED.try_with(|noted| noted.actor.set(key.clone()));
}

/// Notes the address of the client of the current request.
pub(crate) fn note_client(client: Option<IpAddr>) {
    if let Some(client) = client {
        let _ = NOTED.try_with(|noted| noted.client.set(client));
    }
}

/// Completes a request, and returns what was noted meanwhile.
pub(super) async fn labelled<T>(handling: impl Future<Output = T>) -> (T, RequestLabels) {
    let noting = async move {
        let handled = handling.await;
        (handled, NOTED.try_with(RequestLabels::clone).unwrap_or_default())
    };
    NOTED.scope(RequestLabels::default(), noting).await
}

/// The name of a method, or `other`: a client can send any method, and each would create a series of metrics.
pub(crate) fn known_method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
