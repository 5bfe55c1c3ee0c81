//! Evaluation. Recursion is bounded by the depth of the tree, and everything else by the meter.

use std::{borrow::Cow, cmp::Ordering, rc::Rc};

use serde_json::Value;

use super::error::{CelError, CelFailure};
use super::function::{CelFold, CelFunction};
use super::meter::CelMeter;
use super::node::{CelExpr, CelNode, OBJ};
use super::operator::CelOperator;
use super::value::{CelValue, duration, timestamp};

/// The longest text for a pattern, as one match cannot be interrupted.
const MOST_MATCHED_BYTES: usize = 64 << 10;
/// The steps that matching takes for each byte of the text.
const STEPS_PER_MATCHED_BYTE: u64 = 4;

/// Whether a condition holds for `obj`.
pub(super) fn holds(root: &CelExpr, obj: &Value, meter: &CelMeter<'_>) -> Result<bool, CelError> {
    let mut evaluation = Evaluation { obj, variables: Vec::new(), meter };
    match evaluation.condition(root) {
        Ok(holds) => Ok(holds),
        Err(CelFailure::NoValue) => Ok(false),
        Err(CelFailure::Mismatch(error)) => Err(error),
        Err(CelFailure::Exhausted) => Err(CelError::exhausted()),
    }
}

type CelResult<T> = Result<T, CelFailure>;

fn mismatch<T>(at: usize, message: String) -> CelResult<T> {
    Err(CelFailure::Mismatch(CelError::new(at, message)))
}

fn misapplied<T>(at: usize, operator: CelOperator, left: &CelValue<'_>, right: &CelValue<'_>) -> CelResult<T> {
    let (left, right) = (left.describe(), right.describe());
    mismatch(at, format!("`{}` does not apply to {left} and {right}", operator.symbol()))
}

struct Evaluation<'v, 'm> {
    obj: &'v Value,
    variables: Vec<(&'v str, CelValue<'v>)>,
    meter: &'m CelMeter<'m>,
}

