//! The values of an evaluation.

use std::{borrow::Cow, cmp::Ordering, rc::Rc};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

/// A value. Parts of `obj` and of the expression are borrowed.
#[derive(Debug, Clone)]
pub(super) enum CelValue<'v> {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(Cow<'v, str>),
    Time(Timestamp),
    Span(SignedDuration),
    /// A list that was computed.
    List(Rc<Vec<CelValue<'v>>>),
    /// A list in `obj`.
    Items(&'v [Value]),
    /// A map in `obj`.
    Fields(&'v Map<String, Value>),
}

impl<'v> CelValue<'v> {
    pub(super) fn from_json(json: &'v Value) -> Self {
        match json {
            Value::Null => CelValue::Null,
            Value::Bool(value) => CelValue::Bool(*value),
            Value::Number(number) => match number.as_i64() {
                Some(number) => CelValue::Int(number),
                None => CelValue::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => CelValue::Text(Cow::Borrowed(text)),
            Value::Array(items) => CelValue::Items(items),
            Value::Object(fields) => CelValue::Fields(fields),
        }
    }

    /// Describes the type for a message.
    pub(super) fn describe(&self) -> &'static str {
        match self {
            CelValue::Null => "null",
            CelValue::Bool(_) => "a boolean",
            CelValue::Int(_) | CelValue::Double(_) => "a number",
            CelValue::Text(_) => "a string",
            CelValue::Time(_) => "a timestamp",
            CelValue::Span(_) => "a duration",
            CelValue::List(_) | CelValue::Items(_) => "a list",
            CelValue::Fields(_) => "a map",
        }
    }

    /// The items of a list, or the keys of a map.
    pub(super) fn items(&self) -> Option<Vec<CelValue<'v>>> {
        match self {
            CelValue::List(items) => Some(items.iter().cloned().collect()),
            CelValue::Items(items) => Some(items.iter().map(CelValue::from_json).collect()),
            CelValue::Fields(fields) => Some(fields.keys().map(|key| CelValue::Text(Cow::Borrowed(key))).collect()),
            _ => None,
        }
    }

    /// The steps that copying or comparing it takes.
    pub(super) fn weight(&self) -> u64 {
        let weight = match self {
            CelValue::Text(text) => text.len() / 16,
            CelValue::List(items) => items.len() * 8,
            CelValue::Items(items) => items.len() * 8,
            CelValue::Fields(fields) => fields.len() * 8,
            _ => 0,
        };
        weight as u64 + 1
    }

    /// The timestamp that it is, or that its text is.
    fn time(&self) -> Option<Timestamp> {
        match self {
            CelValue::Time(time) => Some(*time),
            CelValue::Text(text) => timestamp(text),
            _ => None,
        }
    }

    /// The order of two values of one type; a string is compared with a timestamp as a timestamp.
    pub(super) fn order(&self, other: &CelValue<'_>) -> Option<Ordering> {
        match (self, other) {
            (CelValue::Bool(left), CelValue::Bool(right)) => Some(left.cmp(right)),
            (CelValue::Int(left), CelValue::Int(right)) => Some(left.cmp(right)),
            (CelValue::Int(left), CelValue::Double(right)) => (*left as f64).partial_cmp(right),
            (CelValue::Double(left), CelValue::Int(right)) => left.partial_cmp(&(*right as f64)),
            (CelValue::Double(left), CelValue::Double(right)) => left.partial_cmp(right),
            (CelValue::Text(left), CelValue::Text(right)) => Some(left.cmp(right)),
            (CelValue::Time(_), _) | (_, CelValue::Time(_)) => Some(self.time()?.cmp(&other.time()?)),
            (CelValue::Span(left), CelValue::Span(right)) => Some(left.cmp(right)),
            _ => None,
        }
    }
}

/// Parses a timestamp in RFC 3339 format. The last day that it can express, with which certificates say that they do not
/// expire (RFC 5280), is later than the library's last timestamp, and counts as that.
pub(super) fn timestamp(text: &str) -> Option<Timestamp> {
    let last_day = || {
        let time = text.strip_prefix("9999-12-31")?;
        format!("9999-12-29{time}").parse::<Timestamp>().ok().map(|_| Timestamp::MAX)
    };
    text.parse().ok().or_else(last_day)
}

/// Parses a duration such as `1h30m` or `-1.5s`.
pub(super) fn duration(text: &str) -> Option<SignedDuration> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text),
    };
    let mut seconds = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, unit_and_rest) = rest.split_at(unit_at);
        let number: f64 = number.parse().ok()?;
        let units = [("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("h", 3600.0), ("m", 60.0), ("s", 1.0)];
        let (factor, after) =
            units.iter().find_map(|(unit, factor)| Some((*factor, unit_and_rest.strip_prefix(unit)?)))?;
        seconds += number * factor;
        rest = after;
    }
    SignedDuration::try_from_secs_f64(sign * seconds).ok()
}
