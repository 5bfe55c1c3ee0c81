//! Generated Specs of every kind with every module. All are valid.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::strategy::{Union, ValueTree};
use proptest::string::string_regex;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value};

use crate::model::key_scope::WriteAction;
use crate::model::kind::{
    certificate_authority, event_subscription, https_edge_route, ip_restriction, owner, tls_certificate,
};
use crate::model::module::oauth::Provider;
use crate::model::secrets::text::Text;
use crate::model::{
    AnyModule, AnyResource, ApiKey, EventSource, Faults, HttpsEdge, HttpsEdgeRoute, KeyScope, Kind, Module, Resource,
    Secret, Secrets, Slot, TlsEdge, module as modules, rules,
};

/// A Spec of any kind.
pub(super) type Spec = Arc<dyn AnyResource>;

/// The prefix of every generated secret, which occurs nowhere else.
pub(super) const MARKER: &str = "s3cr3t-";
/// Placeholders in generated `mutual_tls` modules; a world replaces them with its own authorities.
pub(super) const AUTHORITIES: [&str; 2] = ["ca_0", "ca_1"];
/// The PEMs of authorities.
pub(super) const AUTHORITY_PEMS: [&str; 2] = [
    include_str!("../../../examples/storefront/certs/staff-devices.pem"),
    include_str!("../../../examples/storefront/certs/partner-devices.pem"),
];
/// Two chains, and the private keys of their leaves: P-256 and RSA.
const CHAINS: [&str; 2] = [
    include_str!("../../../examples/storefront/certs/wildcard.chain.pem"),
    include_str!("../../../examples/storefront/certs/shop.chain.pem"),
];
pub(super) const PRIVATE_KEYS: [&str; 2] = [
    include_str!("../../../examples/storefront/certs/wildcard.key.pem"),
    include_str!("../../../examples/storefront/certs/shop.key.pem"),
];

/// Texts that YAML, JSON or a terminal could misinterpret, separated by bars.
const TRICKY: &str = "|null|~|yes|1.0|0x1f|1e5|- a|# no comment|a: b|{}|'|\"| both ends |*|two\nlines\n|\ttab|\
    Grüße, 世界 🦀|<<|&a|!tag|%20|2026-01-01|{from_env: HOME}|\\n";

/// Builds a struct from a strategy for each field, so that a new field does not compile until it is generated too.
macro_rules! built {
    ($($type:ident)::+ { $($field:ident: $strategy:expr),* $(,)? }) => {
        ($($strategy,)*).prop_map(|($($field,)*)| $($type)::+ { $($field),* })
    };
}

mod invariant_specs;

fn on() -> impl Strategy<Value = bool> {
    any::<bool>()
}

fn pattern(regex: &str) -> BoxedStrategy<String> {
    string_regex(regex).unwrap().boxed()
}

fn text() -> BoxedStrategy<String> {
    let tricky: Vec<String> = TRICKY.split('|').map(String::from).collect();
    prop_oneof![select(tricky), pattern("[a-zA-Z0-9 .:#'\"äß語🦀\n\t-]{0,16}")].boxed()
}

/// Up to the limit, in characters of two bytes.
fn description() -> BoxedStrategy<String> {
    prop_oneof![9 => text(), 1 => Just("é".repeat(127) + "x")].boxed()
}

/// Up to the limit, in characters of four bytes.
fn metadata() -> BoxedStrategy<String> {
    prop_oneof![9 => text(), 1 => Just("🦀".repeat(1024))].boxed()
}

fn list<S: Strategy>(item: S) -> impl Strategy<Value = Vec<S::Value>> {
    vec(item, 0..3)
}

fn number() -> BoxedStrategy<u32> {
    prop_oneof![Just(0), Just(1), Just(u32::MAX), any::<u32>()].boxed()
}

/// The id of a resource that another system owns.
fn foreign_id() -> BoxedStrategy<String> {
    prop_oneof![9 => pattern("(bkd|ipp)_[A-Za-z0-9%:ü~]{1,8}"), 1 => Just("x".repeat(255))].boxed()
}

fn secret() -> BoxedStrategy<Secret> {
    let ends = select(vec!["", "\n", " #", "ß'\"\\"]);
    (any::<u16>(), ends).prop_map(|(number, end)| Secret::new(format!("{MARKER}{number}{end}"))).boxed()
}

fn cookie_prefix() -> BoxedStrategy<String> {
    pattern("edgewright\\.|[a-z]{1,6}_")
}

