//! Imports that nearly every kind uses.

pub(super) use schemars::JsonSchema;
pub(super) use serde::{Deserialize, Serialize};
pub(super) use serde_json::{Value, json};

pub(super) use super::Kind;
pub(super) use crate::model::base_urls::Ref;
pub(super) use crate::model::diagnostics::{Check, Code, Fault, Faults, check};
pub(super) use crate::model::names::names;
pub(super) use crate::model::resource::endpoint_offers::Offers;
pub(super) use crate::model::resource::kind_info::{BlankContext, KindInfo};
pub(super) use crate::model::resource::{Resource, view};
pub(super) use crate::model::secrets::{Reading, Text};
pub(super) use crate::syntax::text::printable;
