//! Imports that nearly every kind uses.

pub(super) use schemars::JsonSchema;
pub(super) use serde::{Deserialize, Serialize};
pub(super) use serde_json::{Value, json};

pub(super) use super::Kind;
pub(super) use crate::{
    model::{
        base_urls::Ref,
        diagnostics::{Check, Code, Fault, Faults, check},
        endpoint_offers::Offers,
        kind_info::{BlankContext, KindInfo},
        names::names,
        resource::{Resource, view},
        secrets::{Reading, Text},
    },
    syntax::text::printable,
};
