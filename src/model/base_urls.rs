//! The URLs of the service.

use schemars::JsonSchema;
use serde::Serialize;

use super::id::Id;
use super::key::{Key, segment};

/// The service's URLs, and its certificates for identity providers.
pub struct BaseUrls {
    /// The base URL without a trailing slash, the prefix of every `uri` (D13).
    pub base_url: String,
    /// The base URL of SAML endpoints for identity providers (D18).
    pub saml_base_url: String,
    /// The PEM certificate that signs SAML requests of a route (D36).
    pub saml_certificate: Box<dyn Fn(&Id) -> String + Send + Sync>,
}

impl BaseUrls {
    /// The URI of a resource.
    pub fn uri(&self, key: &Key) -> String {
        format!("{}{}", self.base_url, key.path())
    }

    /// A Ref to an item of the collection `collection`, such as `backends` (D20).
    pub fn reference(&self, collection: &str, id: &str) -> Ref {
        Ref { id: id.to_owned(), uri: format!("{}/{collection}/{}", self.base_url, segment(id)) }
    }
}

/// A reference to a resource in a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Ref {
    /// Resource identifier.
    pub id: String,
    /// Address for locating the resource.
    pub uri: String,
}
