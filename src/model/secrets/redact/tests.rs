//! Redaction of valid and broken manifests.

use serde_json::json;

use super::*;

/// No `MARKER` may be seen in any of [`MISTAKES`].
const MARKER: &str = "hunter2";

fn fields() -> Fields {
    let text = json!({"type": "string"});
    let source = |name: &str| json!({"type": "object", "properties": {name: text}, "additionalProperties": false});
    let sourced = json!({"anyOf": [text, source("from_env"), source("from_file")]});
    let (secret, long_text) = (json!({"$ref": "#/$defs/Secret"}), json!({"$ref": "#/$defs/Text"}));
    let texts = json!({"type": "array", "items": text});
    let names = ["apiVersion", "kind", "name", "id", "description", "match", "issuer", "backend_id"];
    let mut root: serde_json::Map<_, _> = names.iter().map(|name| ((*name).to_owned(), text.clone())).collect();
    root.extend([
        ("enabled".into(), json!({"type": ["boolean", "null"]})),
        ("port".into(), json!({"type": "integer"})),
        ("scopes".into(), texts.clone()),
        ("secret".into(), secret.clone()),
        ("client_secret".into(), json!({"anyOf": [secret, {"type": "null"}]})),
        ("private_key_pem".into(), secret.clone()),
        ("certificate_pem".into(), long_text.clone()),
        ("ca_pem".into(), long_text),
        ("headers".into(), json!({"type": "object", "additionalProperties": text})),
        (
            "annotations".into(),
            json!({"type": "object", "patternProperties": {"^level/": {"enum": ["warn"]}}, "additionalProperties": text}),
        ),
        ("login".into(), json!({"anyOf": [{"$ref": "#/$defs/App"}, {"type": "null"}]})),
        ("routes".into(), json!({"type": "array", "items": {"$ref": "#/$defs/Route"}})),
        ("spec".into(), json!({"type": "object", "properties": {"hosts": texts}})),
    ]);
    Fields::new(json!({
        "oneOf": [{"type": "object", "properties": root}, {"properties": {"kind": {"const": "Other"}}}],
        "$defs": {
            "Secret": sourced,
            "Text": sourced,
            "App": {"type": "object", "properties": {"issuer": text, "client_secret": secret, "scopes": texts}},
            "Route": {
                "type": "object",
                "properties": {"match": text, "type": {"enum": ["exact", "prefix"]}, "login": {"$ref": "#/$defs/App"}},
                // A condition names a field without its type.
                "if": {"properties": {"secret": {"not": {"enum": [""]}}}},
            },
        }
    }))
}

/// The text as an excerpt shows it.
fn shown(text: &str) -> String {
    let redacted = RedactedText::new(text, &fields());
    assert_eq!(redacted.text.len(), text.len(), "{text:?}");
    let (mut shown, mut at) = (String::new(), 0);
    for part in redacted.hidden {
        assert!(redacted.text[part.clone()].bytes().all(|byte| byte == b'*'), "{text:?}");
        shown += &redacted.text[at..part.start];
        shown += "(hidden)";
        at = part.end;
    }
    shown + &redacted.text[at..]
}

