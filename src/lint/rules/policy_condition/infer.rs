//! Infers the types of policy expressions, and reports what is certainly wrong with them.
//!
//! Types and values are inferred from literals, standard functions and the documented variables. Everything else has an
//! unknown type, and nothing is said about it. A part with a fault is unknown, too, so that one cause is reported once.

use std::collections::BTreeSet;

use super::compare::{LEAST_STATUS, is_possible_status, literal_order, literal_type, mirrored};
use super::inferred_type::InferredType;
use super::names::{self, BINDERS};
use crate::lint::rules::shared::cidr_range::{cidr_fault, is_range};
use crate::lint::rules::shared::match_pattern::pattern_message;
use crate::syntax::cel::{CelExpr, CelNode, CelOperator};
use crate::syntax::text::printable;

/// The facts about a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inference {
    pub(super) r#type: InferredType,
    /// The value of a boolean that is the same for every request.
    pub(super) truth: Option<bool>,
}

impl Inference {
    const UNKNOWN: Self = Self::from_type(InferredType::Unknown);

    const fn from_type(r#type: InferredType) -> Self {
        Self { r#type, truth: None }
    }

    fn condition(truth: Option<bool>) -> Self {
        Self { r#type: InferredType::Bool, truth }
    }
}

/// Something that is wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConditionFault {
    pub(super) message: String,
    pub(super) help: Option<&'static str>,
}

/// The most faults of one expression.
const MOST_FAULTS: usize = 10;

const RANGE_HELP: &str = "Use a function for ranges, such as `inCidrRange(conn.ClientIP, '10.0.0.0/8')`, or the action \
                          `restrict-ips`.";

/// Walks over an expression.
#[derive(Debug, Default)]
pub(super) struct ConditionJudge {
    /// The variables of the macros around the current part.
    scope: Vec<String>,
    /// The variables that the expression uses.
    pub(super) variables: BTreeSet<String>,
    pub(super) faults: Vec<ConditionFault>,
}

impl ConditionJudge {
    fn report(&mut self, message: String) {
        self.report_with(message, None);
    }

    fn report_with(&mut self, message: String, help: Option<&'static str>) {
        if self.faults.len() < MOST_FAULTS && self.faults.iter().all(|fault| fault.message != message) {
            self.faults.push(ConditionFault { message, help });
        }
    }

    /// Judges an expression as a whole: one that is valid in itself can still be no condition.
    pub(super) fn condition(&mut self, root: &CelExpr) -> Inference {
        let whole = self.infer(root);
        if self.faults.is_empty() {
            if let Some(what) = whole.r#type.not_boolean() {
                self.report(format!("the expression is {what}, not a boolean"));
            } else if whole.truth == Some(false) {
                self.report("the expression is never true, so the policy never applies".to_owned());
            }
        }
        whole
    }

