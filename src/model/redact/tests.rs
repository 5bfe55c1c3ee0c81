//! What is hidden of broken manifests, and what stays readable of whole ones.

use serde_json::json;

use super::*;

/// No `MARKER` may be seen in any of [`MISTAKES`].
const MARKER: &str = "hunter2";

fn fields() -> Fields {
    let secret = json!({"$ref": "#/$defs/Secret"});
    let public = [
        "apiVersion",
        "kind",
        "metadata",
        "name",
        "id",
        "spec",
        "routes",
        "scopes",
        "description",
        "match",
        "tokens",
        "token_file",
        "certificate_pem",
        "backend_id",
        "oauth",
        "issuer",
        "from_env",
        "from_file",
    ];
    let mut public: serde_json::Map<_, _> = public.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
    public.insert("login".into(), json!({"anyOf": [{"$ref": "#/$defs/App"}, {"type": "null"}]}));
    Fields::of(&json!({
        "properties": public,
        "$defs": {
            "App": {"properties": {"client_secret": secret}},
            "Hook": {"properties": {"secret": {"anyOf": [secret, {"type": "null"}]}}},
            "Certificate": {"properties": {"private_key_pem": secret}},
            // A rule names a field without its type.
            "Rule": {"if": {"properties": {"secret": {"not": {"enum": [""]}}}}},
        }
    }))
}

fn hidden(text: &str) -> String {
    let shown = Redacted::new(text, &fields()).text;
    assert_eq!(shown.len(), text.len(), "{text:?}");
    shown
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
        let shown = hidden(text);
        shown.contains(MARKER).then(|| format!("{mistake}: {shown:?}"))
    });
    let shown: Vec<String> = shown.collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
}

#[test]
fn what_is_public_stays_readable() {
    for text in [
        "apiVersion: edgewright/v1\nkind: ApiKey\nspec: {token_file: ../keys/ci.token}\n",
        "id: https_edge_2k9QpostgresPassThrough0001\nbackend_id: bkd_2f9XkQweb00000000000000001\n",
        "tokens: # where a token may stand\n  - name: access_token\n",
        "secret:\n  from_env: HOOK_SECRET\nname: a\n",
        "secret: {from_file: ../secrets/stripe-webhook-secret-v2.txt}\n# the next one\nname: a\n",
        "{\"client_secret\": {\"from_env\": \"NAME\"}, \"name\": \"a\"}",
        "certificate_pem: |\n  -----BEGIN CERTIFICATE-----\n  MIIBszCCAVmgAwIBAgIUQm9uam91ciBsZSBtb25kZSEgQ2EgdmE0\n  MIIB\n  -----END CERTIFICATE-----\nname: a\n",
        "# secrets are kept elsewhere, for the secret is not ours\nname: the-secret-door\n",
        "login: # ours\n  <<: *defaults\n",
        "login: &a\n  issuer: https://id.example.com:443/a@b\nname: a\n",
        "{login: null, name: a}\n",
        "# Bearer tokens are kept elsewhere; https://example.com/a@b\n",
        "match: shop.example.com/catalog\nscopes: [read:org, user:email]\n",
        "%YAML 1.2\n---\nlogin:\n  <<: *defaults\n  <<: {issuer: a}\nscopes: [email]\n",
        "name: secret\ndescription: client_secret\n",
    ] {
        assert_eq!(hidden(text), text);
    }
}

#[test]
fn the_key_and_what_is_around_the_value_stay_where_they_are() {
    for (text, expected) in [
        ("client_secret: hunter2\nscopes: [a]\n", "client_secret: *******\nscopes: [a]\n"),
        ("  secret: \"a b\" # c\r\n  x: 1", "  secret: ** ** * *\r\n  x: 1"),
        ("secret: |\n  one\n\n  twö\nnext: 1", "secret: *\n  ***\n\n  ****\nnext: 1"),
        ("{\"client_secret\": \"a,b\", \"x\": 1}", "{\"client_secret\": *****, \"x\": 1}"),
        ("a: {secret: s1, client_secret: s2}", "a: {secret: **, client_secret: **}"),
        ("secret: s\n---\nx: y", "secret: *\n---\nx: y"),
        (
            "{\"d\": \"the secret door\", \"secret\": \"hunter2\"}",
            "{\"d\": \"the secret door\", \"secret\": *********}",
        ),
        ("{secret: \"a\\\"b\", x: 1}", "{secret: ******, x: 1}"),
        ("{secret:\n  hunter2,\n  x: 1}", "{secret:\n  ********\n  ** **"),
        ("{\n  \"secret\": \"a\",\n  \"x\": {}\n}", "{\n  \"secret\": ****\n  \"x\": {}\n}"),
    ] {
        assert_eq!(hidden(text), expected);
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
    let redacted = Redacted::new("client_secret: &a hunter2\n*a : 1\n", &fields());
    assert_eq!(redacted.message("unknown field `hunter2`"), "unknown field `(hidden)`");
    assert_eq!(redacted.message("unknown field `name`"), "unknown field `name`");
}
