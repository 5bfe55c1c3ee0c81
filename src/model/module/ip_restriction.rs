//! The `ip_restriction` module: restricts access by source IP address.

use super::prelude::*;
use crate::model::{external_id, traffic::or_none};

module! {
    /// Restricts access to the endpoint by source IP address.
    pub struct EndpointIpRestriction {
        /// The IDs of the IP policies.
        #[schemars(inner(regex(pattern = r"^[^/\s\x00-\x1f\x7f-\x9f]+$"), length(min = 1, max = 255)))]
        pub ip_policy_ids: Vec<String>,
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

impl ModuleView<EndpointIpRestriction> for EndpointIpRestrictionView {
    fn new(module: &EndpointIpRestriction, _host: &Key, base_urls: &BaseUrls) -> Self {
        let ip_policies = module.ip_policy_ids.iter().map(|id| base_urls.reference("ip_policies", id)).collect();
        Self { enabled: module.enabled, ip_policies }
    }
}

impl Module for EndpointIpRestriction {
    const SLOT: &'static str = "ip_restriction";
    const NEEDS_TERMINATION: bool = false;
    type View = EndpointIpRestrictionView;

    fn access_lists(&self) -> Vec<(String, usize)> {
        vec![("ip_policy_ids".into(), self.ip_policy_ids.len())]
    }

    fn restricts_access(&self) -> bool {
        true
    }

    fn admits(&self) -> Admittance {
        // Whether an empty list admits everybody or nobody is up to the gateway.
        if self.ip_policy_ids.is_empty() { Admittance::Unknown } else { Admittance::Somebody }
    }

    fn access_change(&self, former: &Self) -> AccessChange {
        AccessChange::of_list(&former.ip_policy_ids, &self.ip_policy_ids)
    }

    fn ip_policies(&self) -> Option<&[String]> {
        Some(&self.ip_policy_ids)
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
