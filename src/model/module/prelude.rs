//! Imports that nearly every module uses.

pub(super) use schemars::JsonSchema;
pub(super) use serde::{Deserialize, Deserializer, Serialize};
pub(super) use serde_json::{Value, json};

pub(super) use super::admission::{AccessChange, Admittance};
pub(super) use super::macros::module;
pub(super) use super::traits::{Module, ModuleView, Toggle};
pub(super) use crate::model::base_urls::{BaseUrls, Ref};
pub(super) use crate::model::diagnostics::{Check, Code, Fault, Faults, check};
pub(super) use crate::model::key::Key;
pub(super) use crate::model::schema::Constraint;
pub(super) use crate::model::traffic::{Stage, Step, StepEffect, StepOutcome, TracedRequest};
