//! What the API specification says of bodies: the fields of each kind and module, and the faults of a body.
//!
//! Deliberately naive: a table of fields, and one function for each question. It shares no code with the product.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::support::server::BASE_URL;

/// What is wrong with a body: the code and the JSON pointer of each fault.
pub(super) type Faults = BTreeSet<(&'static str, String)>;
/// The fields of an object.
pub(super) type Fields = Map<String, Value>;

pub(super) const STAFF_CA: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/storefront/certs/staff-devices.pem"));
pub(super) const PARTNER_CA: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/storefront/certs/partner-devices.pem"));
/// Valid hostports (D17), of which no wildcard is above a host that the model declares; the model regards every other text as
/// invalid.
pub(super) const HOSTPORTS: [&str; 4] = ["a:1", "*.example.org:65535", "shop.example.com:443", "[2001:db8::1]:443"];
/// Webhook providers, in lower case (D16); the model regards every other one as unknown.
const PROVIDERS: [&str; 4] = ["github", "stripe", "sns", "slack"];
pub(super) const MATCH_TYPES: [&str; 2] = ["exact_path", "path_prefix"];
pub(super) const TRAFFIC: [&str; 4] = ["dashboard", "api", "agent", "endpoints"];
pub(super) const ENDS: [&str; 2] = ["edge", "upstream"];
pub(super) const VERSIONS: [&str; 4] = ["1.0", "1.1", "1.2", "1.3"];

/// The modules of a route that the model writes; the others stay unset.
pub(super) const ROUTE_MODULES: [&str; 8] = [
    "backend",
    "ip_restriction",
    "circuit_breaker",
    "compression",
    "request_headers",
    "webhook_verification",
    "user_agent_filter",
    "oidc",
];
pub(super) const OTHER_ROUTE_MODULES: [&str; 6] =
    ["response_headers", "oauth", "saml", "websocket_tcp_converter", "jwt_validation", "policies"];
pub(super) const EDGE_MODULES: [&str; 2] = ["mutual_tls", "tls_termination"];
/// The modules of a TLS edge that the model writes. They work on traffic that is passed through, too (D15).
pub(super) const TLS_EDGE_MODULES: [&str; 2] = ["backend", "ip_restriction"];

/// The values of a field.
#[derive(Clone)]
pub(super) enum Form {
    Flag,
    Text,
    /// A text of so many bytes at most (D7).
    Limited(usize),
    /// One of some words.
    Word(&'static [&'static str]),
    Provider,
    /// A whole number up to this one.
    Whole(i64),
    /// A number between 0 and 1.
    Fraction,
    /// The ID of a resource in this list.
    Reference(&'static str),
    Hostport,
    /// An RFC 9110 token: the name of a header, or the prefix of a cookie.
    Token,
    Authority,
    List(Box<Form>),
    /// Texts by name.
    Texts,
    Module(&'static str),
}

/// A field of a kind or module.
#[derive(Clone)]
pub(super) struct Field {
    pub name: &'static str,
    /// Its name in responses.
    pub shown: &'static str,
    pub form: Form,
    pub default: Value,
    pub is_required: bool,
}

fn field(name: &'static str, form: Form, default: Value) -> Field {
    Field { name, shown: name, form, default, is_required: false }
}

fn required(name: &'static str, form: Form) -> Field {
    Field { is_required: true, ..field(name, form, Value::Null) }
}

fn text(name: &'static str) -> Field {
    field(name, Form::Text, json!(""))
}

fn seconds(name: &'static str) -> Field {
    field(name, Form::Whole(u32::MAX.into()), json!(0))
}

fn texts(name: &'static str, form: Form) -> Field {
    field(name, Form::List(Box::new(form)), json!([]))
}

fn references(name: &'static str, shown: &'static str, list: &'static str) -> Field {
    Field { shown, ..texts(name, Form::Reference(list)) }
}

/// The fields of a module.
pub(super) fn module(name: &str) -> Vec<Field> {
    let flag = |name, default: bool| field(name, Form::Flag, json!(default));
    let mut fields = vec![flag("enabled", true)];
    fields.extend(match name {
        "backend" => vec![Field { shown: "backend", ..required("backend_id", Form::Reference("/backends")) }],
        "ip_restriction" => vec![references("ip_policy_ids", "ip_policies", "/ip_policies")],
        "circuit_breaker" => vec![
            seconds("tripped_duration"),
            seconds("rolling_window"),
            field("num_buckets", Form::Whole(128), json!(0)),
            seconds("volume_threshold"),
            field("error_threshold_percentage", Form::Fraction, json!(0.0)),
        ],
        "compression" => vec![],
        "request_headers" => vec![field("add", Form::Texts, json!({})), texts("remove", Form::Token)],
        "webhook_verification" => vec![required("provider", Form::Provider), text("secret")],
        "user_agent_filter" => vec![texts("allow", Form::Text), texts("deny", Form::Text)],
        "oidc" => vec![
            flag("options_passthrough", false),
            field("cookie_prefix", Form::Token, json!("edgewright.")),
            seconds("inactivity_timeout"),
            seconds("maximum_duration"),
            text("issuer"),
            text("client_id"),
            text("client_secret"),
            texts("scopes", Form::Text),
        ],
        "mutual_tls" => {
            vec![references("certificate_authority_ids", "certificate_authorities", "/certificate_authorities")]
        }
        "tls_termination" => vec![
            field("terminate_at", Form::Word(&ENDS), json!("edge")),
            field("min_version", Form::Word(&VERSIONS), json!("1.2")),
        ],
        other => panic!("the model has no module {other}"),
    });
    fields
}

/// A kind of resource.
pub(super) struct Kind {
    /// The array of its list.
    pub array: &'static str,
    /// The prefix of its IDs.
    pub prefix: &'static str,
    pub fields: Vec<Field>,
    /// The fields that cannot change.
    pub fixed: &'static [&'static str],
}

/// The kind of the resources in a list.
pub(super) fn kind(list: &str) -> Kind {
    fn kind_with(
        array: &'static str,
        prefix: &'static str,
        fixed: &'static [&'static str],
        more: Vec<Field>,
        modules: &[&'static str],
    ) -> Kind {
        let described = ["description", "metadata"].into_iter().zip([255, 4096]);
        let mut fields: Vec<Field> =
            described.map(|(name, most)| field(name, Form::Limited(most), json!(""))).chain(more).collect();
        fields.extend(modules.iter().map(|&module| field(module, Form::Module(module), Value::Null)));
        Kind { array, prefix, fields, fixed }
    }

    match list {
        "/api_keys" => kind_with("keys", "ak_", &["owner_id"], vec![text("owner_id")], &[]),
        "/ip_restrictions" => {
            let more = vec![
                field("enforced", Form::Flag, json!(false)),
                required("type", Form::Word(&TRAFFIC)),
                references("ip_policy_ids", "ip_policies", "/ip_policies"),
            ];
            kind_with("ip_restrictions", "ipx_", &["type"], more, &[])
        }
        "/certificate_authorities" => {
            kind_with("certificate_authorities", "ca_", &["ca_pem"], vec![required("ca_pem", Form::Authority)], &[])
        }
        "/edges/https" => {
            kind_with("https_edges", "edghts_", &[], vec![texts("hostports", Form::Hostport)], &EDGE_MODULES)
        }
        "/edges/tls" => kind_with("tls_edges", "edgtls_", &[], vec![], &TLS_EDGE_MODULES),
        "/event_subscriptions" => kind_with("event_subscriptions", "esb_", &[], vec![], &[]),
        _ if list.ends_with("/sources") => kind_with("sources", "", &[], vec![], &[]),
        _ => {
            let more = vec![required("match_type", Form::Word(&MATCH_TYPES)), required("match", Form::Text)];
            kind_with("routes", "edghtsrt_", &[], more, &ROUTE_MODULES)
        }
    }
}

/// A value as responses show it, and its faults.
fn read(form: &Form, value: &Value, at: &str, faults: &mut Faults) -> Value {
    match (form, value) {
        (Form::List(entry), Value::Array(values)) => {
            let mut entries = Vec::new();
            for (index, value) in values.iter().enumerate() {
                entries.push(read(entry, value, &format!("{at}/{index}"), faults));
            }
            return Value::Array(entries);
        }
        (Form::Texts, Value::Object(values)) => {
            let mut entries = Fields::new();
            for (name, value) in values.iter().filter(|(_, value)| !value.is_null()) {
                entries.insert(name.clone(), read(&Form::Text, value, &format!("{at}/{name}"), faults));
            }
            return Value::Object(entries);
        }
        (Form::Module(name), Value::Object(_)) => return read_module(name, value, at, faults),
        _ => {}
    }
    if let Some(code) = fault(form, value) {
        faults.insert((code, at.to_owned()));
    }
    match (form, value.as_str()) {
        (Form::Reference(list), Some(id)) => json!({"id": id, "uri": format!("{BASE_URL}{list}/{id}")}),
        (Form::Fraction, _) => json!(value.as_f64()),
        _ => value.clone(),
    }
}

/// What is wrong with a single value.
fn fault(form: &Form, value: &Value) -> Option<&'static str> {
    let unless = |is_right: bool, code| (!is_right).then_some(code);
    match (form, value.as_str()) {
        (Form::Flag, _) => unless(value.is_boolean(), "WRONG_TYPE"),
        (Form::Whole(most), _) => {
            value.as_i64().map_or(Some("WRONG_TYPE"), |it| unless((0..=*most).contains(&it), "OUT_OF_RANGE"))
        }
        (Form::Fraction, _) => {
            value.as_f64().map_or(Some("WRONG_TYPE"), |it| unless((0.0..=1.0).contains(&it), "OUT_OF_RANGE"))
        }
        (Form::List(_) | Form::Texts | Form::Module(_), _) | (_, None) => Some("WRONG_TYPE"),
        (Form::Text, Some(_)) => None,
        (Form::Limited(most), Some(text)) => unless(text.len() <= *most, "TOO_LONG"),
        (Form::Word(words), Some(text)) => unless(words.contains(&text), "UNKNOWN_VALUE"),
        (Form::Provider, Some(text)) => unless(PROVIDERS.contains(&text.to_lowercase().as_str()), "UNKNOWN_VALUE"),
        // An authority of the edge must exist, whatever its ID looks like.
        (Form::Reference("/certificate_authorities"), Some(_)) => None,
        (Form::Reference(_), Some("")) => Some("REQUIRED"),
        (Form::Reference(_), Some(id)) => unless(!id.contains([' ', '/']), "INVALID_FORMAT"),
        (Form::Hostport, Some(text)) => unless(HOSTPORTS.contains(&text), "INVALID_FORMAT"),
        (Form::Token, Some(text)) => unless(!text.is_empty() && !text.contains(' '), "INVALID_FORMAT"),
        // An empty one is missing, which the field tells.
        (Form::Authority, Some(text)) => unless(["", STAFF_CA, PARTNER_CA].contains(&text), "INVALID_PEM"),
    }
}

