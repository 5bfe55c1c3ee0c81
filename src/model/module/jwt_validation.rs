//! The `jwt_validation` module: admits only requests with a valid JSON Web Token.

use super::prelude::*;

module! {
    /// Admits only requests with a valid JSON Web Token.
    pub struct JwtValidation {
        /// The trusted issuers.
        pub issuer: AllowList,
        /// The allowed audiences.
        pub audience: AllowList,
        /// Where requests carry tokens.
        pub http: TokenPlaces,
        /// Signature verification.
        pub jws: Signatures,
    }
}

/// A list of allowed values; one must match.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
// Python clients have a local variable per field and for the value itself, so the names must differ.
#[schemars(rename = "AllowedValues")]
pub struct AllowList {
    /// The allowed values.
    pub allow_list: Vec<AllowedValue>,
}

/// An allowed value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AllowedValue {
    /// An issuer URL or an audience.
    #[schemars(length(min = 1))]
    pub value: String,
}

/// Where requests carry tokens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TokenPlaces {
    /// The tokens.
    pub tokens: Vec<Token>,
}

/// A token in a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Token {
    /// The token type.
    pub r#type: Option<TokenType>,
    /// The part of the request that contains the token.
    pub method: Option<TokenMethod>,
    /// The name of the header or body field.
    pub name: String,
    /// A prefix to strip before parsing the token, such as `Bearer `.
    pub prefix: String,
}

/// A token type.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum TokenType {
    /// A plain JWT.
    #[serde(rename = "jwt")]
    Jwt,
    /// An access token.
    #[serde(rename = "at+jwt")]
    Access,
    /// An identity token.
    #[serde(rename = "it+jwt")]
    Identity,
}

/// A part of a request that can contain a token.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenMethod {
    /// A header.
    Header,
    /// A body field.
    Body,
}

/// Signature verification.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Signatures {
    /// The allowed signature algorithms, such as `RS256`.
    pub allowed_algorithms: Vec<String>,
    /// The trusted keys.
    pub keys: Keys,
}

/// The trusted keys.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Keys {
    /// The sources of the keys.
    pub sources: KeySources,
}

/// Sources of keys.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KeySources {
    /// URLs that serve signing keys in JWKS format.
    pub additional_jkus: Vec<String>,
}

impl Check for JwtValidation {
    fn check(&self, faults: &mut Faults) {
        for (field, list, sample) in
            [("issuer", &self.issuer, "https://id.example.com"), ("audience", &self.audience, "shop-web")]
        {
            faults.within(field, |faults| check_allow_list(faults, list, sample));
        }
        faults.within("http", |faults| {
            faults.each_in("tokens", &self.http.tokens, |faults, token| {
                if token.r#type.is_none() {
                    faults.report(Fault::required("type").help("set `jwt`, `at+jwt` or `it+jwt`"));
                }
                if token.method.is_none() {
                    faults.report(Fault::required("method").help("set `header` or `body`"));
                }
            });
        });
    }
}

/// Requires a value in each entry: an empty one matches no token.
fn check_allow_list(faults: &mut Faults, list: &AllowList, sample: &str) {
    faults.each_in("allow_list", &list.allow_list, |faults, allowed| {
        if allowed.value.is_empty() {
            let help = format!("set a value, such as `{sample}`, or remove the entry");
            faults.report(Fault::required("value").help(help));
        }
    });
}

impl JwtValidation {
    /// Checks whether a header contains a token. A trace has no bodies, and does not validate tokens.
    fn find_token(&self, request: &TracedRequest) -> (StepEffect, String) {
        let tokens = &self.http.tokens;
        let in_headers = || tokens.iter().filter(|token| token.method == Some(TokenMethod::Header));
        let held = in_headers().find(|token| {
            let value = request.header(&token.name).and_then(|value| value.strip_prefix(token.prefix.as_str()));
            value.is_some_and(|value| !value.trim().is_empty())
        });
        if let Some(token) = held {
            return (StepEffect::Depends, format!("the token in the header {} must be valid", token.name));
        }
        let names = |method: TokenMethod| {
            let names = tokens.iter().filter(|token| token.method == Some(method)).map(|token| token.name.clone());
            names.collect::<Vec<_>>().join(", ")
        };
        let (headers, fields) = (names(TokenMethod::Header), names(TokenMethod::Body));
        match (headers.is_empty(), fields.is_empty()) {
            (true, true) => (StepEffect::Depends, "requires a valid token".into()),
            (false, true) => (StepEffect::Refused, format!("no token in the header {headers}")),
            (true, false) => (StepEffect::Depends, format!("requires a valid token in the body field {fields}")),
            (false, false) => (
                StepEffect::Depends,
                format!("no token in the header {headers}; requires one in the body field {fields}"),
            ),
        }
    }
}

impl Module for JwtValidation {
    const SLOT: &'static str = "jwt_validation";
    type View = Self;

    fn access_lists(&self) -> Vec<(String, usize)> {
        vec![
            ("issuer.allow_list".into(), self.issuer.allow_list.len()),
            ("audience.allow_list".into(), self.audience.allow_list.len()),
        ]
    }

    fn restricts_access(&self) -> bool {
        true
    }

    fn access_change(&self, former: &Self) -> AccessChange {
        let (was, is) = (&former.jws, &self.jws);
        let (keys, present) = (&was.keys.sources.additional_jkus, &is.keys.sources.additional_jkus);
        AccessChange::of_list(&former.issuer.allow_list, &self.issuer.allow_list)
            .and(AccessChange::of_list(&former.audience.allow_list, &self.audience.allow_list))
            .and(AccessChange::of_list(&was.allowed_algorithms, &is.allowed_algorithms))
            .and(AccessChange::of_list(keys, present))
            .and(AccessChange::of_value(&former.http, &self.http))
    }

    fn steps(&self, request: &TracedRequest) -> Vec<Step> {
        let (effect, note) = self.find_token(request);
        vec![Step::new(Stage::Authentication, effect, note)]
    }

    fn example() -> Value {
        json!({
            "issuer": {"allow_list": [{"value": "https://login.example.com"}]},
            "audience": {"allow_list": [{"value": "shop"}]},
            "http": {"tokens": [{"type": "jwt", "method": "header", "name": "Authorization", "prefix": "Bearer "}]},
            "jws": {
                "allowed_algorithms": ["RS256"],
                "keys": {"sources": {"additional_jkus": ["https://login.example.com/jwks.json"]}},
            },
        })
    }

    fn constraints() -> Vec<Constraint> {
        vec![Constraint::required("Token", &["type", "method"]), Constraint::required("AllowedValue", &["value"])]
    }
}
