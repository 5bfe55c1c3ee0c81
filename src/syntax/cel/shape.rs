//! A check of names and types before evaluation: a misspelt field would otherwise just match nothing.

use std::{collections::BTreeSet, sync::Arc};

use super::error::CelError;
use super::function::{CelFold, CelFunction};
use super::node::{CelExpr, CelNode, OBJ};
use super::operator::CelOperator;
use super::value::{duration, timestamp};
use crate::syntax::text::printable;

/// The type of a value before evaluation. Each can also be null.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CelShape {
    /// The type is unknown.
    Any,
    Bool,
    Number,
    Text,
    Time,
    Span,
    List(Arc<CelShape>),
    /// A map with any keys.
    Map(Arc<CelShape>),
    /// A map with these keys.
    Object(Arc<Vec<(String, CelShape)>>),
}

impl CelShape {
    fn describe(&self) -> &'static str {
        match self {
            CelShape::Any => "a value",
            CelShape::Bool => "a boolean",
            CelShape::Number => "a number",
            CelShape::Text => "a string",
            CelShape::Time => "a timestamp",
            CelShape::Span => "a duration",
            CelShape::List(_) => "a list",
            CelShape::Map(_) | CelShape::Object(_) => "a map",
        }
    }

    fn is_map(&self) -> bool {
        matches!(self, CelShape::Map(_) | CelShape::Object(_))
    }

    /// Whether two values can be equal. A string is compared with a timestamp as a timestamp.
    fn is_comparable(&self, other: &CelShape) -> bool {
        let timed = |shape: &CelShape| matches!(shape, CelShape::Text | CelShape::Time);
        matches!(self, CelShape::Any)
            || matches!(other, CelShape::Any)
            || (self.is_map() && other.is_map())
            || (timed(self) && timed(other))
            || self.describe() == other.describe()
    }
}

/// Checks a condition over `obj`. Returns the fields of `obj` that it reads, or `None` if it uses `obj` as a whole.
pub(super) fn check_condition(root: &CelExpr, obj: &CelShape) -> Result<Option<BTreeSet<String>>, CelError> {
    let mut checker = ShapeChecker { obj, scope: Vec::new(), fields: BTreeSet::new(), whole: false };
    let result = checker.shape(root)?;
    if !matches!(result, CelShape::Any | CelShape::Bool) {
        let message = format!("the expression must be a boolean, not {}", result.describe());
        return Err(CelError::new(root.at, message));
    }
    Ok((!checker.whole).then_some(checker.fields))
}

struct ShapeChecker<'s> {
    obj: &'s CelShape,
    /// The variables of the macros around the expression.
    scope: Vec<(String, CelShape)>,
    fields: BTreeSet<String>,
    whole: bool,
}