const MISTAKES: &[(&str, &str)] = &[
    ("a misspelt field", "client_secrt: hunter2"),
    ("another misspelt field", "privat_key_pem: hunter2"),
    ("two letters are swapped", "sceret: hunter2"),
    ("a capital", "Secret: hunter2"),
    ("all capitals", "CLIENT_SECRET: hunter2"),
    ("a dash for an underscore", "client-secret: hunter2"),
    ("camel case", "clientSecret: hunter2"),
    ("a blank in the key", "client secret: hunter2"),
    ("a field of another product", "password: hunter2"),
    ("an abbreviation", "db_pwd: hunter2"),
    ("a token", "token: hunter2"),
    ("an API key", "api_key: hunter2"),
    ("an API key in camel case", "apiKey: hunter2"),
    ("a header with credentials", "add: {Authorization: Basic hunter2}"),
    ("a part of the key is misspelt", "webhook_secrt: hunter2"),
    ("a blank before the colon", "client_secret : hunter2"),
    ("no blank behind the colon", "client_secret:hunter2"),
    ("no colon", "client_secret hunter2"),
    ("a semicolon for a colon", "client_secret; hunter2"),
    ("an equals sign", "client_secret=hunter2"),
    ("a shell script", "export CLIENT_SECRET='hunter2'"),
    ("a query", "match: /callback?client_secret=hunter2"),
    ("an explicit key", "? client_secret\n: hunter2\n"),
    ("an explicit quoted key", "? \"client_secret\"\n: \"hunter2\"\n"),
    ("an explicit key as a block", "? |\n  client_secret\n: hunter2\n"),
    ("a quoted key", "\"client_secret\": hunter2"),
    ("a key in single quotes", "'client_secret' : 'hunter2'"),
    ("an escaped key", "{\"client\\u005fsecret\": \"hunter2\"}"),
    ("a block without indentation", "oauth:\n  client_secret: |\nhunter2\nscopes: [a]\n"),
    ("a block with too little indentation", "    secret: |\n  hunter2\n  hunter2\n"),
    ("a block with an indicator", "secret: |2\n   hunter2\n"),
    ("a folded block", "secret: >-\n  one\n\n  hunter2\n"),
    ("the value on the next line", "secret:\n  hunter2\n"),
    ("the value on the next line, without indentation", "secret:\nhunter2\n"),
    ("a tab", "secret:\thunter2"),
    ("lines indented with tabs", "\tsecret:\n\t\thunter2\n"),
    ("CRLF", "secret: |\r\n  hunter2\r\n  hunter2\r\n"),
    ("old line breaks", "secret: |\r  hunter2\rname: hunter2\r"),
    ("a document begins inside of a block", "secret: |\n---\nhunter2\n"),
    ("a document on the line of its separator", "--- {client_secret: hunter2}\n"),
    ("the second document", "name: a\n---\nsecret: hunter2\n"),
    ("an anchor", "secret: &s hunter2\n"),
    ("an anchor on a public field", "issuer: &s hunter2\nsecret: *s\n"),
    ("an anchor on a block", "issuer: &key |\n  hunter2\nsecret: *key\n"),
    ("a tag", "secret: !!str hunter2\n"),
    ("a tag on the line above", "secret: !!binary |\n  hunter2\n"),
    ("a tag in front of the key", "!!str secret: hunter2\n"),
    ("a number", "secret: 4412hunter2\n"),
    ("an item", "- secret: hunter2\n"),
    ("an item without a blank", "-secret: hunter2\n"),
    ("a list", "secret:\n- hunter2\n- hunter2\n"),
    ("a list in brackets", "{secret: [hunter2, hunter2], name: a}"),
    ("a mapping", "secret:\n  value: hunter2\n"),
    ("a reference and more", "secret: {from_env: NAME, value: hunter2}\n"),
    ("a reference with more below it", "secret:\n  from_env: NAME\n  value: hunter2\n"),
    ("a reference to what cannot be a variable", "secret: {from_env: hunter2!}\n"),
    ("JSON on one line", "{\"client_secret\": \"hunter2\", \"name\": \"a\"}"),
    ("JSON on many lines", "{\n  \"client_secret\":\n    \"hunter2\",\n  \"name\": \"a\"\n}"),
    ("JSON without a comma", "{\"client_secret\": \"hunter2\" \"hunter2\": 1}"),
    ("JSON without a colon", "{\n  \"client_secret\" \"hunter2\"\n}"),
    ("JSON without the last quote", "{\n  \"client_secret\": \"hunter2,\n  hunter2\n}"),
    ("a quote inside of quotes", "{\"client_secret\": \"a\"hunter2\", \"name\": 1}"),
    ("a comma inside of a flow", "{client_secret: a,hunter2, name: a}"),
    ("a flow over lines", "oauth: {client_secret:\n  hunter2, scopes: [a]}\n"),
    ("a flow that is not closed", "oauth: {client_secret: hunter2\nhunter2\n"),
    ("a quote that is not closed", "secret: \"one\n  hunter2\nhunter2\n"),
    ("a comment that repeats it", "# it was hunter2 before\nsecret: hunter2\n"),
    ("a comment behind it", "secret: other # not hunter2 any more\n"),
    ("a secret that is commented out", "# client_secret: hunter2\nname: a\n"),
    ("a comment below it", "secret: other\n# hunter2\n"),
    ("a merge that is not finished", "secret: a\n=======\nsecret: hunter2\n>>>>>>> hunter2\n"),
    (
        "a key without indentation",
        "private_key_pem: |\n-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n",
    ),
    (
        "a key in a field that nobody knows",
        "key: |\n  -----BEGIN EC PRIVATE KEY-----\n  hunter2\n  -----END EC PRIVATE KEY-----\n",
    ),
    (
        "a key in a public field",
        "certificate_pem: |\n  -----BEGIN PRIVATE KEY-----\n  hunter2\n  -----END PRIVATE KEY-----\n",
    ),
    ("a key on one line", "{\"key\": \"-----BEGIN PRIVATE KEY-----\\nhunter2\\n-----END PRIVATE KEY-----\"}"),
    ("a key without its end", "key: |\n  -----BEGIN PRIVATE KEY-----\n  hunter2\n  hunter2\n"),
    (
        "a key behind a certificate without its end",
        "key: |\n  -----BEGIN CERTIFICATE-----\n  MIIB\n  -----BEGIN PRIVATE KEY-----\n  hunter2\n  -----END PRIVATE KEY-----\n",
    ),
    (
        "a key without its labels",
        "ca_pem: |\n  MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQhunter2\n  hunter2\nname: a\n",
    ),
    ("a token in a field that nobody knows", "hmac: hunter2a8f5f167f44f4964e6c998dee827110c\n"),
    ("a token in a comment", "# hunter2a8f5f167f44f4964e6c998dee827110c\n"),
    ("a token of edgewright", "description: ew_ak_hunter2\n"),
    ("a token of edgewright as a key", "spec: {ew_ak_1_hunter2hunter2: 1}\n"),
    ("JSON with the colon on the next line", "{\"a\": {\"client_secret\"\n:\"hunter2\"}}"),
    ("JSON with empty lines around the colon", "{\"a\": {\"client_secret\"\n\n:\n\n[\"hunter2\"]}}"),
    ("JSON without a colon on two lines", "{\"a\": {\"client_secret\"\n\"hunter2\"}}"),
    ("JSON without a colon on one line", "{\"a\": 1, \"client_secret\" \"hunter2\"}"),
    ("JSON with a comma for a colon", "{\"a\": 1, \"client_secret\",\"hunter2\"}"),
    ("JSON with an escape in the key", "{\"a\": 1, \"client_secret\\t\":\"hunter2\"}"),
    ("JSON inside of JSON", "{\"foo\":\"{\\\"client_secret\\\":\\\"hunter2\\\"}\"}"),
    ("a comment in JSON", "{\"a\": 1} /* client_secret hunter2 */"),
    ("a flow with the colon on the next line", "oauth: {client_secret\n: hunter2}"),
    ("a flow with a quoted key and the colon on the next line", "oauth: {\"client_secret\"\n : \"hunter2\"}"),
    ("a pair in a list with the colon on the next line", "oauth: [client_secret\n : hunter2]"),
    ("an explicit key with an anchor", "? &k client_secret\n: hunter2\n"),
    ("an explicit key with a tag", "? !!str client_secret\n: hunter2\n"),
    ("an alias as a key", "cookie_prefix: &k client_secret\n*k : hunter2\n"),
    ("an alias of a secret as a key", "client_secret: &a hunter2\n*a : x\n"),
    ("a name and a value", "{name: client_secret, value: hunter2}"),
    ("a name and a value on two lines", "- name: client_secret\n  value: hunter2\n"),
    ("a pair as a list", "[client_secret, hunter2]"),
    ("a comment with a word behind the key", "# secret hunter2\n"),
    ("a comment with a password", "# password hunter2\n"),
    ("a comment with a verb", "# client_secret is hunter2\n"),
    ("a comment on two lines", "# client_secret:\n# hunter2\n"),
    ("a comment with a URL", "# https://user:hunter2@host/\n"),
    ("a URL in a public field", "issuer: https://user:hunter2@host/\n"),
    ("a URL with a slash in the password", "issuer: https://user:a/hunter2@host/\n"),
    ("a token of a service in a public field", "issuer: ghp_hunter2\n"),
    ("another token of a service", "description: see sk_live_hunter2\n"),
    ("a web token", "description: eyJhunter2.abc.def\n"),
    ("a secret as the name of a variable", "certificate_pem: {from_env: hunter2}\n"),
    ("a secret as the path of a file", "certificate_pem: {from_file: hunter2}\n"),
    ("a secret in place of its mapping", "login: hunter2\n"),
    ("a secret in place of its mapping, on the next line", "login:\n  hunter2\n"),
    ("half a name", "clientsec: hunter2"),
    ("less than half a name", "client_se: hunter2"),
    ("consonants", "clnt_scrt: hunter2"),
    ("a client key", "client_key: hunter2"),
    ("an access key", "access_key: hunter2"),
    ("a signing key", "signingkey: hunter2"),
    ("a key as PEM", "key_pem: hunter2"),
    ("a key as Kubernetes has it", "tls.key: hunter2"),
    ("a hash key", "hmac: hunter2"),
    ("a bearer", "add: {X-Login: Bearer hunter2}"),
    ("the environment", "HOME=/root\0VALUE=hunter2\0"),
    ("a section of an INI file", "[client_secret]\nvalue = hunter2\n"),
    ("an element of XML", "<client_secret>hunter2</client_secret>\n"),
    ("an element of XML on lines", "<secret>\n  hunter2\n</secret>\n"),
    ("a key of several words", "private key pem: hunter2\n"),
    ("an escaped first letter", "\"\\u0073ecret\": hunter2\n"),
    ("text behind an alias", "issuer: &a hunter2\nsecret: *a hunter2\n"),
    ("a scalar to merge", "login:\n  <<: hunter2\n"),
    ("a directive", "%secret hunter2\n"),
    ("a tag directive", "%TAG ! hunter2\n"),
    ("a key in place of the value", "hunter2: client_secret\n"),
    ("an explicit key in place of the value", "? hunter2\n: client_secret\n"),
    ("a quoted key in place of the value", "{\"hunter2\": \"client_secret\", \"name\": 1}"),
];

