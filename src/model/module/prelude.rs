//! Imports that nearly every module uses.

pub(super) use schemars::JsonSchema;
pub(super) use serde::{Deserialize, Deserializer, Serialize};
pub(super) use serde_json::{Value, json};

pub(super) use super::{
    macros::module,
    traits::{Module, ModuleView, Toggle},
};
pub(super) use crate::model::{
    base_urls::{BaseUrls, Ref},
    diagnostics::{Check, Code, Fault, Faults, check},
    key::Key,
    schema::Constraint,
    traffic::{Stage, Step, StepEffect, TracedRequest},
};