impl ShapeChecker<'_> {
    fn shape(&mut self, expr: &CelExpr) -> Result<CelShape, CelError> {
        match &expr.node {
            CelNode::Null => Ok(CelShape::Any),
            CelNode::Bool(_) => Ok(CelShape::Bool),
            CelNode::Int(_) | CelNode::Double(_) => Ok(CelShape::Number),
            CelNode::Text(_) => Ok(CelShape::Text),
            CelNode::List(items) => {
                let shapes: Vec<CelShape> = items.iter().map(|item| self.shape(item)).collect::<Result<_, _>>()?;
                Ok(CelShape::List(Arc::new(common(shapes))))
            }
            CelNode::Name(name) => self.name(expr.at, name),
            CelNode::Field(of, field) => self.field(expr.at, of, field),
            CelNode::Has(of, field) => self.field(expr.at, of, field).map(|_| CelShape::Bool),
            CelNode::Index(of, index) => self.index(of, index),
            CelNode::Not(of) => self.expect(of, &CelShape::Bool).map(|()| CelShape::Bool),
            CelNode::Negate(of) => match self.shape(of)? {
                shape @ (CelShape::Any | CelShape::Number | CelShape::Span) => Ok(shape),
                other => Err(CelError::new(expr.at, format!("`-` does not apply to {}", other.describe()))),
            },
            CelNode::Logic { parts, .. } => {
                for part in parts {
                    self.expect(part, &CelShape::Bool)?;
                }
                Ok(CelShape::Bool)
            }
            CelNode::Binary(operator, left, right) => {
                let shapes = (self.shape(left)?, self.shape(right)?);
                binary(*operator, &shapes.0, &shapes.1).ok_or_else(|| {
                    let (left, right) = (shapes.0.describe(), shapes.1.describe());
                    CelError::new(expr.at, format!("`{}` does not apply to {left} and {right}", operator.symbol()))
                })
            }
            CelNode::Choice(parts) => {
                let [condition, yes, no] = &**parts;
                self.expect(condition, &CelShape::Bool)?;
                let shapes = vec![self.shape(yes)?, self.shape(no)?];
                Ok(common(shapes))
            }
            CelNode::Call(function, arguments) => self.call(*function, arguments),
            CelNode::Matches(text, _) => self.expect(text, &CelShape::Text).map(|()| CelShape::Bool),
            CelNode::Fold { fold, list, variable, body } => self.fold(*fold, list, variable, body),
            CelNode::Foreign { .. } | CelNode::Map(_) | CelNode::Opaque(_) => {
                Err(CelError::new(expr.at, "not supported in a filter"))
            }
        }
    }

    fn expect(&mut self, expr: &CelExpr, wanted: &CelShape) -> Result<(), CelError> {
        let shape = self.shape(expr)?;
        if shape == CelShape::Any || shape.describe() == wanted.describe() {
            return Ok(());
        }
        Err(CelError::new(expr.at, format!("expected {}, found {}", wanted.describe(), shape.describe())))
    }

    fn name(&mut self, at: usize, name: &str) -> Result<CelShape, CelError> {
        if let Some((_, shape)) = self.scope.iter().rev().find(|(known, _)| known == name) {
            return Ok(shape.clone());
        }
        if name == OBJ {
            self.whole = true;
            return Ok(self.obj.clone());
        }
        if let CelShape::Object(fields) = self.obj
            && fields.iter().any(|(field, _)| field == name)
        {
            return Err(CelError::new(at, format!("unknown name `{name}`: use `{OBJ}.{name}`")));
        }
        let message = format!("unknown name `{}`", printable(name));
        let known = self.scope.iter().map(|(known, _)| known.as_str()).chain([OBJ]);
        Err(CelError::unknown(at, message, name, known))
    }

    fn field(&mut self, at: usize, of: &CelExpr, field: &str) -> Result<CelShape, CelError> {
        let is_obj = matches!(&of.node, CelNode::Name(name) if name == OBJ);
        let shape = if is_obj { self.obj.clone() } else { self.shape(of)? };
        if is_obj {
            self.fields.insert(field.to_owned());
        }
        match &shape {
            CelShape::Any => Ok(CelShape::Any),
            CelShape::Map(value) => Ok(CelShape::clone(value)),
            CelShape::Object(fields) => match fields.iter().find(|(known, _)| known == field) {
                Some((_, shape)) => Ok(shape.clone()),
                None => {
                    let message = format!("unknown field `{}`", printable(field));
                    Err(CelError::unknown(at, message, field, fields.iter().map(|(known, _)| known.as_str())))
                }
            },
            other => Err(CelError::new(
                at,
                format!("unknown field `{}`: {} has no fields", printable(field), other.describe()),
            )),
        }
    }

    fn index(&mut self, of: &CelExpr, index: &CelExpr) -> Result<CelShape, CelError> {
        if let CelNode::Text(field) = &index.node {
            return self.field(index.at, of, field);
        }
        let (list, at) = (self.shape(of)?, self.shape(index)?);
        match (&list, &at) {
            (CelShape::List(item), CelShape::Any | CelShape::Number) => Ok(CelShape::clone(item)),
            (CelShape::Map(value), CelShape::Any | CelShape::Text) => Ok(CelShape::clone(value)),
            (CelShape::Any | CelShape::Object(_), CelShape::Any | CelShape::Number | CelShape::Text) => {
                Ok(CelShape::Any)
            }
            _ => {
                let message = format!("{} has no index that is {}", list.describe(), at.describe());
                Err(CelError::new(index.at, message))
            }
        }
    }

    fn call(&mut self, function: CelFunction, arguments: &[CelExpr]) -> Result<CelShape, CelError> {
        let result = match function {
            CelFunction::Size | CelFunction::Int | CelFunction::Double => CelShape::Number,
            CelFunction::StartsWith | CelFunction::EndsWith | CelFunction::Contains => CelShape::Bool,
            CelFunction::LowerAscii | CelFunction::UpperAscii | CelFunction::String => CelShape::Text,
            CelFunction::Timestamp => CelShape::Time,
            CelFunction::Duration => CelShape::Span,
        };
        for argument in arguments {
            let shape = self.shape(argument)?;
            let fits = match function {
                CelFunction::Size => matches!(shape, CelShape::Text | CelShape::List(_)) || shape.is_map(),
                CelFunction::Timestamp => matches!(shape, CelShape::Text | CelShape::Time),
                CelFunction::Duration => matches!(shape, CelShape::Text | CelShape::Span),
                CelFunction::Int => matches!(shape, CelShape::Text | CelShape::Number | CelShape::Time),
                CelFunction::Double => matches!(shape, CelShape::Text | CelShape::Number),
                CelFunction::String => !matches!(shape, CelShape::List(_)) && !shape.is_map(),
                _ => shape == CelShape::Text,
            };
            if !fits && shape != CelShape::Any {
                let message = format!("`{}` does not apply to {}", function.name(), shape.describe());
                return Err(CelError::new(argument.at, message));
            }
            if let CelNode::Text(text) = &argument.node {
                let problem = match function {
                    CelFunction::Timestamp if timestamp(text).is_none() => {
                        "not a timestamp such as `2026-01-31T09:30:00Z`"
                    }
                    CelFunction::Duration if duration(text).is_none() => "not a duration such as `36h` or `1h30m`",
                    _ => continue,
                };
                return Err(CelError::new(argument.at, problem));
            }
        }
        Ok(result)
    }

    fn fold(&mut self, fold: CelFold, list: &CelExpr, variable: &str, body: &[CelExpr]) -> Result<CelShape, CelError> {
        let shape = self.shape(list)?;
        let item = match &shape {
            CelShape::Any => CelShape::Any,
            CelShape::List(item) => CelShape::clone(item),
            // The items of a map are its keys.
            CelShape::Map(_) | CelShape::Object(_) => CelShape::Text,
            other => return Err(CelError::new(list.at, format!("expected a list, found {}", other.describe()))),
        };
        self.scope.push((variable.to_owned(), item.clone()));
        let checked = self.body(fold, body);
        self.scope.pop();
        Ok(match fold {
            CelFold::All | CelFold::Exists | CelFold::ExistsOne => checked.map(|_| CelShape::Bool)?,
            CelFold::Filter => checked.map(|_| CelShape::List(Arc::new(item)))?,
            CelFold::Map => CelShape::List(Arc::new(checked?)),
        })
    }

    /// Checks the expressions for each item, and returns the shape of the last.
    fn body(&mut self, fold: CelFold, body: &[CelExpr]) -> Result<CelShape, CelError> {
        let Some((last, conditions)) = body.split_last() else { return Ok(CelShape::Any) };
        for condition in conditions {
            self.expect(condition, &CelShape::Bool)?;
        }
        if fold == CelFold::Map {
            return self.shape(last);
        }
        self.expect(last, &CelShape::Bool).map(|()| CelShape::Bool)
    }
}