#[test]
fn no_mistake_shows_a_secret() {
    assert!(MISTAKES.len() >= 136);
    let shown = MISTAKES.iter().filter_map(|(mistake, text)| {
        assert!(text.contains(MARKER), "{mistake}");
        let shown = shown(text);
        shown.contains(MARKER).then(|| format!("{mistake}: {shown:?}"))
    });
    let shown: Vec<String> = shown.collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
}

#[test]
fn keys_and_the_values_of_public_fields_are_shown() {
    for text in [
        "apiVersion: edgewright/v1\nkind: ApiKey\nspec: {hosts: ['a.example.com', \"b\"]}\n",
        "id: https_edge_2k9QpostgresPassThrough0001\nbackend_id: bkd_2f9XkQweb00000000000000001\n",
        "routes:\n  - match: /cart\n    type: prefix\n  - {match: '/it''s', type: exact}\n",
        "{\n  \"name\": \"shop\",\n  \"routes\": [{\"match\": \"/\"}]\n}\n",
        "description: >-\n  Shop\n\n  and more\nport: 443\nenabled: true\n",
        "description: |2\n   Shop\nmatch: shop.example.com/catalog\n",
        "name:\tshop\n---\nname: other\n",
        "\u{feff}name: shop\n",
        // A wrong value of a public field is what the error is about.
        "routes: [{type: prefx, match: 12}]\nport: '80a'\nenabled: yes\nscopes: read:org\nlogin: null\n",
        "issuer: https://id.example.com:443/a@b\n",
        "annotations: {level/unused: wran}\n",
        // The place of a secret is no secret.
        "secret:\n  from_env: HOOK_SECRET\nname: a\n",
        "secret: {from_file: ../secrets/stripe-webhook-secret-v2.txt}\nname: a\n",
        "{\"client_secret\": {\"from_env\": \"NAME\"}, \"name\": \"a\"}",
        "name: the-secret-door\ndescription: client_secret\n",
    ] {
        assert_eq!(shown(text), text);
    }
}

