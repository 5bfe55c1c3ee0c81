//! The `response_headers` module: adds and removes response headers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Module;
use crate::model::{
    check,
    fault::{Check, Faults},
    key::Key,
    site::Site,
    traffic::{Stage, Step, StepEffect, TracedRequest, header_changes},
};

/// Adds headers to responses and removes headers from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResponseHeaders {
    /// Whether the module applies to traffic.
    pub enabled: bool,
    /// The headers to add to the response.
    #[schemars(extend("propertyNames" = check::header_name_schema(), "additionalProperties" = check::header_value_schema()))]
    pub add: BTreeMap<String, String>,
    /// The names of headers to remove from the response.
    #[schemars(extend("items" = check::header_name_schema()))]
    pub remove: Vec<String>,
}

impl Default for ResponseHeaders {
    fn default() -> Self {
        Self { enabled: true, add: BTreeMap::new(), remove: Vec::new() }
    }
}

impl Check for ResponseHeaders {
    fn check(&self, faults: &mut Faults) {
        check::headers(faults, &self.add, &self.remove);
    }
}

impl Module for ResponseHeaders {
    const SLOT: &'static str = "response_headers";
    type View = Self;

    fn view(&self, _host: &Key, _site: &Site) -> Self {
        self.clone()
    }

    fn enabled(&self) -> bool {
        self.enabled
    }

    fn steps(&self, _request: &TracedRequest) -> Vec<Step> {
        let note = header_changes(&self.add, &self.remove);
        vec![Step::new(Stage::ResponseChange, StepEffect::Passes, note)]
    }

    fn example() -> Value {
        json!({"add": {"X-Edge": "shop"}, "remove": ["Server"]})
    }
}
