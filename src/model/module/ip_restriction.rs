//! The `ip_restriction` module: restricts access by source IP address.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Module;
use crate::model::{
    base_urls::{Ref, Site},
    diagnostics::fault::{Check, Faults},
    external_id,
    key::Key,
    traffic::{Stage, Step, StepEffect, TracedRequest, or_none},
};

/// Restricts access to the endpoint by source IP address.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EndpointIpRestriction {
    /// Whether the module applies to traffic.
    pub enabled: bool,
    /// The IDs of the IP policies.
    #[schemars(inner(regex(pattern = r"^[^/\s\x00-\x1f\x7f-\x9f]+$"), length(min = 1, max = 255)))]
    pub ip_policy_ids: Vec<String>,
}

impl Default for EndpointIpRestriction {
    fn default() -> Self {
        Self { enabled: true, ip_policy_ids: Vec::new() }
    }
}

/// The response form of [`EndpointIpRestriction`].
#[derive(Debug, Serialize, JsonSchema)]
pub struct EndpointIpRestrictionView {
    /// Whether the module applies to traffic.
    pub enabled: bool,
    /// The IP policies.
    pub ip_policies: Vec<Ref>,
}

impl Check for EndpointIpRestriction {
    fn check(&self, faults: &mut Faults) {
        external_id::external_ids(faults, "ip_policy_ids", &external_id::IP_POLICY, &self.ip_policy_ids);
    }
}

impl Module for EndpointIpRestriction {
    const SLOT: &'static str = "ip_restriction";
    const NEEDS_TERMINATION: bool = false;
    type View = EndpointIpRestrictionView;

    fn view(&self, _host: &Key, site: &Site) -> EndpointIpRestrictionView {
        let ip_policies = self.ip_policy_ids.iter().map(|id| site.reference("ip_policies", id)).collect();
        EndpointIpRestrictionView { enabled: self.enabled, ip_policies }
    }

    fn enabled(&self) -> bool {
        self.enabled
    }

    fn access_lists(&self) -> Vec<(String, usize)> {
        vec![("ip_policy_ids".into(), self.ip_policy_ids.len())]
    }

    fn restricts_access(&self) -> bool {
        true
    }

    fn steps(&self, request: &TracedRequest) -> Vec<Step> {
        let from = request.client_ip.map(|ip| format!("{ip}: ")).unwrap_or_default();
        let note = format!("{from}policies decide: {}", or_none(&self.ip_policy_ids));
        vec![Step::new(Stage::Source, StepEffect::Depends, note)]
    }

    fn example() -> Value {
        json!({"ip_policy_ids": ["ipp_2f9XkQofficeBerlin00000001"]})
    }
}
