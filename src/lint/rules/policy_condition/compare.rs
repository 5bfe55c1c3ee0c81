//! Comparisons whose result is the same for every request.

use super::inferred_type::InferredType;
use crate::syntax::cel::{CelExpr, CelNode, CelOperator};

/// The first status code (RFC 9110, section 15).
pub(super) const LEAST_STATUS: i64 = 100;
/// The last one.
const MOST_STATUS: i64 = 599;

/// Whether a comparison of a status code with this number can be true.
pub(super) fn is_possible_status(operator: CelOperator, code: i64) -> bool {
    match operator {
        CelOperator::Equal => (LEAST_STATUS..=MOST_STATUS).contains(&code),
        CelOperator::Less => code > LEAST_STATUS,
        CelOperator::AtMost => code >= LEAST_STATUS,
        CelOperator::More => code < MOST_STATUS,
        CelOperator::AtLeast => code <= MOST_STATUS,
        _ => true,
    }
}

/// The operator with its operands exchanged.
pub(super) fn mirrored(operator: CelOperator) -> CelOperator {
    match operator {
        CelOperator::Less => CelOperator::More,
        CelOperator::AtMost => CelOperator::AtLeast,
        CelOperator::More => CelOperator::Less,
        CelOperator::AtLeast => CelOperator::AtMost,
        other => other,
    }
}

/// The type of a literal.
pub(super) fn literal_type(expr: &CelExpr) -> InferredType {
    match expr.node {
        CelNode::Bool(_) => InferredType::Bool,
        CelNode::Int(_) | CelNode::Double(_) => InferredType::Number,
        CelNode::Text(_) => InferredType::Text,
        _ => InferredType::Unknown,
    }
}

/// The result of comparing two literals of one type.
pub(super) fn literal_order(operator: CelOperator, left: &CelExpr, right: &CelExpr) -> Option<bool> {
    let order = match (&left.node, &right.node) {
        (CelNode::Int(left), CelNode::Int(right)) => left.cmp(right),
        (CelNode::Text(left), CelNode::Text(right)) => left.cmp(right),
        (CelNode::Bool(left), CelNode::Bool(right)) => left.cmp(right),
        _ => return None,
    };
    match operator {
        CelOperator::Equal => Some(order.is_eq()),
        CelOperator::Unequal => Some(order.is_ne()),
        CelOperator::Less => Some(order.is_lt()),
        CelOperator::AtMost => Some(order.is_le()),
        CelOperator::More => Some(order.is_gt()),
        CelOperator::AtLeast => Some(order.is_ge()),
        _ => None,
    }
}
