//! The `backend` module: the destination of the traffic.

use super::prelude::*;
use crate::model::external_id;

module! {
    /// The backend that serves the endpoint.
    pub struct Backend {
        /// The ID of the backend.
        #[schemars(regex(pattern = r"^[^/\s\x00-\x1f\x7f-\x9f]+$"), length(min = 1, max = 255))]
        pub backend_id: String,
    }
}

/// The response form of [`Backend`].
#[derive(Debug, Serialize, JsonSchema)]
pub struct BackendView {
    /// Whether the module applies to traffic.
    pub enabled: bool,
    /// The backend.
    pub backend: Ref,
}

impl Check for Backend {
    fn check(&self, faults: &mut Faults) {
        external_id::external_id(faults, "backend_id", &external_id::BACKEND, &self.backend_id);
    }
}

impl ModuleView<Backend> for BackendView {
    fn new(module: &Backend, _host: &Key, base_urls: &BaseUrls) -> Self {
        Self { enabled: module.enabled, backend: base_urls.reference("backends", &module.backend_id) }
    }
}

impl Module for Backend {
    const SLOT: &'static str = "backend";
    const REQUIRED: &'static [&'static str] = &["backend_id"];
    const NEEDS_TERMINATION: bool = false;
    type View = BackendView;

    fn steps(&self, _request: &TracedRequest) -> Vec<Step> {
        vec![Step::new(Stage::Backend, StepEffect::Passes, self.backend_id.clone())]
    }

    fn example() -> Value {
        json!({"backend_id": "bkd_2f9XkQcheckout000000000001"})
    }
}
