//! HTTPS edge routes: which requests they match, and the modules that apply to them.

use super::prelude::*;
use crate::model::module::{self, slots};

slots! {
    /// A route of an HTTPS edge: a match rule, and the traffic modules for matching requests.
    pub struct HttpsEdgeRoute {
        /// How `match` is compared with requests.
        pub match_type: Option<MatchType>,
        /// The selector: a path, a host, or a host and a path.
        #[schemars(regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"), length(min = 1))]
        pub r#match: String,
        /// A human-readable description, at most 255 bytes.
        #[schemars(length(max = 255))]
        pub description: String,
        /// Arbitrary user-defined data, at most 4096 bytes.
        #[schemars(length(max = 4096))]
        pub metadata: String,
    }

    /// The response form of an [`HttpsEdgeRoute`]'s modules.
    pub struct HttpsEdgeRouteModules {
        /// The destination of the traffic.
        backend: module::backend::Backend,
        /// Access by source IP address.
        ip_restriction: module::ip_restriction::EndpointIpRestriction,
        /// Rejection of requests while the upstream fails.
        circuit_breaker: module::circuit_breaker::CircuitBreaker,
        /// Compression of responses.
        compression: module::compression::Compression,
        /// Headers to add to and remove from requests.
        request_headers: module::headers::RequestHeaders,
        /// Headers to add to and remove from responses.
        response_headers: module::headers::ResponseHeaders,
        /// Signature verification of webhook requests.
        webhook_verification: module::webhook_verification::WebhookVerification,
        /// Login with an OAuth identity provider.
        oauth: module::oauth::Oauth,
        /// Login with a SAML identity provider.
        saml: module::saml::Saml,
        /// Login with an OpenID Connect provider.
        oidc: module::oidc::Oidc,
        /// Conversion of WebSocket connections to TCP streams.
        websocket_tcp_converter: module::websocket_tcp_converter::WebsocketTcpConverter,
        /// Access by User-Agent header.
        user_agent_filter: module::user_agent_filter::UserAgentFilter,
        /// Validation of JSON Web Tokens.
        jwt_validation: module::jwt_validation::JwtValidation,
        /// Actions on traffic that matches expressions.
        policies: module::policies::Policies,
    }
}

/// How a route's `match` is compared with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MatchType {
    /// The path must be equal.
    ExactPath,
    /// The path must start with the prefix.
    PathPrefix,
}

names!(MatchType: ExactPath "exact_path", PathPrefix "path_prefix");

view! {
    /// The response form of [`HttpsEdgeRoute`].
    pub struct HttpsEdgeRouteView(spec: &HttpsEdgeRoute, at) {
        /// The ID of the route's edge.
        pub edge_id: String = at.key.parent.as_ref().map(ToString::to_string).unwrap_or_default(),
        /// The unique ID.
        pub id: String = at.key.id.to_string(),
        /// The time of creation.
        pub created_at: String = at.created_at.to_string(),
        /// How `match` is compared with requests.
        pub match_type: Option<MatchType> = spec.match_type,
        /// The selector: a path, a host, or a host and a path.
        pub r#match: String = spec.r#match.clone(),
        /// The URI of this route.
        pub uri: String = at.uri(),
        /// The description.
        pub description: String = spec.description.clone(),
        /// The user-defined data.
        pub metadata: String = spec.metadata.clone(),
        #[serde(flatten)]
        modules: HttpsEdgeRouteModules = spec.module_views(at.key, at.base_urls),
    }
}

impl Check for HttpsEdgeRoute {
    fn check(&self, faults: &mut Faults) {
        if self.match_type.is_none() {
            faults.report(Fault::required("match_type").help("set `exact_path` or `path_prefix`"));
        }
        if self.r#match.is_empty() {
            faults.report(Fault::required("match").help("set a path, a host, or a host and a path"));
        }
        if self.r#match.contains(char::is_control) {
            let message = format!("`match` cannot contain control characters (found `{}`)", printable(&self.r#match));
            let fault = Fault::new(Code::InvalidFormat, message).at("match");
            faults.report(fault.help("remove them: they are invisible in reviews"));
        }
        check::texts(faults, &self.description, &self.metadata);
    }
}

/// The fields that select requests.
const MATCH: &[&str] = &["match_type", "match"];

impl Resource for HttpsEdgeRoute {
    const INFO: KindInfo = KindInfo {
        blank_is_unset: MATCH,
        unmeant_blanks: &[("description", BlankContext::BlankOf(MATCH)), ("metadata", BlankContext::BlankOf(MATCH))],
        offers: Offers::EDGE,
        slots: HttpsEdgeRoute::SLOTS,
        required: MATCH,
        ..KindInfo::new::<HttpsEdgeRoute>(Kind::HttpsEdgeRoute)
    };

    type View = HttpsEdgeRouteView;

    fn example() -> Option<Value> {
        Some(json!({
            "match_type": "path_prefix",
            "match": "/checkout",
            "description": "Basket and payment",
            "backend": {"backend_id": "bkd_2f9XkQcheckout000000000001"},
            "compression": {},
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_has_no_control_characters() {
        let faults = |text: &str| {
            let route = HttpsEdgeRoute {
                match_type: Some(MatchType::ExactPath),
                r#match: text.to_owned(),
                ..HttpsEdgeRoute::default()
            };
            let mut faults = Faults::new();
            route.check(&mut faults);
            faults.into_vec().into_iter().map(|fault| (fault.code, fault.path.to_string())).collect::<Vec<_>>()
        };
        for text in ["/admin\0", "\0.example.com/", "/a\nb", "/a\u{7f}", "/a\u{85}b"] {
            assert_eq!(faults(text), [(Code::InvalidFormat, "/match".to_owned())], "{text:?}");
        }
        assert!(faults("example.com/caf\u{e9} <a>").is_empty());
    }
}
