//! The `backend` module: the destination of the traffic.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Module;
use crate::model::{
    base_urls::{Ref, Site},
    diagnostics::fault::{Check, Faults},
    external_id,
    key::Key,
    traffic::{Stage, Step, StepEffect, TracedRequest},
};

/// The backend that serves the endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Backend {
    /// Whether the module applies to traffic.
    pub enabled: bool,
    /// The ID of the backend.
    #[schemars(regex(pattern = r"^[^/\s\x00-\x1f\x7f-\x9f]+$"), length(min = 1, max = 255))]
    pub backend_id: String,
}

impl Default for Backend {
    fn default() -> Self {
        Self { enabled: true, backend_id: String::new() }
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

impl Module for Backend {
    const SLOT: &'static str = "backend";
    const REQUIRED: &'static [&'static str] = &["backend_id"];
    const NEEDS_TERMINATION: bool = false;
    type View = BackendView;

    fn view(&self, _host: &Key, site: &Site) -> BackendView {
        BackendView { enabled: self.enabled, backend: site.reference("backends", &self.backend_id) }
    }

    fn enabled(&self) -> bool {
        self.enabled
    }

    fn steps(&self, _request: &TracedRequest) -> Vec<Step> {
        vec![Step::new(Stage::Backend, StepEffect::Passes, self.backend_id.clone())]
    }

    fn example() -> Value {
        json!({"backend_id": "bkd_2f9XkQcheckout000000000001"})
    }
}
