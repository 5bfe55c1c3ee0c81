//! The lints: one file for each, the table of all of them, and what several of them look at.
//!
//! A file has the condition of its lint, why it is probably a mistake, an example, and the message. The engine decides
//! what lints can see ([`view`](super::view)) and when they run again ([`memo`](super::memo)).

mod bypassed_protection;
pub(super) mod certificate_chain;
mod certificate_does_not_cover_hostport;
mod cidr_range;
mod circuit_breaker_threshold;
mod circuit_breaker_zero;
mod common_name_only;
mod conflicting_authentication;
mod cors_credentials;
mod delegation_to_itself;
mod disabled_module;
mod disabled_termination;
mod duplicate_certificate;
mod duplicate_entry;
mod duplicate_header;
mod duplicate_hostport;
mod duplicate_match;
mod duplicate_restriction;
mod edge_without_hostports;
mod email_format;
mod email_not_lowercase;
mod empty_ip_restriction;
mod empty_mutual_tls;
mod empty_policy;
mod expired_certificate;
mod expired_saml_metadata;
pub(crate) mod expiring_certificate;
mod group_format;
mod hop_by_hop_header;
mod incomplete_chain;
mod invalid_user_agent_pattern;
mod jwt_algorithm;
mod jwt_incomplete;
mod jwt_list_entry;
mod leaf_is_authority;
mod malformed_provider_url;
mod match_pattern;
mod not_a_certificate_authority;
mod not_yet_valid_certificate;
mod oidc_incomplete;
mod old_tls_version;
mod open_login;
mod open_user_agent_filter;
mod partial_segment_prefix;
mod placed_policy;
mod plain_http_hostport;
mod plain_http_jwks;
mod plain_http_saml;
mod policy_action_config;
mod policy_condition;
mod policy_direction;
mod policy_expression;
mod policy_header_name;
mod prelude;
mod public_email_domain;
mod route_without_backend;
pub(super) mod saml_metadata;
mod scope_format;
mod secret_in_manifest;
mod secret_with_white_space;
mod session_too_long;
mod shadowed_route;
mod team_format;
mod unknown_label;
mod unprotected_route;
mod unreachable_action;
mod unreachable_path;
mod unreadable_policy;
pub(super) mod unserved_host;
mod unusable_certificate_name;
mod unused_certificate_authority;
mod unused_client_secret;
mod unused_module_set;
mod weak_key;
mod webhook_secret;
mod wildcard_hostport;
mod wrong_certificate_purpose;
mod wrong_id_prefix;

use super::definition::Lint;

/// The lints of some modules, and their examples: `examples/` has a manifest for each module.
macro_rules! lints {
    ($($module:ident)*) => {
        /// Every lint.
        pub static LINTS: &[&Lint] = &[$(&$module::LINT),*];

        /// The examples, in the order of the lints.
        static EXAMPLES: &[&str] = &[$(include_str!(concat!("examples/", stringify!($module), ".yaml"))),*];
    };
}

lints! {
    conflicting_authentication duplicate_match shadowed_route partial_segment_prefix unreachable_path unserved_host
    edge_without_hostports duplicate_hostport wildcard_hostport route_without_backend unprotected_route
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
    unused_module_set unused_certificate_authority unknown_label delegation_to_itself
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
