//! IP restrictions: IP policies for the dashboard, the API, agents or endpoints.

use super::prelude::*;
use crate::model::external_id;
use crate::model::resource::any_resource::AccessList;

/// An IP restriction, which attaches IP policies to one type of traffic.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IpRestriction {
    /// A human-readable description, at most 255 bytes.
    #[schemars(length(max = 255))]
    pub description: String,
    /// Arbitrary user-defined data, at most 4096 bytes.
    #[schemars(length(max = 4096))]
    pub metadata: String,
    /// True to enforce the restriction, false to issue warnings only.
    pub enforced: bool,
    /// The restricted traffic; cannot change after creation.
    pub r#type: Option<Traffic>,
    /// The IDs of the IP policies that enforce the restriction.
    #[schemars(inner(regex(pattern = r"^[^/\s\x00-\x1f\x7f-\x9f]+$"), length(min = 1, max = 255)))]
    pub ip_policy_ids: Vec<String>,
}

/// The traffic of an IP restriction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Traffic {
    /// The dashboard.
    Dashboard,
    /// This API.
    Api,
    /// Agents.
    Agent,
    /// Endpoints.
    Endpoints,
}

names!(Traffic: Dashboard "dashboard", Api "api", Agent "agent", Endpoints "endpoints");

impl IpRestriction {
    /// Whether the restriction is enforced for traffic of a type.
    pub(crate) fn restricts(&self, traffic: Traffic) -> bool {
        self.enforced && self.r#type == Some(traffic)
    }
}

view! {
    /// The response form of [`IpRestriction`].
    pub struct IpRestrictionView(spec: &IpRestriction, at) {
        /// The unique ID.
        pub id: String = at.key.id.to_string(),
        /// The URI of this IP restriction.
        pub uri: String = at.uri(),
        /// The time of creation.
        pub created_at: String = at.created_at.to_string(),
        /// The description.
        pub description: String = spec.description.clone(),
        /// The user-defined data.
        pub metadata: String = spec.metadata.clone(),
        /// True to enforce the restriction, false to issue warnings only.
        pub enforced: bool = spec.enforced,
        /// The restricted traffic.
        pub r#type: Option<Traffic> = spec.r#type,
        /// The IP policies that enforce the restriction.
        pub ip_policies: Vec<Ref> =
            spec.ip_policy_ids.iter().map(|id| at.base_urls.reference("ip_policies", id)).collect(),
    }
}

impl Check for IpRestriction {
    fn check(&self, faults: &mut Faults) {
        check::texts(faults, &self.description, &self.metadata);
        if self.r#type.is_none() {
            faults.report(Fault::required("type").help("set `dashboard`, `api`, `agent` or `endpoints`"));
        }
        external_id::external_ids(faults, "ip_policy_ids", &external_id::IP_POLICY, &self.ip_policy_ids);
    }
}

impl Resource for IpRestriction {
    const INFO: KindInfo = KindInfo {
        fixed: &["type"],
        required: &["type"],
        unmeant_blanks: &[("ip_policy_ids", BlankContext::Anything)],
        ..KindInfo::new::<IpRestriction>(Kind::IpRestriction)
    };

    type View = IpRestrictionView;

    fn access_lists(&self) -> Vec<AccessList> {
        let (field, length) = ("ip_policy_ids".to_owned(), self.ip_policy_ids.len());
        vec![AccessList { field, length, enforced: self.enforced }]
    }

    fn example() -> Option<Value> {
        Some(json!({
            "description": "Offices only",
            "enforced": true,
            "type": "dashboard",
            "ip_policy_ids": ["ipp_2f9XkQofficeBerlin00000001"],
        }))
    }
}
