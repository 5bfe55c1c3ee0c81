//! Imports that nearly every kind uses.

pub(super) use schemars::JsonSchema;
pub(super) use serde::{Deserialize, Serialize};
pub(super) use serde_json::{Value, json};

pub(super) use super::Kind;
pub(super) use crate::{
    model::{
        base_urls::Ref,
        diagnostics::{Check, Code, Fault, Faults, check},
        names::names,
        resource::{BlankContext, KindInfo, Offers, Resource, view},
        secrets::{Reading, Text},
    },
    syntax::text::printable,
};