#[test]
fn everything_else_is_hidden() {
    for (text, expected) in [
        ("client_secret: hunter2\nscopes: [a]\n", "client_secret: (hidden)\nscopes: [a]\n"),
        ("secret: |\n  one\n\n  tw\u{f6}\nname: a", "secret: |\n  (hidden)\n\n  (hidden)\nname: a"),
        ("{\"client_secret\": \"a,b\", \"port\": 1}", "{\"client_secret\": (hidden), \"port\": 1}"),
        ("{secret: [a, b], name: c}", "{secret: (hidden), name: c}"),
        ("secret: {value: a, from_env: NAME}", "secret: {(hidden): (hidden), from_env: NAME}"),
        // An unknown field, and a known one at another place.
        ("nmae: shop\nname: shop\n", "nmae: (hidden)\nname: shop\n"),
        ("hosts: [a]\nrule: {name: b}\n", "hosts: (hidden)\nrule: (hidden)\n"),
        ("rules:\n  - name: b\n    c: d\nport: 1\n", "rules:\n  (hidden)\n    (hidden)\nport: 1\n"),
        // A value in place of a mapping, a mapping in place of a value, and a list in place of a value.
        ("login: a\nname: {b: c}\nport: [1]\n", "login: (hidden)\nname: {(hidden): (hidden)}\nport: [(hidden)]\n"),
        // The values of free-form maps, and long texts.
        ("headers: {X-Team: shop}\n", "headers: {X-Team: (hidden)}\n"),
        ("certificate_pem: |\n  -----BEGIN CERTIFICATE-----\n", "certificate_pem: |\n  (hidden)\n"),
        // Comments, directives and tags.
        ("name: \"a\" # b\n# c\nport: 1\n", "name: \"a\" # (hidden)\n# (hidden)\nport: 1\n"),
        ("description: &d | # b\n  a\n", "description: &(hidden) | # (hidden)\n  a\n"),
        ("%YAML 1.2\n---\nname: !!str a\n", "%(hidden)\n---\nname: !!(hidden) a\n"),
        // A text over lines, as it is without a closing quote.
        ("name: \"a\n  b\"\nport: 1\n", "name: (hidden)\n  (hidden)\nport: 1\n"),
        // The lines that cannot be read.
        (
            "port: 1\nname: \"a\nscopes: [b]\n  - match: c\n  rule: d\n",
            "port: 1\nname: (hidden)\nscopes: (hidden)\n  - match: (hidden)\n  (hidden)\n",
        ),
        ("{\n  \"name\": \"a\"\n  \"port\": 1\n}\n", "{\n  \"name\": \"a\"\n  \"port\": (hidden)\n(hidden)\n"),
        ("name: a\0\n", "name: (hidden)\n"),
        // An alias names what it repeats, and in what cannot be read, one of each anchor may follow.
        (
            "login: &a\n  issuer: b\nroutes:\n  - login: {<<: *a}\n",
            "login: &(hidden)\n  issuer: b\nroutes:\n  - login: {<<: *(hidden)}\n",
        ),
        ("name: &n a\nport: &p 1\nsecret: *n\n", "name: &(hidden)\nport: &(hidden) 1\nsecret: (hidden)\n"),
        ("issuer: &s a\nsecret: *s b\n", "issuer: &(hidden)\nsecret: (hidden)\n"),
    ] {
        assert_eq!(shown(text), expected);
    }
}

