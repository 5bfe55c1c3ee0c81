//! What the rules of the model add to the schemas that its types alone give.

use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// The fields that a definition cannot do without; the rules of the model say so, serde's types do not.
const REQUIRED: &[(&str, &[&str])] = &[
    ("Metadata", &["name"]),
    ("HttpsEdgeRoute", &["match_type", "match"]),
    ("IpRestriction", &["type"]),
    ("CertificateAuthority", &["ca_pem"]),
    ("TlsCertificate", &["certificate_pem", "private_key_pem"]),
    ("EventSource", &["type"]),
    ("Backend", &["backend_id"]),
    ("WebhookVerification", &["provider"]),
    ("Oauth", &["provider"]),
    ("Saml", &["idp_metadata"]),
    ("Token", &["type", "method"]),
    ("EndpointAction", &["type"]),
];

/// Adds the rules to definitions made by [`schemars`].
pub fn refine(definitions: &mut Map<String, Value>) {
    for (name, definition) in definitions.iter_mut() {
        require(name, definition);
        bound_integers(definition);
        for (of, rule) in rules() {
            if of == name
                && let (Some(definition), Value::Object(rule)) = (definition.as_object_mut(), rule)
            {
                definition.extend(rule);
            }
        }
    }
}

/// `format: uint32` is a hint that few tools know.
fn bound_integers(definition: &mut Value) {
    let properties = definition.get_mut("properties").and_then(Value::as_object_mut);
    let properties =
        properties.into_iter().flat_map(|properties| properties.values_mut()).filter_map(Value::as_object_mut);
    for property in properties.filter(|property| property.get("format") == Some(&json!("uint32"))) {
        property.entry("maximum").or_insert_with(|| json!(u32::MAX));
    }
}

/// Adds the required fields of a definition; they cannot be null either.
pub fn require(name: &str, definition: &mut Value) {
    let fields = REQUIRED.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, fields)| *fields);
    for field in fields {
        if let Some(property) = definition.pointer_mut(&format!("/properties/{field}")) {
            not_null(property);
        }
    }
    add_required(definition, fields);
}

/// Adds required fields.
pub fn add_required(definition: &mut Value, fields: &[&str]) {
    if !fields.is_empty()
        && let Some(definition) = definition.as_object_mut()
        && let Some(list) = definition.entry("required").or_insert_with(|| json!([])).as_array_mut()
    {
        list.extend(fields.iter().map(|field| json!(field)));
    }
}

/// Adds a property.
pub fn add_property(definition: &mut Value, name: &str, property: Value) {
    if let Some(definition) = definition.as_object_mut()
        && let Some(properties) = definition.entry("properties").or_insert_with(|| json!({})).as_object_mut()
    {
        properties.insert(name.to_owned(), property);
    }
}

/// A definition itself instead of a reference to it.
pub fn inline(generator: &mut SchemaGenerator, schema: fn(&mut SchemaGenerator) -> Schema) -> Value {
    let reference = schema(generator).to_value();
    let name = definition_name(&reference).unwrap_or_default().to_owned();
    generator.definitions_mut().get(&name).cloned().unwrap_or(reference)
}

/// The name of the definition that a schema refers to.
pub fn definition_name(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.rsplit('/').next()
}

fn not_null(property: &mut Value) {
    let Some(property) = property.as_object_mut() else { return };
    property.remove("default");
    if let Some(Value::Array(options)) = property.get_mut("anyOf") {
        options.retain(|option| option.get("type") != Some(&json!("null")));
        if let [only] = options.as_slice() {
            let Value::Object(only) = only.clone() else { return };
            property.remove("anyOf");
            property.extend(only);
        }
    }
}

/// The rules that span several fields (Validation rules 1 to 3, D15, D16).
fn rules() -> Vec<(&'static str, Value)> {
    let filled = json!({"type": "string", "minLength": 1});
    // A manifest may take a secret from elsewhere, so it need not be a string.
    let given = json!({"not": {"enum": ["", null]}});
    let some = json!({"type": "array", "minItems": 1});
    let own_app = json!({"required": ["client_id", "client_secret"], "properties": {"client_id": filled, "client_secret": given}});
    let app = json!({"allOf": [
        {"if": {"required": ["client_id"], "properties": {"client_id": filled}}, "then": {"required": ["client_secret"], "properties": {"client_secret": given}}},
        {"if": {"required": ["scopes"], "properties": {"scopes": some}}, "then": own_app},
    ]});
    let providers = ["github", "facebook", "microsoft", "google", "linkedin", "gitlab", "twitch", "amazon"];
    let one = providers.map(|provider| json!({"required": [provider], "properties": {provider: {"type": "object"}}}));
    vec![
        ("App", app.clone()),
        ("GithubApp", app),
        ("Provider", json!({"oneOf": one})),
        (
            "TlsTermination",
            json!({
                "if": {"required": ["terminate_at"], "properties": {"terminate_at": {"const": "upstream"}}},
                "then": {"properties": {"min_version": {"type": "null"}}}
            }),
        ),
        (
            "HttpsEdge",
            json!({
                "if": {
                    "required": ["tls_termination"],
                    "properties": {"tls_termination": {
                        "type": "object",
                        "required": ["terminate_at"],
                        "properties": {"terminate_at": {"const": "upstream"}}
                    }}
                },
                "then": {"properties": {"mutual_tls": {"type": "null"}}}
            }),
        ),
        (
            "WebhookVerification",
            json!({
                "if": {"required": ["provider"], "properties": {"provider": {"not": {"pattern": "^[sS][nN][sS]$"}}}},
                "then": {"required": ["secret"], "properties": {"secret": given}}
            }),
        ),
    ]
}