/// The shape that all have, or `Any`.
fn common(shapes: Vec<CelShape>) -> CelShape {
    let mut shapes = shapes.into_iter();
    let Some(first) = shapes.next() else { return CelShape::Any };
    if shapes.all(|shape| shape == first) { first } else { CelShape::Any }
}

/// The shape of a result; `None` if the operator does not apply.
fn binary(operator: CelOperator, left: &CelShape, right: &CelShape) -> Option<CelShape> {
    use CelShape::{Any, Bool, List, Number, Span, Text, Time};
    match operator {
        CelOperator::Equal | CelOperator::Unequal => left.is_comparable(right).then_some(Bool),
        CelOperator::Less | CelOperator::AtMost | CelOperator::More | CelOperator::AtLeast => {
            let ordered = |shape: &CelShape| !matches!(shape, List(_)) && !shape.is_map();
            (left.is_comparable(right) && ordered(left) && ordered(right)).then_some(Bool)
        }
        CelOperator::In => match right {
            Any => Some(Bool),
            List(item) => left.is_comparable(item).then_some(Bool),
            map if map.is_map() => left.is_comparable(&Text).then_some(Bool),
            _ => None,
        },
        _ => match (operator, left, right) {
            (_, Any, _) | (_, _, Any) => Some(Any),
            (_, Number, Number) => Some(Number),
            (CelOperator::Add, Text, Text) => Some(Text),
            (CelOperator::Add, List(_), List(_)) => Some(common(vec![left.clone(), right.clone()])),
            (CelOperator::Add, Time, Span) | (CelOperator::Add, Span, Time) | (CelOperator::Subtract, Time, Span) => {
                Some(Time)
            }
            (CelOperator::Add | CelOperator::Subtract, Span, Span) | (CelOperator::Subtract, Time, Time) => Some(Span),
            _ => None,
        },
    }
}