    fn infer(&mut self, expr: &CelExpr) -> Inference {
        match &expr.node {
            CelNode::Null => Inference::from_type(InferredType::Null),
            CelNode::Bool(value) => Inference::condition(Some(*value)),
            CelNode::Int(_) | CelNode::Double(_) => Inference::from_type(InferredType::Number),
            CelNode::Text(text) => {
                if let Some(message) = cidr_fault(text) {
                    self.report(message.to_owned());
                }
                Inference::from_type(InferredType::Text)
            }
            CelNode::Name(name) => {
                self.variable(name, names::variable_meant(name));
                Inference::UNKNOWN
            }
            CelNode::Field(of, field) => self.field(of, field),
            CelNode::List(items) => self.whole(items, InferredType::List),
            CelNode::Map(parts) => self.whole(parts, InferredType::Map),
            CelNode::Opaque(parts) => self.whole(parts, InferredType::Unknown),
            CelNode::Index(of, index) => {
                self.infer(of);
                self.infer(index);
                Inference::UNKNOWN
            }
            // Only filters have these nodes: here, each of them is a call.
            CelNode::Has(..) | CelNode::Call(..) | CelNode::Matches(..) | CelNode::Fold { .. } => Inference::UNKNOWN,
            CelNode::Not(of) => {
                let inner = self.infer(of);
                match inner.r#type.not_boolean() {
                    None => Inference::condition(inner.truth.map(|truth| !truth)),
                    Some(what) => self.refuse(format!("`!` applies to {what}, not a boolean")),
                }
            }
            CelNode::Negate(of) => match self.infer(of).r#type {
                InferredType::Number => Inference::from_type(InferredType::Number),
                _ => Inference::from_type(InferredType::Other),
            },
            CelNode::Logic { any, parts } => self.logic(*any, parts),
            CelNode::Binary(operator, left, right) => self.binary(*operator, left, right),
            CelNode::Choice(parts) => self.choice(parts),
            CelNode::Foreign { name, has_receiver, arguments } => self.call(name, *has_receiver, arguments),
        }
    }

    fn refuse(&mut self, message: String) -> Inference {
        self.report(message);
        Inference::UNKNOWN
    }

    /// Judges the parts of a value, whose type does not depend on them.
    fn whole(&mut self, parts: &[CelExpr], r#type: InferredType) -> Inference {
        for part in parts {
            self.infer(part);
        }
        Inference::from_type(r#type)
    }

    fn logic(&mut self, any: bool, parts: &[CelExpr]) -> Inference {
        let mut truths = Vec::with_capacity(parts.len());
        for part in parts {
            let inner = self.infer(part);
            if let Some(what) = inner.r#type.not_boolean() {
                let operator = if any { "||" } else { "&&" };
                self.report(format!("an operand of `{operator}` is {what}, not a boolean"));
                truths.push(None);
            } else {
                truths.push(inner.truth);
            }
        }
        // `true || x` is true and `false && x` is false, also if `x` has no value.
        let truth = if truths.contains(&Some(any)) {
            Some(any)
        } else {
            truths.iter().all(|truth| *truth == Some(!any)).then_some(!any)
        };
        Inference::condition(truth)
    }

    fn choice(&mut self, parts: &[CelExpr; 3]) -> Inference {
        let [condition, yes, no] = parts;
        let condition = self.infer(condition);
        let (yes, no) = (self.infer(yes), self.infer(no));
        if let Some(what) = condition.r#type.not_boolean() {
            return self.refuse(format!("the condition of `?` is {what}, not a boolean"));
        }
        let r#type = if yes.r#type == no.r#type {
            yes.r#type
        } else if yes.r#type.not_boolean().and(no.r#type.not_boolean()).is_some() {
            InferredType::Other
        } else {
            InferredType::Unknown
        };
        let truth = match condition.truth {
            Some(true) => yes.truth,
            Some(false) => no.truth,
            None => yes.truth.filter(|_| yes.truth == no.truth),
        };
        Inference { r#type, truth }
    }

    fn binary(&mut self, operator: CelOperator, left: &CelExpr, right: &CelExpr) -> Inference {
        let (one, other) = (self.infer(left), self.infer(right));
        match operator {
            CelOperator::In => self.membership(one, left, other, right),
            CelOperator::Equal
            | CelOperator::Unequal
            | CelOperator::Less
            | CelOperator::AtMost
            | CelOperator::More
            | CelOperator::AtLeast => self.comparison(operator, (one, left), (other, right)),
            _ => Inference::from_type(match (operator, one.r#type, other.r#type) {
                (_, InferredType::Number, InferredType::Number) => InferredType::Number,
                (CelOperator::Add, InferredType::Text, InferredType::Text) => InferredType::Text,
                _ => InferredType::Other,
            }),
        }
    }

    fn comparison(
        &mut self,
        operator: CelOperator,
        (one, left): (Inference, &CelExpr),
        (other, right): (Inference, &CelExpr),
    ) -> Inference {
        if one.r#type.differs(other.r#type) {
            let (one, other) = (one.r#type.describe(), other.r#type.describe());
            return self.refuse(format!("`{}` compares {one} with {other}", operator.symbol()));
        }
        for (value, literal, operator) in [(left, right, operator), (right, left, mirrored(operator))] {
            match (&literal.node, self.path(value).as_deref()) {
                (CelNode::Int(code), Some("res.StatusCode")) if !is_possible_status(operator, *code) => {
                    let comparison = format!("res.StatusCode {} {code}", operator.symbol());
                    let bound = if *code <= LEAST_STATUS { "start at 100" } else { "end at 599" };
                    return self.refuse(format!("`{comparison}` is never true, because status codes {bound}"));
                }
                (CelNode::Text(text), Some("conn.ClientIP")) if is_range(text) => return self.refuse_range(),
                _ => {}
            }
        }
        Inference::condition(literal_order(operator, left, right))
    }

    fn refuse_range(&mut self) -> Inference {
        let message = "`conn.ClientIP` is an address, so it never equals a CIDR range";
        self.report_with(message.to_owned(), Some(RANGE_HELP));
        Inference::UNKNOWN
    }

    fn membership(&mut self, one: Inference, left: &CelExpr, other: Inference, right: &CelExpr) -> Inference {
        if matches!(other.r#type, InferredType::Bool | InferredType::Number | InferredType::Text) {
            return self.refuse(format!("`in` requires a list or a map on the right, not {}", other.r#type.describe()));
        }
        let CelNode::List(items) = &right.node else { return Inference::from_type(InferredType::Bool) };
        let Some(first) = items.first() else { return Inference::condition(Some(false)) };
        if items.iter().all(|item| literal_type(item).differs(one.r#type)) {
            let (one, item) = (one.r#type.describe(), literal_type(first).describe());
            return self.refuse(format!("`in` compares {one} with {item}"));
        }
        let path = self.path(left);
        let is_impossible =
            |item: &CelExpr| matches!(item.node, CelNode::Int(code) if !is_possible_status(CelOperator::Equal, code));
        if path.as_deref() == Some("res.StatusCode") && items.iter().all(is_impossible) {
            return self
                .refuse("`res.StatusCode` is never in the list, because status codes are from 100 to 599".to_owned());
        }
        let has_range = || items.iter().any(|item| matches!(&item.node, CelNode::Text(text) if is_range(text)));
        if path.as_deref() == Some("conn.ClientIP") && has_range() {
            return self.refuse_range();
        }
        Inference::from_type(InferredType::Bool)
    }

    fn call(&mut self, name: &str, has_receiver: bool, arguments: &[CelExpr]) -> Inference {
        if let Some(known) = names::function_meant(name) {
            self.report(format!("unknown function `{}`; did you mean `{known}`?", printable(name)));
        }
        let mut rest = arguments.iter();
        let mut receiver = Inference::UNKNOWN;
        if has_receiver && let Some(first) = rest.next() {
            receiver = match &first.node {
                CelNode::Name(name) => {
                    self.variable(name, names::receiver_meant(name));
                    Inference::UNKNOWN
                }
                _ => self.infer(first),
            };
        }
        let outer = self.scope.len();
        let mut values = rest.as_slice();
        if has_receiver && BINDERS.contains(&name) {
            // All names before the last argument.
            while let [CelExpr { node: CelNode::Name(variable), .. }, next @ ..] = values
                && !next.is_empty()
            {
                self.scope.push(variable.clone());
                values = next;
            }
        }
        for value in values {
            self.infer(value);
        }
        self.scope.truncate(outer);
        if name == "matches"
            && let Some(CelNode::Text(pattern)) = arguments.last().map(|last| &last.node)
            && let Some(message) = pattern_message(pattern)
        {
            self.report(message);
        }
        let of_text = matches!(name, "contains" | "endsWith" | "matches" | "startsWith");
        if of_text && matches!(receiver.r#type, InferredType::Bool | InferredType::Number) {
            return self.refuse(format!("`{name}` requires a string, not {}", receiver.r#type.describe()));
        }
        Inference::from_type(match (name, has_receiver) {
            ("size", _) | ("double" | "int" | "uint", false) => InferredType::Number,
            ("string", false) => InferredType::Text,
            ("bytes" | "duration" | "timestamp" | "type", false) => InferredType::Other,
            ("bool" | "has", false) | ("all" | "exists" | "existsOne" | "exists_one", true) => InferredType::Bool,
            _ if of_text => InferredType::Bool,
            _ => InferredType::Unknown,
        })
    }

    /// Notes a variable. `meant` is the one that it probably means, if it is misspelt.
    fn variable(&mut self, name: &str, meant: Option<&'static str>) {
        if self.scope.iter().any(|own| own == name) {
            return;
        }
        if let Some(known) = meant {
            self.report(format!("unknown variable `{}`; did you mean `{known}`?", printable(name)));
        }
        self.variables.insert(name.to_owned());
    }

    fn field(&mut self, of: &CelExpr, field: &str) -> Inference {
        self.infer(of);
        let Some(parent) = self.path(of) else { return Inference::UNKNOWN };
        if let Some(r#type) = names::field_type(&parent, field) {
            return Inference::from_type(r#type);
        }
        match names::field_meant(&parent, field) {
            Some(known) => {
                let field = printable(field);
                self.refuse(format!("unknown variable `{parent}.{field}`; did you mean `{parent}.{known}`?"))
            }
            None => Inference::UNKNOWN,
        }
    }

    /// The path of a variable, such as `conn.Geo.CountryCode`.
    fn path(&self, expr: &CelExpr) -> Option<String> {
        match &expr.node {
            CelNode::Name(name) if !self.scope.contains(name) => Some(name.clone()),
            CelNode::Field(of, field) => self.path(of).map(|of| format!("{of}.{field}")),
            _ => None,
        }
    }
}