#[test]
fn a_misspelt_public_field_is_shown_as_the_one_that_is_meant() {
    for (text, expected) in [
        ("isuer: a\nbackendId: b\ndescripton: c\n", "isuer: a\nbackendId: b\ndescripton: c\n"),
        ("scopess: [a, b]\n", "scopess: [a, b]\n"),
        // What is like a secret field, a long text or a mapping, or is too short.
        ("client_secrt: hunter2\nlogn: a\n", "client_secrt: (hidden)\nlogn: (hidden)\n"),
        ("certificate_pm: hunter2\nroutess: [hunter2]\n", "certificate_pm: (hidden)\nroutess: (hidden)\n"),
        ("secret: {form_env: hunter2}\n", "secret: {(hidden): (hidden)}\n"),
        ("ca_pem: {form_env: hunter2}\n", "ca_pem: {form_env: (hidden)}\n"),
        // The rules for the field hold.
        ("descripton: glpat-hunter2\n", "descripton: (hidden)\n"),
        ("descripton: old hunter2\nsecret: hunter2\n", "descripton: (hidden)\nsecret: (hidden)\n"),
        // It is one at this place only.
        ("headers: {isuer: a}\n", "headers: {isuer: (hidden)}\n"),
    ] {
        assert_eq!(shown(text), expected);
    }
}