/// The fields that a body gives, by the names of responses. Null means "not given" (D6).
pub(super) fn given(fields: &[Field], body: &Value, at: &str, faults: &mut Faults) -> Fields {
    let mut given = Fields::new();
    for (name, value) in body.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        let place = format!("{at}/{name}");
        if let Some(field) = fields.iter().find(|field| field.name == name) {
            given.insert(field.shown.to_owned(), read(&field.form, value, &place, faults));
        } else {
            faults.insert(("UNKNOWN_FIELD", place));
        }
    }
    given
}

/// All fields after a POST or PUT: an unset field has its default (D14).
pub(super) fn complete(fields: &[Field], body: &Value, at: &str, faults: &mut Faults) -> Fields {
    let mut given = given(fields, body, at, faults);
    for field in fields {
        if field.is_required && is_unset(&body[field.name]) {
            faults.insert(("REQUIRED", format!("{at}/{}", field.name)));
        }
        given.entry(field.shown).or_insert_with(|| field.default.clone());
    }
    given
}

/// Null and `""` do not satisfy a requirement.
pub(super) fn is_unset(value: &Value) -> bool {
    value.is_null() || *value == ""
}

/// A module as responses show it, and the faults of its body.
pub(super) fn read_module(name: &str, body: &Value, at: &str, faults: &mut Faults) -> Value {
    let mut body = body.clone();
    if let Some(fields) = body.as_object_mut().filter(|_| name == "tls_termination") {
        // A blank variant is not given (D62).
        fields.retain(|_, value| *value != "");
    }
    let mut shown = complete(&module(name), &body, at, faults);
    if name == "webhook_verification" && is_unset(&body["secret"]) {
        let provider = body["provider"].as_str().unwrap_or_default().to_lowercase();
        if provider != "sns" && PROVIDERS.contains(&provider.as_str()) {
            faults.insert(("REQUIRED", format!("{at}/secret")));
        }
    }
    if name == "tls_termination" && shown["terminate_at"] == "upstream" {
        if body["min_version"].as_str().is_some_and(|version| VERSIONS.contains(&version)) {
            faults.insert(("NOT_ALLOWED", format!("{at}/min_version")));
        }
        shown.insert("min_version".into(), Value::Null);
    }
    Value::Object(shown)
}
