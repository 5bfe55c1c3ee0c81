//! The types that values of policy expressions can have, as far as lints know.

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InferredType {
    /// The type is unknown.
    Unknown,
    Bool,
    Number,
    Text,
    List,
    Map,
    Null,
    /// Any type but a boolean.
    Other,
}

impl InferredType {
    pub(super) fn describe(self) -> &'static str {
        match self {
            InferredType::Unknown => "a value",
            InferredType::Bool => "a boolean",
            InferredType::Number => "a number",
            InferredType::Text => "a string",
            InferredType::List => "a list",
            InferredType::Map => "a map",
            InferredType::Null => "null",
            InferredType::Other => "a value of another type",
        }
    }

    /// The description of the value, if it is certainly not a boolean.
    pub(super) fn not_boolean(self) -> Option<&'static str> {
        (!matches!(self, InferredType::Unknown | InferredType::Bool)).then(|| self.describe())
    }

    /// Whether two values certainly cannot be equal.
    pub(super) fn differs(self, other: Self) -> bool {
        use InferredType::{Bool, List, Map, Number, Text};
        let is_plain = |it: Self| matches!(it, Bool | Number | Text | List | Map);
        is_plain(self) && is_plain(other) && self != other
    }
}
