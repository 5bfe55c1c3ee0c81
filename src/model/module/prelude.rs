//! Imports that nearly every module uses.

pub(super) use schemars::JsonSchema;
pub(super) use serde::{Deserialize, Deserializer, Serialize};
pub(super) use serde_json::{Value, json};

pub(super) use super::{Module, ModuleView, Toggle, module};
pub(super) use crate::model::{
    base_urls::{Ref, Site},
    diagnostics::{Check, Code, Fault, Faults, check},
    key::Key,
    schema::Constraint,
    traffic::{Stage, Step, StepEffect, TracedRequest},
};