#[test]
fn a_status_is_shown_in_a_free_form_map() {
    for (text, expected) in [
        ("headers: {status_code: 403}\n", "headers: {status_code: 403}\n"),
        ("headers: {status_code: 4034, code: 403}\n", "headers: {status_code: (hidden), code: (hidden)}\n"),
        ("secret: {status_code: 403}\n", "secret: {(hidden): (hidden)}\n"),
        ("other: {status_code: 403}\n", "other: (hidden)\n"),
    ] {
        assert_eq!(shown(text), expected);
    }
}

#[test]
fn a_public_value_with_a_credential_is_hidden() {
    for (text, expected) in [
        ("issuer: https://user:hunter2@host/\n", "issuer: https://user:(hidden)@host/\n"),
        ("issuer: \"https:\\/\\/user:hunter2@host/\"\n", "issuer: (hidden)\n"),
        ("match: /callback?Client_Secret=hunter2\n", "match: (hidden)\n"),
        ("scopes: [secret, hunter2]\n", "scopes: [(hidden), (hidden)]\n"),
        ("description: glpat-hunter2\n", "description: (hidden)\n"),
        ("description: |\n  -----begin key-----\n", "description: |\n  (hidden)\n"),
        ("name: old hunter2\nsecret: hunter2\nhunter2: 1\n", "name: (hidden)\nsecret: (hidden)\n(hidden): (hidden)\n"),
        ("hunter2: secret\n", "(hidden): (hidden)\n"),
        ("{secret: a,hunter2, name: b}", "{secret: (hidden),(hidden), name: b}"),
        ("secret: {from_env: hunter2}", "secret: {from_env: (hidden)}"),
        ("a8f5f167f44f4964e6c998dee827110c: 1", "(hidden): (hidden)"),
    ] {
        assert_eq!(shown(text), expected);
    }
}

#[test]
fn messages_quote_names_and_no_values() {
    for (key, quoted) in [
        ("compresion", "compresion"),
        ("client_secret:hunter2", "client_secret…"),
        ("client_secret hunter2", "client_secret…"),
        ("a8f5f167f44f4964e6c998dee827110c", "…"),
    ] {
        assert_eq!(quotable_key(key), quoted);
    }
    for name in ["HOOK_SECRET", "EDGE_PROD_EU1A_SECRET_KEY", "_A1", "STRIPE"] {
        assert_eq!(quotable_variable(name), name);
    }
    for path in ["../secrets/a.txt", "certs/3f2504e04f8911d39a0c0305e82c3301.pem", "/etc/hostname"] {
        assert_eq!(quotable_path(path), path);
    }
    for value in [
        "a8f5f167f44f4964e6c998dee827110c",
        "one\ntwo",
        "-----BEGIN PRIVATE KEY-----",
        "hunter2",
        "AKIAHUNTER2",
        "ghp_hunter2",
    ] {
        assert_eq!((quotable_variable(value), quotable_path(value)), ("(hidden)", "(hidden)"), "{value}");
    }
}

#[test]
fn a_message_does_not_quote_a_secret_of_its_file() {
    let redacted = RedactedText::new("client_secret: &a hunter2\n*a : 1\n", &fields());
    assert_eq!(redacted.message("unknown field `hunter2`"), "unknown field `(hidden)`");
    assert_eq!(redacted.message("unknown field `name`"), "unknown field `name`");
}
