//! The lints: one file for each, and the table of all of them. [`shared`] has what several of them look at.
//!
//! A file has the condition of its lint, why it is probably a mistake, an example, and the message. The engine decides
//! what lints can see ([`view`](super::view)) and when they run again ([`judged_parts`](super::judged_parts)).

mod prelude;
pub(super) mod shared;

pub(crate) use self::expiring_certificate::DAYS as EXPIRY_DAYS;
pub(crate) use self::unmanaged_route::NAME as UNMANAGED_ROUTE;
use super::definition::Lint;

/// Declares the module of each lint, and the tables of the lints and their examples: `examples/` has a manifest for each.
macro_rules! lints {
    ($($module:ident)*) => {
        $(pub(super) mod $module;)*

        /// Every lint.
        pub static LINTS: &[&Lint] = &[$(&$module::LINT),*];

        /// The examples, in the order of the lints.
        static EXAMPLES: &[&str] = &[$(include_str!(concat!("examples/", stringify!($module), ".yaml"))),*];
    };
}

lints! {
    conflicting_authentication duplicate_match shadowed_route unmanaged_route partial_segment_prefix unreachable_path
    unserved_host edge_without_hostports duplicate_hostport wildcard_hostport route_without_backend unprotected_route
    bypassed_protection plain_http_hostport disabled_termination old_tls_version disabled_module expired_certificate
    expiring_certificate not_yet_valid_certificate certificate_does_not_cover_hostport incomplete_chain weak_key
    not_a_certificate_authority leaf_is_authority common_name_only duplicate_certificate unusable_certificate_name
    wrong_certificate_purpose empty_ip_restriction duplicate_restriction empty_mutual_tls empty_policy oidc_incomplete
    saml_metadata expired_saml_metadata plain_http_saml jwt_incomplete unused_client_secret open_login
    public_email_domain circuit_breaker_zero circuit_breaker_threshold session_too_long email_not_lowercase
    email_format team_format group_format scope_format duplicate_entry duplicate_header hop_by_hop_header
    cors_credentials invalid_user_agent_pattern open_user_agent_filter jwt_algorithm jwt_list_entry plain_http_jwks
    malformed_provider_url policy_expression policy_condition policy_direction unreadable_policy policy_action_config
    policy_header_name unreachable_action secret_in_manifest secret_with_white_space webhook_secret wrong_id_prefix
    unused_module_set unused_certificate_authority unknown_label delegation_to_itself access_opened
    expired_exemption expiring_exemption unserved_scope invariant_weakened
}

impl Lint {
    /// Returns a manifest with a finding; a test validates it.
    pub fn example(&self) -> &'static str {
        let mut all = LINTS.iter().zip(EXAMPLES);
        all.find(|(lint, _)| lint.name == self.name).map_or("", |(_, example)| *example)
    }
}

/// Finds a lint by name.
pub(crate) fn find(name: &str) -> Option<&'static Lint> {
    LINTS.iter().copied().find(|lint| lint.name == name)
}