fn provider() -> impl Strategy<Value = Provider> {
    use modules::oauth::{GithubApp, OauthApp};
    let own = built!(OauthApp {
        client_id: pattern("[a-z0-9]{1,8}"),
        client_secret: secret(),
        scopes: list(text()),
        email_addresses: list(text()),
        email_domains: list(text())
    });
    let managed = built!(OauthApp {
        client_id: Just(String::new()),
        client_secret: Just(Secret::default()),
        scopes: Just(Vec::new()),
        email_addresses: list(text()),
        email_domains: list(text())
    });
    let team = pattern("[A-Za-z0-9._-]{1,5}/[A-Za-z0-9._-]{1,5}");
    (0..8u8, prop_oneof![managed, own], list(team), list(text())).prop_map(|(which, app, teams, organizations)| {
        let OauthApp { client_id, client_secret, scopes, email_addresses, email_domains } = app.clone();
        let github =
            GithubApp { client_id, client_secret, scopes, email_addresses, email_domains, teams, organizations };
        let mut provider = Provider::default();
        match which {
            0 => provider.github = Some(github),
            1 => provider.facebook = Some(app),
            2 => provider.microsoft = Some(app),
            3 => provider.google = Some(app),
            4 => provider.linkedin = Some(app),
            5 => provider.gitlab = Some(app),
            6 => provider.twitch = Some(app),
            _ => provider.amazon = Some(app),
        }
        provider
    })
}