impl<'v> Evaluation<'v, '_> {
    /// The value of an expression. The function is long because it has one arm for each node, and nothing else.
    fn value(&mut self, expr: &'v CelExpr) -> CelResult<CelValue<'v>> {
        self.meter.take(1)?;
        match &expr.node {
            CelNode::Null => Ok(CelValue::Null),
            CelNode::Bool(value) => Ok(CelValue::Bool(*value)),
            CelNode::Int(value) => Ok(CelValue::Int(*value)),
            CelNode::Double(value) => Ok(CelValue::Double(*value)),
            CelNode::Text(text) => Ok(CelValue::Text(Cow::Borrowed(text))),
            CelNode::List(items) => Ok(CelValue::List(Rc::new(self.values(items)?))),
            CelNode::Name(name) => self.name(name),
            CelNode::Field(of, field) => self.value(of).and_then(|of| self.field(expr.at, &of, field)),
            CelNode::Has(of, field) => match self.value(of).and_then(|of| self.field(expr.at, &of, field)) {
                Ok(value) => Ok(CelValue::Bool(!matches!(value, CelValue::Null))),
                Err(CelFailure::NoValue) => Ok(CelValue::Bool(false)),
                Err(error) => Err(error),
            },
            CelNode::Index(of, index) => {
                let (of, at) = (self.value(of)?, self.value(index)?);
                self.index(index.at, &of, &at)
            }
            CelNode::Not(of) => self.condition(of).map(|holds| CelValue::Bool(!holds)),
            CelNode::Negate(of) => match self.value(of)? {
                CelValue::Int(value) => value.checked_neg().map(CelValue::Int).ok_or(CelFailure::NoValue),
                CelValue::Double(value) => Ok(CelValue::Double(-value)),
                CelValue::Span(span) => span.checked_neg().map(CelValue::Span).ok_or(CelFailure::NoValue),
                CelValue::Null => Err(CelFailure::NoValue),
                other => mismatch(expr.at, format!("`-` does not apply to {}", other.describe())),
            },
            CelNode::Logic { any, parts } => self.logic(*any, parts).map(CelValue::Bool),
            CelNode::Binary(operator, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.binary(expr.at, *operator, &left, &right)
            }
            CelNode::Choice(parts) => {
                let [condition, yes, no] = &**parts;
                let chosen = if self.condition(condition)? { yes } else { no };
                self.value(chosen)
            }
            CelNode::Call(function, arguments) => {
                let values = self.values(arguments)?;
                self.call(expr.at, *function, &values)
            }
            CelNode::Matches(text, pattern) => match self.value(text)? {
                CelValue::Text(text) if text.len() > MOST_MATCHED_BYTES => {
                    let most = MOST_MATCHED_BYTES >> 10;
                    mismatch(expr.at, format!("`matches` does not apply to a text of more than {most} KiB"))
                }
                CelValue::Text(text) => {
                    self.meter.take(1 + STEPS_PER_MATCHED_BYTE * text.len() as u64)?;
                    Ok(CelValue::Bool(pattern.is_match(&text)))
                }
                CelValue::Null => Err(CelFailure::NoValue),
                other => mismatch(expr.at, format!("`matches` does not apply to {}", other.describe())),
            },
            CelNode::Fold { fold, list, variable, body } => self.fold(*fold, list, variable, body),
            CelNode::Foreign { .. } | CelNode::Map(_) | CelNode::Opaque(_) => {
                mismatch(expr.at, "not supported in a filter".to_owned())
            }
        }
    }

    fn values(&mut self, parts: &'v [CelExpr]) -> CelResult<Vec<CelValue<'v>>> {
        parts.iter().map(|part| self.value(part)).collect()
    }

    fn condition(&mut self, expr: &'v CelExpr) -> CelResult<bool> {
        match self.value(expr)? {
            CelValue::Bool(holds) => Ok(holds),
            CelValue::Null => Err(CelFailure::NoValue),
            other => mismatch(expr.at, format!("expected a boolean, found {}", other.describe())),
        }
    }

    fn name(&self, name: &str) -> CelResult<CelValue<'v>> {
        match self.variables.iter().rev().find(|(known, _)| *known == name) {
            Some((_, value)) => {
                self.meter.take(value.weight())?;
                Ok(value.clone())
            }
            None if name == OBJ => Ok(CelValue::from_json(self.obj)),
            // The check of names lets no other name pass.
            None => Err(CelFailure::NoValue),
        }
    }

    fn field(&self, at: usize, of: &CelValue<'v>, field: &str) -> CelResult<CelValue<'v>> {
        match of {
            CelValue::Fields(fields) => fields.get(field).map(CelValue::from_json).ok_or(CelFailure::NoValue),
            CelValue::Null => Err(CelFailure::NoValue),
            other => mismatch(at, format!("{} has no fields", other.describe())),
        }
    }

    fn index(&self, at: usize, of: &CelValue<'v>, index: &CelValue<'v>) -> CelResult<CelValue<'v>> {
        match (of, index) {
            (CelValue::Fields(_), CelValue::Text(field)) => self.field(at, of, field),
            (CelValue::Items(items), CelValue::Int(index)) => {
                let item = usize::try_from(*index).ok().and_then(|index| items.get(index));
                item.map(CelValue::from_json).ok_or(CelFailure::NoValue)
            }
            (CelValue::List(items), CelValue::Int(index)) => {
                let item = usize::try_from(*index).ok().and_then(|index| items.get(index));
                item.cloned().ok_or(CelFailure::NoValue)
            }
            (CelValue::Null, _) | (_, CelValue::Null) => Err(CelFailure::NoValue),
            _ => mismatch(at, format!("{} has no index that is {}", of.describe(), index.describe())),
        }
    }

    /// `||` or `&&`: one part can decide, whatever comes of the others.
    fn logic(&mut self, any: bool, parts: &'v [CelExpr]) -> CelResult<bool> {
        let mut failure = None;
        for part in parts {
            match self.condition(part) {
                Ok(holds) if holds == any => return Ok(any),
                Ok(_) => {}
                Err(CelFailure::Exhausted) => return Err(CelFailure::Exhausted),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(!any), Err)
    }

    fn fold(
        &mut self,
        fold: CelFold,
        list: &'v CelExpr,
        variable: &'v str,
        body: &'v [CelExpr],
    ) -> CelResult<CelValue<'v>> {
        let value = self.value(list)?;
        self.meter.take(value.weight())?;
        let Some(items) = value.items() else {
            return match value {
                CelValue::Null => Err(CelFailure::NoValue),
                other => mismatch(list.at, format!("expected a list, found {}", other.describe())),
            };
        };
        let (mut found, mut count, mut failure) = (Vec::new(), 0usize, None);
        let total = items.len();
        for item in items {
            self.variables.push((variable, item.clone()));
            let outcome = self.body(fold, body);
            self.variables.pop();
            match (fold, outcome) {
                (_, Err(CelFailure::Exhausted)) => return Err(CelFailure::Exhausted),
                // As with `||` and `&&`, another item can decide.
                (CelFold::All | CelFold::Exists, Err(error)) => failure = failure.or(Some(error)),
                (_, Err(error)) => return Err(error),
                (CelFold::Exists, Ok(Some(_))) => return Ok(CelValue::Bool(true)),
                (CelFold::All, Ok(None)) => return Ok(CelValue::Bool(false)),
                (CelFold::Filter, Ok(Some(_))) => found.push(item),
                (CelFold::Map, Ok(Some(mapped))) => found.push(mapped),
                (_, Ok(Some(_))) => count += 1,
                (_, Ok(None)) => {}
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        Ok(match fold {
            CelFold::All => CelValue::Bool(count == total),
            CelFold::Exists => CelValue::Bool(false),
            CelFold::ExistsOne => CelValue::Bool(count == 1),
            CelFold::Filter | CelFold::Map => CelValue::List(Rc::new(found)),
        })
    }

    /// The value for one item; `None` if the condition does not hold.
    fn body(&mut self, fold: CelFold, body: &'v [CelExpr]) -> CelResult<Option<CelValue<'v>>> {
        let Some((last, conditions)) = body.split_last() else { return Ok(None) };
        for condition in conditions {
            if !self.condition(condition)? {
                return Ok(None);
            }
        }
        if fold == CelFold::Map {
            return self.value(last).map(Some);
        }
        Ok(self.condition(last)?.then_some(CelValue::Bool(true)))
    }

    fn call(&self, at: usize, function: CelFunction, values: &[CelValue<'v>]) -> CelResult<CelValue<'v>> {
        for value in values {
            self.meter.take(value.weight())?;
        }
        if values.iter().any(|value| matches!(value, CelValue::Null)) {
            return Err(CelFailure::NoValue);
        }
        let int = |number: usize| i64::try_from(number).map(CelValue::Int).map_err(|_| CelFailure::NoValue);
        let some = |value: Option<CelValue<'v>>| value.ok_or(CelFailure::NoValue);
        let truth = |holds: bool| Ok(CelValue::Bool(holds));
        let text = |text: String| Ok(CelValue::Text(Cow::Owned(text)));
        match (function, values) {
            (CelFunction::Size, [CelValue::Text(text)]) => int(text.chars().count()),
            (CelFunction::Size, [CelValue::List(items)]) => int(items.len()),
            (CelFunction::Size, [CelValue::Items(items)]) => int(items.len()),
            (CelFunction::Size, [CelValue::Fields(fields)]) => int(fields.len()),
            (CelFunction::StartsWith, [CelValue::Text(whole), CelValue::Text(part)]) => {
                truth(whole.starts_with(&**part))
            }
            (CelFunction::EndsWith, [CelValue::Text(whole), CelValue::Text(part)]) => truth(whole.ends_with(&**part)),
            (CelFunction::Contains, [CelValue::Text(whole), CelValue::Text(part)]) => truth(whole.contains(&**part)),
            (CelFunction::LowerAscii, [CelValue::Text(whole)]) => text(whole.to_ascii_lowercase()),
            (CelFunction::UpperAscii, [CelValue::Text(whole)]) => text(whole.to_ascii_uppercase()),
            (CelFunction::Timestamp, [CelValue::Text(text)]) => some(timestamp(text).map(CelValue::Time)),
            (CelFunction::Timestamp, [CelValue::Time(time)]) => Ok(CelValue::Time(*time)),
            (CelFunction::Duration, [CelValue::Text(text)]) => some(duration(text).map(CelValue::Span)),
            (CelFunction::Duration, [CelValue::Span(span)]) => Ok(CelValue::Span(*span)),
            (CelFunction::String, [value]) => match value {
                CelValue::Text(_) => Ok(value.clone()),
                CelValue::Bool(value) => text(value.to_string()),
                CelValue::Int(value) => text(value.to_string()),
                CelValue::Double(value) => text(value.to_string()),
                CelValue::Time(time) => text(time.to_string()),
                CelValue::Span(span) => text(format!("{}s", span.as_secs_f64())),
                other => mismatch(at, format!("`string` does not apply to {}", other.describe())),
            },
            (CelFunction::Int, [CelValue::Int(value)]) => Ok(CelValue::Int(*value)),
            (CelFunction::Int, [CelValue::Double(value)]) => {
                // 2^63 itself is out of range, and is the nearest double of the largest integer.
                let fits = *value > i64::MIN as f64 && *value < i64::MAX as f64;
                some(fits.then_some(CelValue::Int(*value as i64)))
            }
            (CelFunction::Int, [CelValue::Text(text)]) => some(text.parse().ok().map(CelValue::Int)),
            (CelFunction::Int, [CelValue::Time(time)]) => Ok(CelValue::Int(time.as_second())),
            (CelFunction::Double, [CelValue::Double(value)]) => Ok(CelValue::Double(*value)),
            (CelFunction::Double, [CelValue::Int(value)]) => Ok(CelValue::Double(*value as f64)),
            (CelFunction::Double, [CelValue::Text(text)]) => some(text.parse().ok().map(CelValue::Double)),
            (_, [first, ..]) => {
                let other = values.iter().find(|value| !matches!(value, CelValue::Text(_))).unwrap_or(first);
                mismatch(at, format!("`{}` does not apply to {}", function.name(), other.describe()))
            }
            (_, []) => Err(CelFailure::NoValue),
        }
    }

    fn binary(
        &self,
        at: usize,
        operator: CelOperator,
        left: &CelValue<'v>,
        right: &CelValue<'v>,
    ) -> CelResult<CelValue<'v>> {
        self.meter.take(left.weight() + right.weight())?;
        let ordered = |holds: fn(Ordering) -> bool| match left.order(right) {
            Some(order) => Ok(CelValue::Bool(holds(order))),
            // NaN, null, or a text that is no timestamp.
            None if is_unordered(left, right) => Err(CelFailure::NoValue),
            None => misapplied(at, operator, left, right),
        };
        match operator {
            CelOperator::Equal => self.equal(left, right).map(CelValue::Bool),
            CelOperator::Unequal => self.equal(left, right).map(|equal| CelValue::Bool(!equal)),
            CelOperator::Less => ordered(Ordering::is_lt),
            CelOperator::AtMost => ordered(Ordering::is_le),
            CelOperator::More => ordered(Ordering::is_gt),
            CelOperator::AtLeast => ordered(Ordering::is_ge),
            CelOperator::In => match (left, right) {
                (CelValue::Text(key), CelValue::Fields(fields)) => Ok(CelValue::Bool(fields.contains_key(&**key))),
                (_, CelValue::Null) => Err(CelFailure::NoValue),
                (_, list) => {
                    let Some(items) = list.items() else { return misapplied(at, operator, left, right) };
                    for item in items {
                        if self.equal(left, &item)? {
                            return Ok(CelValue::Bool(true));
                        }
                    }
                    Ok(CelValue::Bool(false))
                }
            },
            _ => arithmetic(at, operator, left, right),
        }
    }

    /// Whether two values are equal. Values of different types are not.
    fn equal(&self, left: &CelValue<'v>, right: &CelValue<'v>) -> CelResult<bool> {
        self.meter.take(1)?;
        if let (CelValue::Null, CelValue::Null) = (left, right) {
            return Ok(true);
        }
        if let (CelValue::Fields(left), CelValue::Fields(right)) = (left, right) {
            if left.len() != right.len() {
                return Ok(false);
            }
            for (key, value) in *left {
                let Some(other) = right.get(key) else { return Ok(false) };
                if !self.equal(&CelValue::from_json(value), &CelValue::from_json(other))? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        let is_list = |value: &CelValue<'v>| matches!(value, CelValue::List(_) | CelValue::Items(_));
        if is_list(left) && is_list(right) {
            self.meter.take(left.weight() + right.weight())?;
            let (left, right) = (left.items().unwrap_or_default(), right.items().unwrap_or_default());
            if left.len() != right.len() {
                return Ok(false);
            }
            for (left, right) in left.iter().zip(&right) {
                if !self.equal(left, right)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        Ok(left.order(right) == Some(Ordering::Equal))
    }
}

fn arithmetic<'v>(
    at: usize,
    operator: CelOperator,
    left: &CelValue<'v>,
    right: &CelValue<'v>,
) -> CelResult<CelValue<'v>> {
    use CelOperator::{Add, Divide, Multiply, Remainder, Subtract};
    let result = match (operator, left, right) {
        (_, CelValue::Null, _) | (_, _, CelValue::Null) => None,
        (_, CelValue::Int(left), CelValue::Int(right)) => {
            let result = match operator {
                Add => left.checked_add(*right),
                Subtract => left.checked_sub(*right),
                Multiply => left.checked_mul(*right),
                Divide => left.checked_div(*right),
                _ => left.checked_rem(*right),
            };
            result.map(CelValue::Int)
        }
        (_, CelValue::Int(left), CelValue::Double(right)) => double(operator, *left as f64, *right),
        (_, CelValue::Double(left), CelValue::Int(right)) => double(operator, *left, *right as f64),
        (_, CelValue::Double(left), CelValue::Double(right)) => double(operator, *left, *right),
        (Add, CelValue::Text(left), CelValue::Text(right)) => {
            Some(CelValue::Text(Cow::Owned(format!("{left}{right}"))))
        }
        (Add, CelValue::List(_) | CelValue::Items(_), CelValue::List(_) | CelValue::Items(_)) => {
            let mut items = left.items().unwrap_or_default();
            items.append(&mut right.items().unwrap_or_default());
            Some(CelValue::List(Rc::new(items)))
        }
        (Add, CelValue::Time(time), CelValue::Span(span)) | (Add, CelValue::Span(span), CelValue::Time(time)) => {
            time.checked_add(*span).ok().map(CelValue::Time)
        }
        (Subtract, CelValue::Time(time), CelValue::Span(span)) => time.checked_sub(*span).ok().map(CelValue::Time),
        (Subtract, CelValue::Time(left), CelValue::Time(right)) => Some(CelValue::Span(left.duration_since(*right))),
        (Add, CelValue::Span(left), CelValue::Span(right)) => left.checked_add(*right).map(CelValue::Span),
        (Subtract, CelValue::Span(left), CelValue::Span(right)) => left.checked_sub(*right).map(CelValue::Span),
        (Add | Subtract | Multiply | Divide | Remainder, left, right) => {
            return misapplied(at, operator, left, right);
        }
        _ => None,
    };
    result.ok_or(CelFailure::NoValue)
}

/// Whether two values that have no order can come from the data, rather than from a mistake in the expression.
fn is_unordered(left: &CelValue<'_>, right: &CelValue<'_>) -> bool {
    let timed = |value: &CelValue<'_>| matches!(value, CelValue::Text(_) | CelValue::Time(_));
    let number = |value: &CelValue<'_>| matches!(value, CelValue::Int(_) | CelValue::Double(_));
    matches!((left, right), (CelValue::Null, _) | (_, CelValue::Null))
        || (timed(left) && timed(right))
        || (number(left) && number(right))
}

/// The result for two numbers that are not both integers.
fn double<'v>(operator: CelOperator, left: f64, right: f64) -> Option<CelValue<'v>> {
    let result = match operator {
        CelOperator::Add => left + right,
        CelOperator::Subtract => left - right,
        CelOperator::Multiply => left * right,
        CelOperator::Divide => left / right,
        _ => left % right,
    };
    result.is_finite().then_some(CelValue::Double(result))
}
