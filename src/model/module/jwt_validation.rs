//! The `jwt_validation` module: only requests with a valid JSON Web Token come through.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Module;
use crate::model::{
    code::Code,
    fault::{Check, Fault, Faults},
    key::Key,
    resource::ViewContext,
};

/// Which tokens are accepted, and where they are found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JwtValidation {
    /// True if the module is applied to traffic.
    pub enabled: bool,
    /// The issuers that are trusted.
    pub issuer: AllowList,
    /// The audiences that a token must be meant for.
    pub audience: AllowList,
    /// Where a request holds its tokens.
    pub http: TokenPlaces,
    /// How a token's signature is checked.
    pub jws: Signatures,
}

impl Default for JwtValidation {
    fn default() -> Self {
        Self {
            enabled: true,
            issuer: AllowList::default(),
            audience: AllowList::default(),
            http: TokenPlaces::default(),
            jws: Signatures::default(),
        }
    }
}

/// Values of which one must be met.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AllowList {
    /// The allowed values.
    pub allow_list: Vec<Allowed>,
}

/// One allowed value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Allowed {
    /// An issuer's URL, or an audience.
    pub value: String,
}

/// Where a request holds its tokens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TokenPlaces {
    /// The tokens.
    pub tokens: Vec<Token>,
}

/// One token of a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Token {
    /// The kind of token.
    pub r#type: Option<TokenType>,
    /// The part of the request that holds it.
    pub method: Option<TokenMethod>,
    /// The header or body field that holds it.
    pub name: String,
    /// What is stripped in front of it before it is parsed, such as `Bearer `.
    pub prefix: String,
}

/// The kinds of token.
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

/// The parts of a request that can hold a token.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenMethod {
    /// A header.
    Header,
    /// A field of the body.
    Body,
}

/// How a token's signature is checked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Signatures {
    /// The algorithms that are accepted, such as `RS256`.
    pub allowed_algorithms: Vec<String>,
    /// The keys that are trusted.
    pub keys: Keys,
}

/// The keys that are trusted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Keys {
    /// Where the keys come from.
    pub sources: KeySources,
}

/// Where keys come from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KeySources {
    /// URLs that serve signing keys in JWKS format.
    pub additional_jkus: Vec<String>,
}

impl Check for JwtValidation {
    fn check(&self, faults: &mut Faults) {
        faults.within("http", |faults| {
            faults.within("tokens", |faults| {
                faults.each(&self.http.tokens, |faults, token| {
                    if token.r#type.is_none() {
                        faults.within("type", |faults| {
                            faults.report(
                                Fault::new(Code::Required, "a token needs a `type`")
                                    .help("write `jwt`, `at+jwt` or `it+jwt`"),
                            )
                        });
                    }
                    if token.method.is_none() {
                        faults.within("method", |faults| {
                            faults.report(
                                Fault::new(Code::Required, "a token needs a `method`").help("write `header` or `body`"),
                            )
                        });
                    }
                });
            });
        });
    }
}

impl Module for JwtValidation {
    const SLOT: &'static str = "jwt_validation";
    type View = Self;

    fn view(&self, _host: &Key, _cx: &ViewContext<'_>) -> Self {
        self.clone()
    }
}
