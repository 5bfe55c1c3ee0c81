//! The syntax tree of an expression, with a bound on its depth.

use regex::Regex;

use super::error::CelError;
use super::function::{CelFold, CelFunction};
use super::operator::CelOperator;

/// The name of the value that an expression is about.
pub(crate) const OBJ: &str = "obj";

/// The deepest tree, as parsing and evaluation recurse.
pub(super) const MOST_DEPTH: usize = 50;

/// An expression with its offset.
#[derive(Debug)]
pub(crate) struct CelExpr {
    pub(crate) at: usize,
    pub(super) depth: usize,
    pub(crate) node: CelNode,
}

/// An expression without its offset. Filters have all nodes but the last three, and an expression of the whole language
/// all but `Has`, `Call`, `Matches` and `Fold`.
#[derive(Debug)]
pub(crate) enum CelNode {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(String),
    List(Vec<CelExpr>),
    Name(String),
    /// A field of a value.
    Field(Box<CelExpr>, String),
    /// Whether a value has a field.
    Has(Box<CelExpr>, String),
    Index(Box<CelExpr>, Box<CelExpr>),
    Not(Box<CelExpr>),
    Negate(Box<CelExpr>),
    /// `||` (`any`) or `&&` between all parts. A long list of alternatives is flat.
    Logic {
        any: bool,
        parts: Vec<CelExpr>,
    },
    Binary(CelOperator, Box<CelExpr>, Box<CelExpr>),
    /// Condition, and the values if it is true and false.
    Choice(Box<[CelExpr; 3]>),
    /// A function, with the receiver as the first argument.
    Call(CelFunction, Vec<CelExpr>),
    /// Whether a text matches a pattern.
    Matches(Box<CelExpr>, Box<Regex>),
    /// A macro over a list: its variable, and the one or two expressions for each item.
    Fold {
        fold: CelFold,
        list: Box<CelExpr>,
        variable: String,
        body: Vec<CelExpr>,
    },
    /// Any function or macro, with the receiver as the first argument.
    Foreign {
        name: String,
        has_receiver: bool,
        arguments: Vec<CelExpr>,
    },
    /// The keys and values of a map.
    Map(Vec<CelExpr>),
    /// A value of an unknown type, such as a message, with its parts.
    Opaque(Vec<CelExpr>),
}

impl CelNode {
    fn children(&self) -> Vec<&CelExpr> {
        match self {
            CelNode::Null
            | CelNode::Bool(_)
            | CelNode::Int(_)
            | CelNode::Double(_)
            | CelNode::Text(_)
            | CelNode::Name(_) => Vec::new(),
            CelNode::List(parts)
            | CelNode::Logic { parts, .. }
            | CelNode::Call(_, parts)
            | CelNode::Foreign { arguments: parts, .. }
            | CelNode::Map(parts)
            | CelNode::Opaque(parts) => parts.iter().collect(),
            CelNode::Field(of, _)
            | CelNode::Has(of, _)
            | CelNode::Not(of)
            | CelNode::Negate(of)
            | CelNode::Matches(of, _) => vec![of.as_ref()],
            CelNode::Index(left, right) | CelNode::Binary(_, left, right) => vec![left.as_ref(), right.as_ref()],
            CelNode::Choice(parts) => parts.iter().collect(),
            CelNode::Fold { list, body, .. } => body.iter().chain([list.as_ref()]).collect(),
        }
    }
}

/// The error for an expression that is too deep.
pub(super) fn too_deep(at: usize) -> CelError {
    let message = format!("the expression is nested more than {MOST_DEPTH} levels deep");
    CelError { is_too_deep: true, ..CelError::new(at, message) }
}

/// Makes an expression, unless it is too deep.
pub(super) fn build(at: usize, node: CelNode) -> Result<CelExpr, CelError> {
    let depth = 1 + node.children().iter().map(|child| child.depth).max().unwrap_or_default();
    bounded(CelExpr { at, depth, node })
}

/// Refuses an expression that is too deep.
pub(super) fn bounded(expr: CelExpr) -> Result<CelExpr, CelError> {
    if expr.depth > MOST_DEPTH { Err(too_deep(expr.at)) } else { Ok(expr) }
}
