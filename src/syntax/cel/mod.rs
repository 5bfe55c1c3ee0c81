//! CEL, the Common Expression Language (<https://github.com/google/cel-spec>).
//!
//! # The problem
//!
//! Policies have CEL expressions that the gateway evaluates, and lints should find mistakes in them. Filters of lists
//! are CEL expressions that a server evaluates itself, for anybody with an API key.
//!
//! # The idea
//!
//! Both share the tokens (`token.rs`), the parser (`parser.rs`) and the tree (`node.rs`). [`parse_whole`] accepts the whole
//! language. A [`CelExpression`] accepts what filters support, is checked against the shape of `obj`
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

mod error;
mod evaluate;
mod expression;
mod function;
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

pub(crate) use error::CelError;
pub(crate) use expression::CelExpression;
pub(crate) use meter::CelMeter;
pub(crate) use node::{CelExpr, CelNode, OBJ};
pub(crate) use operator::CelOperator;
pub(crate) use parser::{check, parse_whole};
pub(crate) use shape::CelShape;