fn idp_metadata() -> impl Strategy<Value = Text<modules::saml::IdpMetadata>> {
    let start = select(vec!["", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", "<!-- für uns -->"]);
    (start, select(vec!["", "md:"]), pattern("[a-z]{1,8}(&amp;|ü|/)?")).prop_map(|(start, prefix, name)| {
        let space = if prefix.is_empty() { "xmlns" } else { "xmlns:md" };
        Text::new(&format!(
            "{start}<{prefix}EntityDescriptor {space}=\"urn:oasis:names:tc:SAML:2.0:metadata\" \
             entityID=\"https://idp.example/{name}\">\n<{prefix}IDPSSODescriptor/>\n</{prefix}EntityDescriptor>\n"
        ))
    })
}

fn jwt_validation() -> impl Strategy<Value = modules::jwt_validation::JwtValidation> {
    use modules::jwt_validation::{AllowList, AllowedValue, JwtValidation, KeySources, Keys, Signatures, Token};
    use modules::jwt_validation::{TokenMethod, TokenPlaces, TokenType};
    let value = || text().prop_filter("a value is required", |value| !value.is_empty());
    let allow_list = || built!(AllowList { allow_list: list(built!(AllowedValue { value: value() })) });
    let token = built!(Token {
        r#type: select(vec![TokenType::Jwt, TokenType::Access, TokenType::Identity]).prop_map(Some),
        method: select(vec![TokenMethod::Header, TokenMethod::Body]).prop_map(Some),
        name: text(),
        prefix: text()
    });
    let sources = built!(KeySources { additional_jkus: list(text()) });
    built!(JwtValidation {
        enabled: on(),
        issuer: allow_list(),
        audience: allow_list(),
        http: built!(TokenPlaces { tokens: list(token) }),
        jws: built!(Signatures { allowed_algorithms: list(text()), keys: built!(Keys { sources: sources }) })
    })
}

/// Any JSON without nulls in mappings, which mean "not given" (D6).
fn config() -> impl Strategy<Value = Map<String, Value>> {
    let leaf = prop_oneof![
        text().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e18..1e18f64).prop_map(Value::from)
    ];
    let leaf = leaf.boxed();
    let inner = prop_oneof![
        leaf.clone(),
        list(prop_oneof![3 => leaf.clone(), 1 => Just(Value::Null)]).prop_map(Value::from),
        btree_map(pattern("[a-z. é]{1,5}"), leaf, 0..3).prop_map(|map| Value::Object(map.into_iter().collect()))
    ];
    btree_map(pattern("Metadata|[a-zA-Z_]{1,5}"), inner, 0..3).prop_map(|map| map.into_iter().collect::<Map<_, _>>())
}

fn policy() -> impl Strategy<Value = modules::policies::EndpointPolicy> {
    use modules::policies::{EndpointAction, EndpointPolicy};
    let kind = select(vec!["log", "deny", "réécrire"]).prop_map(String::from);
    let action = built!(EndpointAction { r#type: kind, config: option::of(config()) });
    built!(EndpointPolicy { expressions: list(text()), actions: list(action), name: text() })
}

fn header_name() -> BoxedStrategy<String> {
    pattern("[A-Za-z0-9!#$%&'*+.^_`|~-]{1,10}")
}

/// A header in two spellings is a fault.
fn header_names() -> impl Strategy<Value = Vec<String>> {
    let one_spelling = |names: Vec<String>| {
        let mut seen = BTreeSet::new();
        names.into_iter().filter(|name| seen.insert(name.to_ascii_lowercase())).collect::<Vec<_>>()
    };
    list(header_name()).prop_map(one_spelling)
}

fn headers() -> impl Strategy<Value = BTreeMap<String, String>> {
    let value = pattern("[a-zA-Z0-9 :;=\"'äß🦀\t-]{0,10}");
    (header_names(), value).prop_map(|(names, value)| names.into_iter().map(|name| (name, value.clone())).collect())
}

fn webhook_verification() -> impl Strategy<Value = modules::webhook_verification::WebhookVerification> {
    use modules::webhook_verification::{PROVIDERS, WebhookVerification};
    let loud = select(PROVIDERS).prop_map(str::to_uppercase);
    let provider = prop_oneof![select(PROVIDERS).prop_map(String::from), loud];
    let signed = built!(WebhookVerification { enabled: on(), provider: provider, secret: secret() });
    let (sns, none) = (Just("sns".to_owned()), Just(Secret::default()));
    prop_oneof![4 => signed, 1 => built!(WebhookVerification { enabled: on(), provider: sns, secret: none })]
}

fn tls_termination() -> impl Strategy<Value = modules::tls_termination::TlsTermination> {
    use modules::tls_termination::{TerminateAt, TlsTermination, TlsVersion};
    let version = option::of(select(vec![TlsVersion::V1_0, TlsVersion::V1_1, TlsVersion::V1_2, TlsVersion::V1_3]));
    let (edge, upstream) = (Just(TerminateAt::Edge), Just(TerminateAt::Upstream));
    prop_oneof![
        2 => built!(TlsTermination { enabled: on(), terminate_at: edge, min_version: version }),
        1 => built!(TlsTermination { enabled: on(), terminate_at: upstream, min_version: Just(None) })
    ]
}

fn configured<M: Module>(module: impl Strategy<Value = M> + 'static) -> BoxedStrategy<Arc<dyn AnyModule>> {
    module.prop_map(|module| Arc::new(module) as Arc<dyn AnyModule>).boxed()
}

/// A module for the slots with a name.
pub(super) fn module(slot: &str) -> BoxedStrategy<Arc<dyn AnyModule>> {
    use modules::{
        backend::Backend, circuit_breaker::CircuitBreaker, compression::Compression, headers::RequestHeaders,
        headers::ResponseHeaders, ip_restriction::EndpointIpRestriction, mutual_tls::MutualTls, oauth::Oauth,
        oidc::Oidc, policies::Policies, saml::NAMEID_FORMATS, saml::Saml, user_agent_filter::UserAgentFilter,
        websocket_tcp_converter::WebsocketTcpConverter,
    };
    let authorities = subsequence(AUTHORITIES.map(String::from).to_vec(), 0..=AUTHORITIES.len());
    match slot {
        "backend" => configured(built!(Backend { enabled: on(), backend_id: foreign_id() })),
        "circuit_breaker" => configured(built!(CircuitBreaker {
            enabled: on(),
            tripped_duration: number(),
            rolling_window: number(),
            num_buckets: prop_oneof![Just(0u32), Just(128u32), 0..=128u32],
            volume_threshold: number(),
            error_threshold_percentage: prop_oneof![Just(0.0f64), Just(1.0f64), Just(f64::MIN_POSITIVE), 0.0..=1.0f64]
        })),
        "compression" => configured(built!(Compression { enabled: on() })),
        "ip_restriction" => {
            configured(built!(EndpointIpRestriction { enabled: on(), ip_policy_ids: list(foreign_id()) }))
        }
        "jwt_validation" => configured(jwt_validation()),
        "mutual_tls" => configured(built!(MutualTls { enabled: on(), certificate_authority_ids: authorities })),
        "oauth" => configured(built!(Oauth {
            enabled: on(),
            provider: provider(),
            options_passthrough: on(),
            cookie_prefix: cookie_prefix(),
            inactivity_timeout: number(),
            maximum_duration: number(),
            auth_check_interval: number()
        })),
        "oidc" => configured(built!(Oidc {
            enabled: on(),
            options_passthrough: on(),
            cookie_prefix: cookie_prefix(),
            inactivity_timeout: number(),
            maximum_duration: number(),
            issuer: text(),
            client_id: text(),
            client_secret: prop_oneof![secret(), Just(Secret::default())],
            scopes: list(text())
        })),
        "policies" => configured(built!(Policies { enabled: on(), inbound: list(policy()), outbound: list(policy()) })),
        "request_headers" => {
            configured(built!(RequestHeaders { enabled: on(), add: headers(), remove: header_names() }))
        }
        "response_headers" => {
            configured(built!(ResponseHeaders { enabled: on(), add: headers(), remove: header_names() }))
        }
        "saml" => configured(built!(Saml {
            enabled: on(),
            options_passthrough: on(),
            cookie_prefix: cookie_prefix(),
            inactivity_timeout: number(),
            maximum_duration: number(),
            idp_metadata: idp_metadata(),
            force_authn: on(),
            allow_idp_initiated: on(),
            authorized_groups: list(text()),
            nameid_format: select(NAMEID_FORMATS).prop_map(String::from)
        })),
        "tls_termination" => configured(tls_termination()),
        "user_agent_filter" => {
            configured(built!(UserAgentFilter { enabled: on(), allow: list(text()), deny: list(text()) }))
        }
        "webhook_verification" => configured(webhook_verification()),
        "websocket_tcp_converter" => configured(built!(WebsocketTcpConverter { enabled: on() })),
        other => panic!("the module `{other}` needs a generator"),
    }
}

fn erased<R: Resource>(spec: impl Strategy<Value = R> + 'static) -> BoxedStrategy<Spec> {
    spec.prop_map(|spec| Arc::new(spec) as Spec).boxed()
}

/// A host with some of the modules that it can hold.
fn hosted<R: Resource>(bare: impl Strategy<Value = R> + 'static, share: f64) -> BoxedStrategy<Spec> {
    let modules: Vec<_> = R::INFO.slots.iter().map(|slot| option::weighted(share, module(slot.name))).collect();
    let host = (erased(bare), modules).prop_map(|(bare, modules)| {
        let slots = R::INFO.slots.iter().zip(modules);
        slots.fold(bare, |host, (slot, module)| host.with_modules(&[(slot, module)]))
    });
    host.boxed()
}

fn hostport() -> BoxedStrategy<String> {
    let known = vec!["a:1", "*.example.com:65535", "192.0.2.1:80", "[2001:db8::1]:8443", "xn--caf-dma.example:443"];
    prop_oneof![select(known).prop_map(String::from), pattern("[a-z][a-z0-9]{0,5}\\.example:[1-9][0-9]{0,3}")].boxed()
}

fn key_scope() -> impl Strategy<Value = KeyScope> {
    let texts = |known: &'static [&'static str]| list(select(known.to_vec()).prop_map(String::from));
    built!(KeyScope {
        role: select(vec![None, Some(owner::Role::Editor), Some(owner::Role::Admin)]),
        plan: texts(&["shop", "grün-*", "*"]),
        apply: texts(&["shop", "docs-*"]),
        kinds: texts(&["TlsCertificate", "*"]),
        actions: list(select(WriteAction::ALL.to_vec())),
        hosts: texts(&["docs.example.com", "*.docs.example.com", "2001:db8::1"]),
        secrets: on(),
        global: on(),
        expires_at: select(vec!["", "2027-01-31T18:00:00Z"]).prop_map(String::from),
        addresses: texts(&["192.0.2.0/24", "2001:db8::1"])
    })
}

/// A valid Spec of a kind. Its references are to [`AUTHORITIES`] and to owners.
pub(super) fn spec(kind: Kind) -> BoxedStrategy<Spec> {
    use certificate_authority::CertificateAuthority;
    use https_edge_route::MatchType;
    use ip_restriction::{IpRestriction, Traffic};
    use tls_certificate::TlsCertificate;
    match kind {
        Kind::Owner => {
            use owner::{Owner, Role};
            erased(built!(Owner {
                role: select(vec![Role::Gateway, Role::Viewer, Role::Planner, Role::Editor, Role::Admin])
            }))
        }
        Kind::ApiKey => erased(built!(ApiKey {
            description: description(),
            metadata: metadata(),
            owner_id: select(vec!["", "usr_ada", "bot_grün"]).prop_map(String::from),
            scope: option::of(key_scope().prop_map(Arc::new))
        })),
        Kind::IpRestriction => erased(built!(IpRestriction {
            description: description(),
            metadata: metadata(),
            enforced: on(),
            r#type: select(vec![Traffic::Dashboard, Traffic::Api, Traffic::Agent, Traffic::Endpoints]).prop_map(Some),
            ip_policy_ids: list(foreign_id())
        })),
        Kind::CertificateAuthority => erased(built!(CertificateAuthority {
            description: description(),
            metadata: metadata(),
            ca_pem: select(AUTHORITY_PEMS.to_vec()).prop_map(Text::<certificate_authority::CaPem>::new)
        })),
        Kind::TlsCertificate => {
            erased((description(), metadata(), 0..CHAINS.len()).prop_map(|(description, metadata, at)| {
                let (certificate_pem, private_key_pem) = (Text::new(CHAINS[at]), Secret::new(PRIVATE_KEYS[at]));
                // Only manifests set the sources.
                TlsCertificate { description, metadata, certificate_pem, private_key_pem, shared_with: None }
            }))
        }
        Kind::HttpsEdge => {
            let edge = built!(HttpsEdge {
                description: description(),
                metadata: metadata(),
                hostports: list(hostport()),
                // Only manifests set these three: a call of the API cannot create such an edge.
                delegates_to: Just(Vec::new()),
                certificates_from: Just(Vec::new()),
                required_modules: Just(None),
                mutual_tls: Just(None),
                tls_termination: Just(None)
            });
            hosted(edge, 0.6).prop_map(|spec| Arc::new(linked(&spec, &AUTHORITIES.map(String::from))) as Spec).boxed()
        }
        Kind::HttpsEdgeRoute => {
            let match_type = select(vec![MatchType::ExactPath, MatchType::PathPrefix]).prop_map(Some);
            let place = pattern("/[a-zé]{0,6}|shop\\.example\\.com(/[a-z]{1,4})?");
            let route = (match_type, place, description(), metadata());
            let route = route.prop_map(|(match_type, place, description, metadata)| HttpsEdgeRoute {
                match_type,
                r#match: place,
                description,
                metadata,
                ..HttpsEdgeRoute::default()
            });
            hosted(route, 0.3)
        }
        Kind::TlsEdge => {
            let some = |spec: &Spec| TlsEdge::SLOTS.iter().any(|slot| spec.module(slot).is_some());
            hosted(Just(TlsEdge::default()), 0.5).prop_filter("it exists through its modules", some).boxed()
        }
        Kind::Invariant => erased(invariant_specs::invariant()),
        Kind::EventSubscription => erased(Just(event_subscription::EventSubscription {})),
        Kind::EventSource => erased(built!(EventSource { r#type: pattern("[a-z][a-z0-9_]{0,8}\\.v[0-9]{1,2}") })),
    }
}

/// A valid Spec of any kind.
pub(super) fn any_spec() -> impl Strategy<Value = Spec> {
    Union::new(Kind::all().map(|info| spec(info.kind)))
}

/// Two Specs of one kind.
pub(super) fn two_of_a_kind() -> impl Strategy<Value = (Spec, Spec)> {
    Union::new(Kind::all().map(|info| (spec(info.kind), spec(info.kind))))
}

/// A host, one of its slots, and two modules for it.
pub(super) fn host_and_two_modules()
-> impl Strategy<Value = (Spec, &'static Slot, Arc<dyn AnyModule>, Arc<dyn AnyModule>)> {
    Union::new(Kind::all().flat_map(|info| {
        let slots = info.slots.iter();
        slots.map(move |slot| (spec(info.kind), Just(slot), module(slot.name), module(slot.name)))
    }))
}

/// Replaces [`AUTHORITIES`] in an edge, or removes them if it passes TLS through (D15).
pub(super) fn linked(spec: &Spec, authorities: &[String]) -> HttpsEdge {
    let mut edge = spec.as_any().downcast_ref::<HttpsEdge>().unwrap().clone();
    if rules::passes_through(&edge) {
        edge.mutual_tls = None;
    }
    if let Some(mutual_tls) = edge.mutual_tls.as_mut().map(Arc::make_mut) {
        let known = AUTHORITIES.iter().zip(authorities);
        let named = known.filter(|(name, _)| mutual_tls.certificate_authority_ids.iter().any(|id| id == *name));
        mutual_tls.certificate_authority_ids = named.map(|(_, id)| id.clone()).collect();
    }
    edge
}

#[test]
fn every_generated_spec_is_valid() {
    let mut runner = TestRunner::deterministic();
    let mut secrets = BTreeSet::new();
    for info in Kind::all() {
        let specs = spec(info.kind);
        for _ in 0..40 {
            let spec = specs.new_tree(&mut runner).unwrap().current();
            let mut faults = Faults::new();
            spec.check(&mut faults);
            assert!(faults.is_empty(), "{spec:?}: {:?}", faults.into_vec());
            let json = Value::Object(spec.to_json(Secrets::Revealed).unwrap()).to_string();
            secrets.extend([MARKER, "PRIVATE KEY"].into_iter().filter(|mark| json.contains(mark)));
        }
    }
    assert_eq!(secrets.len(), 2, "both forms of secret are generated");
}
