//! CEL, the Common Expression Language (<https://github.com/google/cel-spec>).
//!
//! # The problem
//!
//! Policies have CEL expressions that the gateway evaluates, and lints should find mistakes in them. Filters of lists
//! are CEL expressions that a server evaluates itself, for anybody with an API key.
//!
//! # The idea
//!
//! Both share the tokens (`token.rs`), the check of the syntax (`grammar.rs`) and the tree (`node.rs`). [`parse_whole`]
//! accepts the whole language. A [`CelExpression`] accepts what filters support, is checked against the shape of `obj`
//! before it runs (`shape.rs`), and counts every step while it runs (`meter.rs`).
//!
//! The evaluation is not that of the crate `cel`, which parses all of CEL with positions and a recursion limit, but
//! evaluates without a limit on steps or memory and cannot be interrupted: every further `map(x, x + x)` doubles a text,
//! and nested `all` calls over the routes of an edge multiply. It also compiles a pattern again at each use.
//!
//! # An example
//!
//! `obj.hostports.exists(it, it.endsWith(':443'))` is a filter. `obj.hostprots` is an error with a suggestion before
//! anything is evaluated. A field that is null makes the condition false, not an error.
//!
//! # What it never does
//!
//! It never runs for long, whatever the expression is, and recurses only as deep as the tree may be. It knows no
//! resources.
//!
//! See D66.

mod evaluate;
mod function;
mod grammar;
mod literal;
mod meter;
mod node;
mod operator;
mod parser;
mod shape;
#[cfg(test)]
mod tests;
mod token;
mod value;

use std::collections::BTreeSet;

use serde_json::Value;

use function::{CelFold, CelFunction};
pub(crate) use grammar::check;
pub(crate) use meter::CelMeter;
pub(crate) use node::{CelExpr, CelNode};
pub(crate) use operator::CelOperator;
pub(crate) use parser::parse_whole;
pub(crate) use shape::CelShape;

/// The name of the value that an expression is about.
pub(crate) const OBJ: &str = "obj";

/// An error in an expression, and its position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CelError {
    /// The offset in the expression, in bytes.
    pub at: usize,
    /// One clause without a full stop.
    pub message: String,
    /// An unknown word and the known ones, to suggest the nearest.
    pub unknown: Option<(String, Vec<String>)>,
}

impl CelError {
    fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), unknown: None }
    }

    fn unknown<'a>(
        at: usize,
        message: impl Into<String>,
        word: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known = known.into_iter().map(str::to_owned).collect();
        Self { at, message: message.into(), unknown: Some((word.to_owned(), known)) }
    }

    /// The column in the expression, from 1.
    pub(crate) fn column(&self, expression: &str) -> usize {
        expression.char_indices().take_while(|(at, _)| *at < self.at).count() + 1
    }
}

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
