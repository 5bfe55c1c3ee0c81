//! HTTPS edge route: which requests it takes, and the modules they pass.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{
    Kind, check,
    code::Code,
    fault::{Check, Fault, Faults},
    module::{self, slots},
    resource::{KindInfo, Offers, Resource, ViewContext},
    snapshot::Entry,
};

slots! {
    /// A match rule and the traffic modules of the requests it takes.
    pub struct HttpsEdgeRoute {
        /// How `match` is compared.
        pub match_type: Option<MatchType>,
        /// Route selector: a path, a host, or host plus path.
        #[schemars(length(min = 1))]
        pub r#match: String,
        /// Human-readable description, at most 255 bytes.
        #[schemars(length(max = 255))]
        pub description: String,
        /// Arbitrary data of yours, at most 4096 bytes.
        #[schemars(length(max = 4096))]
        pub metadata: String,
    }

    /// The modules of an [`HttpsEdgeRoute`] in their response form.
    pub struct HttpsEdgeRouteModules {
        /// Where the traffic goes.
        backend: module::backend::Backend,
        /// Which source addresses may access the endpoint.
        ip_restriction: module::ip_restriction::EndpointIpRestriction,
        /// Requests are refused while the upstream fails.
        circuit_breaker: module::circuit_breaker::CircuitBreaker,
        /// Responses are compressed.
        compression: module::compression::Compression,
        /// Headers of requests, added and removed.
        request_headers: module::request_headers::RequestHeaders,
        /// Headers of responses, added and removed.
        response_headers: module::response_headers::ResponseHeaders,
        /// Only requests that the webhook's sender has signed come through.
        webhook_verification: module::webhook_verification::WebhookVerification,
        /// Users log in with an account of an identity provider.
        oauth: module::oauth::Oauth,
        /// Users log in with a SAML identity provider.
        saml: module::saml::Saml,
        /// Users log in with an OpenID provider.
        oidc: module::oidc::Oidc,
        /// Websocket connections become TCP streams.
        websocket_tcp_converter: module::websocket_tcp_converter::WebsocketTcpConverter,
        /// Which user agents may access the endpoint.
        user_agent_filter: module::user_agent_filter::UserAgentFilter,
        /// Only requests with a valid JSON Web Token come through.
        jwt_validation: module::jwt_validation::JwtValidation,
        /// What is done with traffic that matches an expression.
        policies: module::policies::Policies,
    }
}

/// How a route's `match` is compared with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MatchType {
    /// The whole path.
    ExactPath,
    /// How the path starts.
    PathPrefix,
}

impl MatchType {
    /// The word that stands for it.
    pub fn as_str(self) -> &'static str {
        match self {
            MatchType::ExactPath => "exact_path",
            MatchType::PathPrefix => "path_prefix",
        }
    }
}

/// The response form of [`HttpsEdgeRoute`].
#[derive(Debug, Serialize, JsonSchema)]
pub struct HttpsEdgeRouteView {
    /// The owning edge.
    pub edge_id: String,
    /// Unique identifier.
    pub id: String,
    /// When it was created.
    pub created_at: String,
    /// How `match` is compared.
    pub match_type: Option<MatchType>,
    /// Route selector: a path, a host, or host plus path.
    pub r#match: String,
    /// Address of this route.
    pub uri: String,
    /// Human-readable description.
    pub description: String,
    /// Arbitrary data of yours.
    pub metadata: String,
    #[serde(flatten)]
    modules: HttpsEdgeRouteModules,
}

impl Check for HttpsEdgeRoute {
    fn check(&self, faults: &mut Faults) {
        if self.match_type.is_none() {
            faults.within("match_type", |faults| {
                faults.report(
                    Fault::new(Code::Required, "a route needs a `match_type`")
                        .help("write `exact_path` or `path_prefix`"),
                );
            });
        }
        if self.r#match.is_empty() {
            faults.within("match", |faults| {
                faults.report(
                    Fault::new(Code::Required, "a route needs a `match`")
                        .help("write a path, a host, or host plus path"),
                )
            });
        }
        check::texts(faults, &self.description, &self.metadata);
    }
}

impl Resource for HttpsEdgeRoute {
    const INFO: KindInfo = KindInfo {
        prefix: "edghtsrt_",
        collection: "/edges/https/{edge_id}/routes",
        list: "routes",
        parent: Some(Kind::HttpsEdge),
        blank_is_unset: &["match_type", "match"],
        offers: Offers::EDGE,
        slots: HttpsEdgeRoute::SLOTS,
        ..KindInfo::of::<HttpsEdgeRoute>(Kind::HttpsEdgeRoute, "HttpsEdgeRoute")
    };

    type View = HttpsEdgeRouteView;

    fn view(&self, at: &Entry, cx: &ViewContext<'_>) -> HttpsEdgeRouteView {
        HttpsEdgeRouteView {
            edge_id: at.key.parent.as_ref().map(ToString::to_string).unwrap_or_default(),
            id: at.key.id.to_string(),
            created_at: at.created_at.to_string(),
            match_type: self.match_type,
            r#match: self.r#match.clone(),
            uri: cx.site.uri(&at.key),
            description: self.description.clone(),
            metadata: self.metadata.clone(),
            modules: self.module_views(&at.key, cx),
        }
    }
}
