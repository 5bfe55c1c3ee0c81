//! The `ip_restriction` module: which source addresses may access the endpoint.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Module;
use crate::model::{
    check,
    fault::{Check, Faults},
    key::Key,
    resource::{Ref, ViewContext},
};

/// The IP policies that decide whether a source IP may access the endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EndpointIpRestriction {
    /// True if the module is applied to traffic.
    pub enabled: bool,
    /// The policies, by identifier.
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
    /// True if the module is applied to traffic.
    pub enabled: bool,
    /// The policies.
    pub ip_policies: Vec<Ref>,
}

impl Check for EndpointIpRestriction {
    fn check(&self, faults: &mut Faults) {
        check::opaque_ids(faults, "ip_policy_ids", &self.ip_policy_ids);
    }
}

impl Module for EndpointIpRestriction {
    const SLOT: &'static str = "ip_restriction";
    type View = EndpointIpRestrictionView;

    fn view(&self, _host: &Key, cx: &ViewContext<'_>) -> EndpointIpRestrictionView {
        let ip_policies = self.ip_policy_ids.iter().map(|id| cx.site.reference("ip_policies", id)).collect();
        EndpointIpRestrictionView { enabled: self.enabled, ip_policies }
    }
}
