//! A filter: an expression that is checked once and evaluated for many values.

use std::collections::BTreeSet;

use serde_json::Value;

use super::error::CelError;
use super::meter::CelMeter;
use super::node::CelExpr;
use super::shape::{self, CelShape};
use super::{evaluate, parser};

/// A checked expression over `obj`.
#[derive(Debug)]
pub(crate) struct CelExpression {
    root: CelExpr,
    /// The fields of `obj` that it reads; `None` if it uses `obj` as a whole.
    fields: Option<BTreeSet<String>>,
}

impl CelExpression {
    /// Parses a condition and checks its names and types; `obj` is the shape of what it is about.
    pub(crate) fn parse(text: &str, obj: &CelShape) -> Result<Self, CelError> {
        let root = parser::parse(text)?;
        let fields = shape::check_condition(&root, obj)?;
        Ok(Self { root, fields })
    }

    /// Whether the result can depend on a field of `obj`.
    pub(crate) fn reads(&self, field: &str) -> bool {
        self.fields.as_ref().is_none_or(|fields| fields.contains(field))
    }

    /// Whether the condition holds for a value. It does not hold if a part has no value, such as a field of null.
    pub(crate) fn holds(&self, obj: &Value, meter: &CelMeter<'_>) -> Result<bool, CelError> {
        evaluate::holds(&self.root, obj, meter)
    }
}
