//! The `policies` module: what is done with traffic that matches an expression.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value};

use super::Module;
use crate::model::{
    code::Code,
    fault::{Check, Fault, Faults},
    key::Key,
    resource::ViewContext,
};

/// The policies of an endpoint, for each direction in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Policies {
    /// True if the module is applied to traffic.
    pub enabled: bool,
    /// Policies for requests.
    pub inbound: Vec<EndpointPolicy>,
    /// Policies for responses.
    pub outbound: Vec<EndpointPolicy>,
}

impl Default for Policies {
    fn default() -> Self {
        Self { enabled: true, inbound: Vec::new(), outbound: Vec::new() }
    }
}

/// Actions for the traffic that matches all expressions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EndpointPolicy {
    /// Expressions that must all be true; none means always.
    pub expressions: Vec<String>,
    /// What is done.
    pub actions: Vec<EndpointAction>,
    /// A name for people.
    pub name: String,
}

/// One action of a policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EndpointAction {
    /// The action, such as `log` or `deny`.
    #[schemars(length(min = 1))]
    pub r#type: String,
    /// What the action needs; for `log` an object with `Metadata`, for `deny` null.
    #[serde(deserialize_with = "free_form")]
    pub config: Option<Map<String, Value>>,
}

/// The newtype name by which the decoder knows an object whose content is nobody's business but the action's.
pub const FREE_FORM: &str = "edgewright::FreeForm";

fn free_form<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Map<String, Value>>, D::Error> {
    struct Visitor;
    impl<'de> de::Visitor<'de> for Visitor {
        type Value = Option<Map<String, Value>>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
            Option::deserialize(deserializer)
        }
    }
    deserializer.deserialize_newtype_struct(FREE_FORM, Visitor)
}

impl Check for Policies {
    fn check(&self, faults: &mut Faults) {
        for (field, policies) in [("inbound", &self.inbound), ("outbound", &self.outbound)] {
            faults.within(field, |faults| {
                faults.each(policies, |faults, policy| {
                    faults.within("actions", |faults| {
                        faults.each(&policy.actions, |faults, action| {
                            if action.r#type.is_empty() {
                                faults.within("type", |faults| {
                                    faults.report(
                                        Fault::new(Code::Required, "an action needs a `type`")
                                            .help("known types are `log` and `deny`"),
                                    )
                                });
                            }
                        });
                    });
                });
            });
        }
    }
}

impl Module for Policies {
    const SLOT: &'static str = "policies";
    type View = Self;

    fn view(&self, _host: &Key, _cx: &ViewContext<'_>) -> Self {
        self.clone()
    }
}
